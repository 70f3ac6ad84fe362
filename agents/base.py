"""The base class of agents."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from busenv import Board, Game
from busenv.errors import AgentError

__all__ = ["Agent", "AgentError"]


class Agent(ABC):
    """Selects legal actions, in one game (`act`) or in a batch of games (`choose`).

    Subclasses define `reset` and `choose`; the other methods have defaults. Without a time limit,
    agents of the same spec and seed select the same actions in the same sequence of games.

    name: the agent's spec, which tables show.
    """

    name: str

    @abstractmethod
    def reset(self, seed: int) -> None:
        """Discard all state: later decisions depend on the seed and the games that follow.

        seed: 0 to 2**64 - 1, else ValueError.
        """

    def close(self) -> None:  # noqa: B027 - most agents hold no resources
        """Release resources, such as threads or a running program."""

    @abstractmethod
    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return a legal action for each of a batch of games that are not over: int64, (N,).

        games: GAME records (busenv.core.state), (N,), of any numbers of players; not modified.
        board: the board of all of them.

        Raises ValueError when games have another shape, dtype or board, or when the agent does not
        support them. Implementations read observations and masks from
        `busenv.observation.observe_games`; those that call kernels pass games through
        `busenv.validation.check_games`, since kernels do not validate.
        """

    def act(self, game: Game) -> int:
        """Return a legal action for the seat to decide in one game, which is not modified.

        Raises ValueError when the game is over or its board is not supported, and AgentError when
        the agent fails.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to choose")
        return int(self._choose(game.arrays()[0], game.board)[0])

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Do as `choose` for valid games, such as a Game's own; subclasses may skip validation."""
        return self.choose(games, board)

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return the agent's distribution over actions: float32, (N, num_actions).

        Rows add up to 1; illegal actions have 0. The default gives 1 to the selected action.
        Arguments and errors are those of `choose`.
        """
        probabilities = np.zeros((len(games), board.num_actions), np.float32)
        probabilities[np.arange(len(games)), self.choose(games, board)] = 1
        return probabilities

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """Return chances to win, one per seat, and the best actions as (id, probability).

        Actions are sorted, best first. A list is empty when the agent has no estimate of that kind.
        Raises ValueError when the agent has no estimates or the game is over.
        """
        raise ValueError(f"agent {self.name!r} gives no estimates")
