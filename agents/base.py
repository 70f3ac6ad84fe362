"""What an agent is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from busenv import Board, Game
from busenv.errors import AgentError

__all__ = ["Agent", "AgentError"]


class Agent(ABC):
    """Chooses legal actions. Without a limit in seconds, two agents of one spec and seed that are
    shown the same games choose alike.

    name: how it is called in tables; its spec.

    A new agent defines `reset` and `choose`; the rest follows from these, and may be bettered.
    """

    name: str

    @abstractmethod
    def reset(self, seed: int) -> None:
        """Forget all games. What is chosen from now on depends on the seed and the games shown.

        seed: 0 to 2**64 - 1, else ValueError.
        """

    def close(self) -> None:  # noqa: B027 - most agents hold nothing
        """Give back what the agent holds, such as threads or a running program."""

    @abstractmethod
    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """A legal action for each of a batch of games that are not over: int64, (N,).

        games: GAME records (busenv.core.state), (N,), which may be of different games and numbers
            of players, and are left as they are.
        board: the board that all of them are played on.

        ValueError when games have another shape or dtype, are played on another board, or cannot be
        played by this agent. Implementations may see what is observed and legal by
        `busenv.observation.observe_games`; those that call kernels go on with what
        `busenv.validation.check_games` returns, since kernels trust their input.
        """

    def act(self, game: Game) -> int:
        """A legal action for the seat to decide in one game, which is left as it is.

        ValueError when the game is over or on a board that the agent cannot play on; AgentError
        when the agent fails.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to choose")
        return int(self._choose(game.arrays()[0], game.board)[0])

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """`choose` for games that are known to be in order, such as a Game's own: agents that
        would look through them first can save that here."""
        return self.choose(games, board)

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """How the agent weighs the actions of each game: float32, (N, num_actions).

        Rows add up to 1; illegal actions have 0. Here an agent gives 1 to what it chooses; those
        that weigh actions against each other say more. Arguments and errors are those of `choose`.
        """
        probabilities = np.zeros((len(games), board.num_actions), np.float32)
        probabilities[np.arange(len(games)), self.choose(games, board)] = 1
        return probabilities

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """What the agent makes of a game that is not over.

        Returns chances to win by seat, num_players of them, and its favourite actions as (id,
        probability), best first. Either list is empty where the agent has no view; ValueError when
        it has none at all.
        """
        raise ValueError(f"agent {self.name!r} gives no estimates")
