"""Agents that sample from a distribution over actions; `net`, of a network's policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from busenv import Board, Game
from busenv.agents.base import CompiledAgent, Estimate
from busenv.game.board_specs import GeneratedBoards, is_playable
from busenv.networks.compiled_network import Weights
from busenv.networks.inference import draw_actions, make_policy
from busenv.networks.logits import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE

if TYPE_CHECKING:
    from busenv.networks.network import Network

TOP_ACTIONS = 5  # in an estimate


class DistributionAgent(CompiledAgent):
    """Samples an action from its distribution; subclasses define `_probabilities`.

    temperature: 0 to 100, by which `_probabilities` divides logits, but at least by
        LOWEST_TEMPERATURE; 0 always takes the most likely action.
    """

    def __init__(self, name: str, seed: int, temperature: float) -> None:
        if not 0 <= temperature <= HIGHEST_TEMPERATURE:
            raise ValueError(
                f"temperature is {temperature!r}; allowed: 0 (greedy) to {HIGHEST_TEMPERATURE:g}"
            )
        self._is_greedy = temperature == 0
        self._temperature = max(temperature, LOWEST_TEMPERATURE)
        super().__init__(name, seed)

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        probabilities = self._probabilities(games, board)
        if self._is_greedy:
            return probabilities.argmax(axis=1)
        return draw_actions(probabilities, self._rng_state)

    def _estimate(self, game: Game) -> Estimate:
        """Return the most likely actions, and no chances to win, which a policy lacks."""
        probabilities = self._probabilities(game.arrays()[0], game.board)[0]
        legal = np.array(game.legal_actions())
        best = legal[np.argsort(-probabilities[legal], kind="stable")[:TOP_ACTIONS]]
        return [], list(zip(best.tolist(), probabilities[best].tolist(), strict=True))


class PolicyAgent(DistributionAgent):
    """Samples from a network's distribution over the legal actions.

    network: a `busenv.networks.network.Network` on the CPU, where changes of its weights take
        effect at once; or its `Weights`, which need no torch.
    board: the board, or the set of boards, that the network was trained on; ignored for a
        network that plays any board. Games on another board, or of another size than the set's, are
        refused with a ValueError.
    """

    def __init__(
        self,
        network: Network | Weights,
        board: Board | GeneratedBoards | None,
        *,
        name: str = "net",
        seed: int = 0,
        temperature: float = 1.0,
    ) -> None:
        self.network = network
        self.board = None if network.inputs.has_map else board
        self._policy = make_policy(network)
        super().__init__(name, seed, temperature)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_policy"]  # a function that owns a workspace
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._policy = make_policy(self.network)

    def _probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        if not is_playable(board, self.board):
            raise ValueError(f"{self.name} was trained on {self.board!r}, not on {board!r}")
        return self._policy(games, board, self._temperature)
