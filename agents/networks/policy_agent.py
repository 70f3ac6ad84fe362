"""An agent that plays by a trained network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from busenv import Board, Game
from busenv.agents.base import Agent
from busenv.agents.networks.compiled_mlp import Weights
from busenv.agents.networks.inference import draw_actions, make_policy
from busenv.agents.networks.logits import HIGHEST_TEMPERATURE
from busenv.validation import check_games, check_seed

if TYPE_CHECKING:
    from torch import nn

FAVOURITES = 5  # actions that an estimate names
COLDEST = 1e-30  # a temperature that float32 can divide by


class PolicyAgent(Agent):
    """Samples from a network's distribution over the legal actions.

    network: see `busenv.agents.networks.mlp`; used where its weights are, on the CPU (the
        default network in compiled code) or a GPU. Whatever it learns counts at once. Or the
        weights of one, which need no torch.
    board: the board that it was made for; games of another are refused with a ValueError.
    temperature: by which logits are divided, 0 to 100; 0 takes the likeliest action always.
    """

    def __init__(
        self,
        network: nn.Module | Weights,
        board: Board,
        name: str = "ppo",
        seed: int = 0,
        temperature: float = 1.0,
    ) -> None:
        if not 0 <= temperature <= HIGHEST_TEMPERATURE:
            raise ValueError(
                f"temperature is {temperature!r}; allowed: 0 (greedy) to {HIGHEST_TEMPERATURE:g}"
            )
        self.name = name
        self.network = network
        self.board = board
        self._temperature = temperature
        self._policy = make_policy(network, board)
        self._noise = np.zeros(1, np.uint64)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self._noise[0] = check_seed(seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self._choose(check_games(games, board), board)

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        probabilities = self._probabilities(games, board)
        if self._temperature == 0:
            return probabilities.argmax(axis=1)
        actions = np.zeros(len(games), np.int64)
        draw_actions(probabilities, self._noise, actions)
        return actions

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """The probability of each action; at temperature 0 those of temperature 1."""
        return self._probabilities(check_games(games, board), board)

    def _probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        if board.fingerprint != self.board.fingerprint:
            raise ValueError(f"{self.name} was trained on {self.board!r}, not on {board!r}")
        # Greedy play needs no scaling: its favourite is the same.
        temperature = max(self._temperature, COLDEST) if self._temperature else 1.0
        return self._policy(games, temperature)

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """No chances to win, which a policy does not know, and its likeliest actions."""
        if game.is_over:
            raise ValueError("the game is over: there is nothing to estimate")
        probabilities = self.action_probabilities(game.arrays()[0], game.board)[0]
        count = min(FAVOURITES, len(game.legal_actions()))
        best = np.argsort(-probabilities, kind="stable")[:count]
        return [], list(zip(best.tolist(), probabilities[best].tolist(), strict=True))
