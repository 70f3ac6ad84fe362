"""The base class of agents."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np

from busenv import Board, Game
from busenv.core.state import OVER
from busenv.errors import AgentError, IllegalActionError
from busenv.game.actions import action_id
from busenv.game.states import act_unchanged, check_choice, check_games
from busenv.validation import check_seed

__all__ = ["Agent", "AgentError", "CompiledAgent", "LockedAgent"]

Estimate = tuple[list[float], list[tuple[int, float]]]
Result = TypeVar("Result")


class Agent(ABC):
    """Selects legal actions, in one game (`act`) or in a batch of games (`choose`).

    Subclasses define `reset` and `choose`; the other methods have defaults. Without a time limit,
    agents of the same spec and seed select the same actions in the same sequence of games.

    name: the agent's spec, which tables show. single_game_only: whether the agent plays only by
    `act`, from the history of a game.
    """

    name: str
    single_game_only = False

    @abstractmethod
    def reset(self, seed: int) -> None:
        """Discard all state: later decisions depend on the seed and the games that follow.

        seed: 0 to 2**64 - 1, else ValueError.
        """

    def close(self) -> None:  # noqa: B027 - most agents hold no resources
        """Release resources, such as threads or a running program."""

    def log_replies(self, file: Path, seat: int) -> None:  # noqa: B027 - most agents ask no server
        """Log the replies of a server in the next game to a file of JSON lines, until `reset`.

        Requests whose replies are in the file already are not sent again. seat: the agent's.
        """

    @abstractmethod
    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return a legal action for each of a batch of games that are not over: int64, (N,).

        games: GAME records (busenv.core.state), (N,), of any numbers of players; not modified.
        board: the board of all of them.

        Raises ValueError when a game is over, when games have another shape, dtype or board, or
        when the agent does not support them. Implementations read observations and masks from
        `busenv.observation.observe_games`; those that call kernels pass games through
        `busenv.game.states.check_games`, since kernels do not validate.
        """

    def choose_trusted(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Same as `choose`, without validation."""
        return self.choose(games, board)

    def act(self, game: Game) -> int:
        """Return a legal action for the seat to decide in one game, which is not modified.

        Raises ValueError when the game is over or its board is not supported, and AgentError when
        the agent fails, changes the game or returns no whole number.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to choose")
        action = act_unchanged(self._act, game, self.name)
        try:
            return action_id(action)
        except TypeError as error:
            raise AgentError(f"{self.name}: {error}") from None

    def _act(self, game: Game) -> int:
        """Same as `act`, for a game that is not over."""
        return int(self.choose_trusted(game.arrays()[0], game.board)[0])

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return the agent's distribution over actions: float32, (N, num_actions).

        Rows add up to 1; illegal actions have 0. The default gives 1 to the selected action.
        Arguments and errors are those of `choose`.
        """
        actions = check_choice(self.choose(games, board), games.shape, self.name)
        if ((actions < 0) | (actions >= board.num_actions)).any():
            raise AgentError(f"{self.name} chose {actions}; allowed: 0 to {board.num_actions - 1}")
        return _one_hot(actions, board)

    def estimate(self, game: Game) -> Estimate:
        """Return chances to win, one per seat, and the legal actions as (id, probability).

        Actions are sorted, best first. A list is empty when the agent has no estimate of that kind.
        Raises ValueError when the agent has no estimates or the game is over.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to estimate")
        return self._estimate(game)

    def _estimate(self, game: Game) -> Estimate:
        """Same as `estimate`, for a game that is not over."""
        raise ValueError(
            f"agent {self.name!r} gives no estimates; allowed: uct:N, net:MODEL, az:MODEL:N"
        )


def call_foreign(name: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call code from outside this package; its errors become AgentErrors with an agent's name.

    Faults of the machine (OSError, MemoryError, ImportError) and errors of this package pass.
    """
    try:
        return function(*arguments)
    except (AgentError, IllegalActionError, OSError, MemoryError, ImportError):
        raise
    except (Exception, SystemExit) as error:
        raise AgentError(f"{name}: {type(error).__name__}: {error}") from error


def call_agent(agent: Agent, method: str, argument: Any) -> Any:
    """Call a method of an agent; AgentError for an error in the code of an agent from elsewhere."""
    if type(agent).__module__.startswith("busenv."):  # errors of wrapped objects are AgentErrors
        return getattr(agent, method)(argument)
    return call_foreign(agent.name, getattr(agent, method), argument)


def _one_hot(actions: np.ndarray, board: Board) -> np.ndarray:
    """Return distributions that give 1 to one action each: float32, (N, num_actions)."""
    probabilities = np.zeros((len(actions), board.num_actions), np.float32)
    probabilities[np.arange(len(actions)), actions] = 1
    return probabilities


def _check_running(games: np.ndarray, board: Board) -> np.ndarray:
    """Same as `check_games`; also raises ValueError when a game is over."""
    games = check_games(games, board)
    over = np.flatnonzero(games["phase"] == OVER)
    if over.size:
        raise ValueError(f"game {over[0]} is over: there is nothing to choose")
    return games


class LockedAgent(Agent):
    """An agent with state that one thread at a time may use.

    Threads that share an agent wait for each other. Copies, including those of `copy.copy`, share
    no state with the original. Subclasses define `_act` and `_estimate`, and hold `_lock` in their
    other methods.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}  # locks cannot be copied or pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def __copy__(self) -> LockedAgent:
        return deepcopy(self)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        raise ValueError(f"{self.name} plays single games only: use act(game), not choose(games)")

    @final
    def act(self, game: Game) -> int:
        with self._lock:
            return super().act(game)

    @final
    def estimate(self, game: Game) -> Estimate:
        with self._lock:
            return super().estimate(game)


class CompiledAgent(LockedAgent):
    """An agent of compiled kernels.

    Subclasses override `_choose`, and `_probabilities`, `_act` and `_estimate` if the defaults do
    not apply. The public methods validate games and hold the lock; they are final.
    """

    def __init__(self, name: str, seed: int) -> None:
        super().__init__()
        self.name = name
        self._rng_state = np.zeros(1, np.uint64)  # state of the random stream
        self.reset(seed)

    def reset(self, seed: int) -> None:
        with self._lock:
            self._rng_state[0] = check_seed(seed)

    @abstractmethod
    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Same as `choose`, without validation."""

    @final
    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self.choose_trusted(_check_running(games, board), board)

    @final
    def choose_trusted(self, games: np.ndarray, board: Board) -> np.ndarray:
        with self._lock:
            return self._choose(games, board)

    @final
    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        with self._lock:
            return self._probabilities(_check_running(games, board), board)

    def _probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Same as `action_probabilities`, without validation."""
        return _one_hot(self._choose(games, board), board)
