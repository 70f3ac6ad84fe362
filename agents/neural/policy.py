"""An agent that plays by a trained network."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board, Game
from busenv.agents.base import Agent
from busenv.agents.neural.networks import HIGHEST_TEMPERATURE, action_probabilities
from busenv.checks import check_seed
from busenv.observation import observe_games

FAVOURITES = 5  # actions that an estimate names


class PolicyAgent(Agent):
    """Samples from a network's distribution over the legal actions, one forward pass a batch.

    network: see `busenv.agents.neural.networks`; used where its weights are, on the CPU or a GPU.
    board: the board that it was made for; games of another are refused with a ValueError.
    temperature: by which logits are divided, 0 to 100; 0 takes the likeliest action always.
    """

    def __init__(
        self,
        network: nn.Module,
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
        self._generator = torch.Generator()
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self._generator.manual_seed(check_seed(seed) % 2**63)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        probabilities = self._probabilities(games, board)
        if self._temperature == 0:
            return probabilities.argmax(dim=1).numpy()
        return torch.multinomial(probabilities, 1, generator=self._generator)[:, 0].numpy()

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """The probability of each action; at temperature 0 those of temperature 1."""
        return self._probabilities(games, board).numpy()

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """No chances to win, which a policy does not know, and its likeliest actions."""
        if game.is_over:
            raise ValueError("the game is over: there is nothing to estimate")
        probabilities = self._probabilities(game.arrays()[0], game.board)[0]
        best = torch.topk(probabilities, min(FAVOURITES, len(game.legal_actions())))
        return [], list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    def _probabilities(self, games: np.ndarray, board: Board) -> torch.Tensor:
        """The probability of each action in each game, float32 (N, num_actions)."""
        if board.fingerprint != self.board.fingerprint:
            raise ValueError(f"{self.name} was trained on {self.board!r}, not on {board!r}")
        rows, masks = observe_games(games, board)
        device = next(self.network.parameters()).device
        with torch.no_grad():
            logits, _ = self.network(torch.from_numpy(rows).to(device))
        # Greedy play needs no scaling: its favourite is the same.
        return action_probabilities(logits.cpu(), torch.from_numpy(masks), self._temperature or 1.0)
