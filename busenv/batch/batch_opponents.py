"""Who plays the seats of a batch that are not the learner's.

"random" and "greedy" are compiled and play inside of a step (busenv.core.bots). Any other agent is
asked between two stages of it, on all games at once in which it is to decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from busenv.core import batch_kernels, kernels
from busenv.core.bots import BotWorkspace
from busenv.core.state import MAX_PLAYERS
from busenv.errors import AgentError
from busenv.game.board import Board
from busenv.game.game import Game
from busenv.game.rules import Rules
from busenv.opponents import COMPILED, Player, as_player, one_for_each
from busenv.validation import illegal_action

Opponents = str | Player | Sequence[str | Player] | None


class Seating:
    """Who sits where.

    kinds: uint8, (5,), clockwise from the learner, as kernels know it (core.batch_kernels.Arrays): all 0
        when nobody else plays. agents: those that are not compiled, each once.

    opponents: as for `busenv.Batch`, whose errors come from here. most: the most players of a game.
    """

    def __init__(self, opponents: Opponents, most: int, rules: Rules, board: Board) -> None:
        self.kinds = np.zeros(MAX_PLAYERS, np.uint8)
        self.agents: list[Player] = []
        self._rules, self._board = rules, board
        self._built: list[int] = []  # which of the agents were built here
        if opponents is None:
            return
        if given := one_for_each(opponents, most - 1):
            self.kinds[1:most] = [self._kind_of(one) for one in given[: most - 1]]
        else:
            self.kinds[1:] = self._kind_of(opponents)  # type: ignore[arg-type]

    def _kind_of(self, opponent: str | Player) -> int:
        if isinstance(opponent, str) and opponent in COMPILED:
            return COMPILED[opponent]
        for number, agent in enumerate(self.agents):
            if agent is opponent:
                return batch_kernels.FIRST_AGENT + number
        if isinstance(opponent, str):
            self._built.append(len(self.agents))
        self.agents.append(as_player(opponent, 0))
        return batch_kernels.FIRST_AGENT + len(self.agents) - 1

    def reset(self, seed: int) -> None:
        """Give the agents that were built from a spec new seeds."""
        seeds = np.random.default_rng(seed).integers(2**32, size=len(self.agents))
        for number in self._built:
            self.agents[number].reset(int(seeds[number]))  # type: ignore[attr-defined]

    def close(self) -> None:
        """Give back what agents that were built from a spec hold."""
        for number in self._built:
            self.agents[number].close()  # type: ignore[attr-defined]

    def play(self, arrays: batch_kernels.Arrays, work: BotWorkspace) -> None:
        """Let the agents decide in all games until nobody waits for one.

        AgentError when one chooses what is illegal, or not one whole number for each game.
        """
        agents = np.empty(len(arrays.games), np.int64)
        while batch_kernels.agents_to_move(arrays, agents):
            for number, agent in enumerate(self.agents):
                index = np.flatnonzero(agents == number)
                if index.size:
                    batch_kernels.apply_agent_actions(arrays, work, index, self._ask(agent, arrays.games, index))

    def _ask(self, agent: Player, games: np.ndarray, index: np.ndarray) -> np.ndarray:
        """What an agent chooses in the games of an index, given copies of them: int64, (n,)."""
        given = games[index]
        if callable(getattr(agent, "choose", None)):
            chosen = np.asarray(agent.choose(given, self._board))  # type: ignore[attr-defined]
        else:
            chosen = np.array([agent.act(self._game(given[i : i + 1])) for i in range(len(given))])
        if chosen.shape != index.shape or chosen.dtype.kind not in "iu":
            raise AgentError(
                f"the opponent {agent!r} chose {chosen!r}; allowed: whole numbers of shape "
                f"{index.shape}"
            )
        actions = np.array(chosen, np.int64)
        wrong = kernels.first_illegal(games[index], self._board.array, actions)
        if wrong >= 0:
            i = int(index[wrong])
            error = illegal_action(games, i, self._board, int(chosen[wrong]))
            raise AgentError(f"the opponent at seat {games['seat'][i]}: {error}") from error
        return actions

    def _game(self, state: np.ndarray) -> Game:
        return Game.from_state(state, self._rules, self._board)
