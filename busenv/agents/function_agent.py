"""Agents from functions: any policy of rows and masks becomes an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from busenv import Board
from busenv.agents.policy_agent import DistributionAgent
from busenv.core.relative_types import write_absolute_policies
from busenv.networks.logits import action_probabilities
from busenv.observation import observe_games

Policy = Callable[[np.ndarray, np.ndarray], Any]


class FunctionAgent(DistributionAgent):
    """Samples from a policy that a function computes; see `from_policy`."""

    def __init__(
        self, policy: Policy, *, relative_types: bool, temperature: float, name: str
    ) -> None:
        self._policy, self._relative_types = policy, relative_types
        super().__init__(name, 0, temperature)

    def _probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        rows, masks = observe_games(games, board, True, self._relative_types)
        logits = _as_array(self._policy(rows, masks))
        if logits.shape != masks.shape:
            raise ValueError(
                f"the policy {self.name!r} returned an array of shape {logits.shape} for masks of "
                f"shape {masks.shape}; return one logit for each action"
            )
        policies = action_probabilities(logits, masks, self._temperature)
        if not self._relative_types:
            return policies
        out = np.zeros_like(policies)
        write_absolute_policies(games, board.array, policies, out)
        return out


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

    Raises ValueError for another temperature, and when the policy returns another shape.
    """
    return FunctionAgent(policy, relative_types=relative_types, temperature=temperature, name=name)


def _as_array(logits: Any) -> np.ndarray:
    """Return logits as float32, of an array, or of a tensor on any device."""
    if hasattr(logits, "detach"):  # PyTorch
        logits = logits.detach().float().cpu()
    return np.asarray(logits, np.float32)
