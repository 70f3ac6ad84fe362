"""What an agent is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from busenv import Board, Game
from busenv.errors import AgentError

__all__ = ["Agent", "AgentError"]


class Agent(ABC):
    """Chooses legal actions. Two agents of one spec and seed choose alike.

    name: how it is called in tables; its spec.
    """

    name: str

    @abstractmethod
    def reset(self, seed: int) -> None:
        """Begin a new game: what the agent chooses from now on depends on the seed and the games
        that it is shown, not on what it has played before."""

    def close(self) -> None:  # noqa: B027 - most agents hold nothing
        """Give back what the agent holds, such as a running program."""

    @abstractmethod
    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """An action for each of a batch of games that are not over.

        games: (N,) GAME records (busenv.core.state), not to be changed. Returns int64, (N,).
        `busenv.observation.observe_games` tells what is seen and legal. Implementations that call
        kernels themselves go on with what `busenv.checks.check_games` returns, which raises
        ValueError for games of another board: kernels trust their input.
        """

    def act(self, game: Game) -> int:
        """An action for one game, which is left as it is. ValueError when the game is over.

        AgentError when the agent fails.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to choose")
        return int(self.choose(game.arrays()[0], game.board)[0])

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """How good each action looks, as a share of the whole, in games as `choose` takes them.

        float32, (N, num_actions), rows add up to 1. Here all of it goes to what is chosen; agents
        that weigh actions against each other say more.
        """
        found = np.zeros((len(games), board.num_actions), np.float32)
        found[np.arange(len(games)), self.choose(games, board)] = 1
        return found

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """What the agent makes of a game that is not over.

        Returns chances to win by seat, and favourite actions as (id, share), best first; chances
        and shares 0 to 1. Either list is empty where the agent has no view; ValueError when it has
        none at all.
        """
        raise ValueError(f"agent {self.name!r} gives no estimates")
