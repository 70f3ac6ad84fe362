"""The base class of agents."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from busenv import Board, Game
from busenv.errors import AgentError
from busenv.validation import check_games, check_seed

__all__ = ["Agent", "AgentError", "CompiledAgent"]

Estimate = tuple[list[float], list[tuple[int, float]]]


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

    def choose_trusted(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Do as `choose` for games that need no validation, such as those of a `Batch`."""
        return self.choose(games, board)

    def act(self, game: Game) -> int:
        """Return a legal action for the seat to decide in one game, which is not modified.

        Raises ValueError when the game is over or its board is not supported, and AgentError when
        the agent fails.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to choose")
        return self._act(game)

    def _act(self, game: Game) -> int:
        """Do as `act` for a game that is not over."""
        return int(self.choose_trusted(game.arrays()[0], game.board)[0])

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return the agent's distribution over actions: float32, (N, num_actions).

        Rows add up to 1; illegal actions have 0. The default gives 1 to the selected action.
        Arguments and errors are those of `choose`.
        """
        probabilities = np.zeros((len(games), board.num_actions), np.float32)
        probabilities[np.arange(len(games)), self.choose(games, board)] = 1
        return probabilities

    def estimate(self, game: Game) -> Estimate:
        """Return chances to win, one per seat, and the best actions as (id, probability).

        Actions are sorted, best first. A list is empty when the agent has no estimate of that kind.
        Raises ValueError when the agent has no estimates or the game is over.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to estimate")
        return self._estimate(game)

    def _estimate(self, game: Game) -> Estimate:
        """Do as `estimate` for a game that is not over."""
        raise ValueError(f"agent {self.name!r} gives no estimates")


class CompiledAgent(Agent):
    """An agent of compiled kernels, whose arrays one thread at a time may use.

    Threads that share an agent wait for each other. Subclasses define `_choose`.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._noise = np.zeros(1, np.uint64)  # state of the random stream
        self._lock = threading.RLock()
        self.reset(seed)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}  # locks cannot be copied or pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def reset(self, seed: int) -> None:
        with self._lock:
            self._noise[0] = check_seed(seed)

    @abstractmethod
    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Do as `choose` for games that need no validation."""

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self.choose_trusted(check_games(games, board), board)

    def choose_trusted(self, games: np.ndarray, board: Board) -> np.ndarray:
        with self._lock:
            return self._choose(games, board)

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        games = check_games(games, board)
        with self._lock:
            return self._probabilities(games, board)

    def _probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Do as `action_probabilities` for games that need no validation."""
        return super().action_probabilities(games, board)

    def act(self, game: Game) -> int:
        with self._lock:
            return super().act(game)

    def estimate(self, game: Game) -> Estimate:
        with self._lock:
            return super().estimate(game)
