"""The agents that play the seats other than the learner's.

"random" and "greedy" run inside compiled kernels (`busenv.core.bots`). Every other agent is called
between two stages of a step, once for all games of a batch in which it decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from busenv.batch.saved_games import take_games
from busenv.core import bots, kernels
from busenv.core.batch_kernels import FIRST_AGENT
from busenv.core.state import MAX_PLAYERS
from busenv.errors import AgentError, IllegalActionError
from busenv.game.board import Board
from busenv.game.game import Game
from busenv.game.rules import Rules
from busenv.game.states import act_unchanged, check_choice, illegal_action

if TYPE_CHECKING:
    from busenv.batch.batch import Batch

COMPILED = {"random": bots.RANDOM, "greedy": bots.GREEDY}


class GamePlayer(Protocol):
    """An object that chooses an action in one game."""

    def act(self, game: Game) -> int:
        """Return a legal action for the current player of a game, which must stay unchanged."""


class BatchPlayer(Protocol):
    """An object that chooses actions in many games in one call, which is faster."""

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return a legal action for each game (GAME, (N,), copies): whole numbers, (N,)."""


Player = GamePlayer | BatchPlayer
Opponents = str | Player | Sequence[str | Player] | None


class OpponentPool:
    """The players of all seats but the learner's.

    opponents: an agent spec or an object with `act(game)` or `choose(games, board)`, which plays
        every seat; a sequence of them, one for each seat clockwise from the learner; or None.
    num_opponents: the number of opponents in the largest game.

    kinds: uint8, (5,), clockwise from the learner: 0 for a seat without opponent, a compiled bot
        (`busenv.core.bots`), or FIRST_AGENT plus an index into `agents`.
    agents: the opponents that are not compiled.

    Raises ValueError for another number of opponents or an unknown spec, TypeError for an object
    with neither method and for a class.
    """

    def __init__(self, opponents: Opponents, num_opponents: int) -> None:
        self.kinds = np.zeros(MAX_PLAYERS, np.uint8)
        self.agents: list[Any] = []
        self._from_specs: list[tuple[int, Any]] = []  # positions clockwise, and agents
        if opponents is None:
            return
        if isinstance(opponents, str) or not isinstance(opponents, Sequence):
            self.kinds[1:] = self._add(opponents, 0)
            return
        if len(opponents) != num_opponents:
            raise ValueError(
                f"{len(opponents)} opponents; allowed: one for all, or one for each of the "
                f"{num_opponents} other seats"
            )
        for position, opponent in enumerate(opponents):
            self.kinds[position + 1] = self._add(opponent, position)

    def _add(self, opponent: str | Player, position: int) -> int:
        """Register an opponent; returns its kind."""
        if isinstance(opponent, str):
            if opponent in COMPILED:
                return COMPILED[opponent]
            agent = import_module("busenv").make_agent(opponent)  # of an upper layer
            self._from_specs.append((position, agent))
        elif isinstance(opponent, type) or not (_has(opponent, "act") or _has(opponent, "choose")):
            raise TypeError(
                f"{opponent!r} is not an agent; allowed: a spec, or an instance of a class with a "
                "method act(game) or choose(games, board)"
            )
        else:
            agent = opponent
        index = next((i for i, other in enumerate(self.agents) if other is agent), -1)
        if index < 0:
            index = len(self.agents)
            self.agents.append(agent)
        return FIRST_AGENT + index

    def reset(self, seeds: np.ndarray) -> None:
        """Reset the agents built from specs; other objects keep their state.

        seeds: int64 or uint64, (num_opponents,), clockwise from the learner.
        """
        for position, agent in self._from_specs:
            agent.reset(int(seeds[position]))

    def close(self) -> None:
        """Close the agents built from specs, which may hold programs or threads."""
        for _, agent in self._from_specs:
            if hasattr(agent, "close"):
                agent.close()

    def play_game(self, game: Game, learner: int, rng_states: np.ndarray) -> None:
        """Play one game up to the learner's next decision or the end.

        rng_states: uint64, (5,), random state of the compiled bots by seat, advanced in place.

        Raises AgentError if an agent chooses an illegal action or changes the game.
        """
        offsets = np.arange(game.num_players)
        kinds = np.zeros(MAX_PLAYERS, np.uint8)
        kinds[(offsets + learner) % game.num_players] = self.kinds[: game.num_players]
        compiled = np.where(kinds < FIRST_AGENT, kinds, 0).astype(np.uint8)
        while True:
            if compiled.any():
                game.run_bots(compiled, rng_states)
            seat = game.current_player
            if seat < 0 or kinds[seat] < FIRST_AGENT:
                return
            action = _act(self.agents[kinds[seat] - FIRST_AGENT], game)
            try:
                game.step(action)
            except (IllegalActionError, TypeError) as error:
                raise AgentError(f"the opponent at seat {seat}: {error}") from error


def _act(agent: Any, game: Game) -> Any:
    """Return the action of an agent in one game."""
    if _has(agent, "act"):
        return act_unchanged(agent.act, game, f"the opponent at seat {game.current_player}")
    only = np.zeros(1, np.int64)
    return int(_choose(agent, game.arrays()[0], only, game.rules, game.board)[0])


def _has(agent: Any, method: str) -> bool:
    return callable(getattr(agent, method, None))


def choose_actions(agent: Any, batch: Batch, rows: np.ndarray) -> np.ndarray:
    """Return an agent's actions in some games of a batch, int64 (n,), by one call for each board.

    rows: int64, (n,). The agent receives copies.

    Raises AgentError for an illegal action, or a wrong number or dtype of actions.
    """
    actions, boards = np.empty(len(rows), np.int64), batch.board_index[rows]
    for index in np.unique(boards):
        selected, board = boards == index, batch.boards[index]
        actions[selected] = _choose(agent, batch.games, rows[selected], batch.rules, board)
    return actions


def _choose(
    agent: Any, games: np.ndarray, index: np.ndarray, rules: Rules, board: Board
) -> np.ndarray:
    """Same as `choose_actions`, in games on one board."""
    copies = take_games(games, index)
    if _has(agent, "choose") and not getattr(agent, "single_game_only", False):
        choose = getattr(agent, "choose_trusted", agent.choose)  # these games need no validation
        answer = choose(copies, board)
    else:
        states = (copies[i : i + 1] for i in range(len(copies)))
        answer = [agent.act(Game.from_state(state, rules, board)) for state in states]
    actions = check_choice(answer, index.shape, f"the opponent {agent!r}")
    wrong = kernels.first_illegal(take_games(games, index), board.array, actions)
    if wrong >= 0:
        game = int(index[wrong])
        error = illegal_action(games, game, board, int(actions[wrong]))
        raise AgentError(f"the opponent at seat {games['seat'][game]}: {error}") from error
    return actions
