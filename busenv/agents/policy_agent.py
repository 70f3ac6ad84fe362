"""Agents that sample from a distribution over actions: of a network, or of any function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from busenv import Board, Game
from busenv.agents.base import CompiledAgent, Estimate, call_foreign
from busenv.core.relative_types import write_absolute_policies
from busenv.game.board_specs import GeneratedBoards, is_playable
from busenv.networks.compiled_network import Weights
from busenv.networks.inference import draw_actions, make_policy
from busenv.networks.logits import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, action_probabilities
from busenv.observation import observe_games

if TYPE_CHECKING:
    from busenv.networks.network import Network

Policy = Callable[[np.ndarray, np.ndarray], Any]  # of `from_policy`


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
        """Return the legal actions' probabilities, and no chances to win, which a policy lacks."""
        probabilities = self._probabilities(game.arrays()[0], game.board)[0]
        legal = np.array(game.legal_actions())
        best = legal[np.argsort(-probabilities[legal], kind="stable")]
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


class FunctionAgent(DistributionAgent):
    """Samples from a policy that a function computes; see `from_policy`."""

    def __init__(
        self, policy: Policy, *, relative_types: bool, temperature: float, name: str
    ) -> None:
        self._policy, self._relative_types = policy, relative_types
        super().__init__(name, 0, temperature)

    def _probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        rows, masks = observe_games(games, board, True, self._relative_types)
        policies = call_foreign(self.name, self._policies, rows, masks)
        if not self._relative_types:
            return policies
        out = np.zeros_like(policies)
        write_absolute_policies(games, board.array, policies, out)
        return out

    def _policies(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Call the policy, with a copy of the masks, to which it may write."""
        logits = _as_array(self._policy(rows, masks.copy()))
        if logits.shape != masks.shape:
            raise ValueError(
                f"the policy returned an array of shape {logits.shape} for masks of shape "
                f"{masks.shape}; return one logit for each action"
            )
        return action_probabilities(logits, masks, self._temperature)


def from_policy(
    policy: Policy, *, relative_types: bool = False, temperature: float = 1.0, name: str = "policy"
) -> FunctionAgent:
    """Make an agent from a policy, such as a network of PyTorch or JAX.

    policy: takes observations, uint8 (N, size), and masks, bool (N, num_actions), and returns
        logits, (N, num_actions), as an array or tensor; those of illegal actions are ignored.
    relative_types: whether the policy was trained with `relative_types=True`. The agent then
        converts its actions; without the conversion it would erect buildings of other types.
    temperature: 0 to 100, by which logits are divided; 0 takes the most likely action.
    name: of the agent in tables.

    Raises ValueError for another temperature. The agent raises AgentError when the policy fails,
    and when it returns another shape or a logit of a legal action that is not finite.
    """
    return FunctionAgent(policy, relative_types=relative_types, temperature=temperature, name=name)


def _as_array(logits: Any) -> np.ndarray:
    """Return logits as float32, of an array, or of a tensor on any device."""
    if hasattr(logits, "detach"):  # PyTorch
        logits = logits.detach().float().cpu()
    return np.asarray(logits, np.float32)
