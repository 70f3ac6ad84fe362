"""An agent that plays by a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from agents.base import Agent
from busenv import Board, load_board
from busenv.core import playout
from busenv.observation import ObservationLayout

HIDDEN = 256


class SharedLayer(BaseFeaturesExtractor):
    """Brings the bytes of an observation to 0..1 and through one layer, shared by both heads."""

    scale: torch.Tensor

    def __init__(self, observation_space: spaces.Box, scale: np.ndarray) -> None:
        super().__init__(observation_space, HIDDEN)
        self.register_buffer("scale", torch.tensor(scale))
        self.layer = nn.Sequential(nn.Linear(len(scale), HIDDEN), nn.ReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layer(observations * self.scale)


def spaces_of(board: Board) -> tuple[spaces.Box, spaces.Discrete]:
    """Observation and action space on a board."""
    size = ObservationLayout(board).size
    return spaces.Box(0, 255, (size,), np.uint8), spaces.Discrete(board.num_actions)


def policy_settings(board: Board) -> dict[str, Any]:
    """Arguments of sb3-contrib's MaskableActorCriticPolicy for a board."""
    return {
        "features_extractor_class": SharedLayer,
        "features_extractor_kwargs": {"scale": ObservationLayout(board).scale},
        "net_arch": {"pi": [HIDDEN], "vf": [HIDDEN]},
        "activation_fn": nn.ReLU,
    }


class PolicyAgent(Agent):
    """Samples from a policy's distribution over the legal actions, one forward pass a batch."""

    def __init__(self, policy: MaskableActorCriticPolicy, name: str = "ppo", seed: int = 0) -> None:
        self.name = name
        self.policy = policy
        self._generator = torch.Generator().manual_seed(seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        rows = np.empty((len(games), playout.observation_size(board.array)), np.uint8)
        masks = np.empty((len(games), board.num_actions), np.bool_)
        bits = np.empty((board.num_actions + 63) // 64, np.uint64)
        playout.observe_seats(games, board.array, games["seat"].astype(np.int64), rows)
        playout.legal_bytes(games, board.array, bits, masks)
        with torch.no_grad():
            chosen = self.policy.get_distribution(torch.from_numpy(rows), masks).distribution
            chances = cast(torch.distributions.Categorical, chosen).probs
            actions = torch.multinomial(chances, 1, generator=self._generator)
        return actions[:, 0].numpy()


def save_policy(policy: MaskableActorCriticPolicy, path: Path) -> None:
    """Write a policy's parameters."""
    torch.save(policy.state_dict(), path)


def load_policy_agent(path: str, seed: int = 0, board: str = "city") -> PolicyAgent:
    """An agent from `save_policy`'s file. Nothing in the file is executed."""
    loaded = load_board(board)
    settings = policy_settings(loaded)
    policy = MaskableActorCriticPolicy(*spaces_of(loaded), lambda _: 0.0, **settings)
    policy.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    policy.set_training_mode(False)
    return PolicyAgent(policy, f"ppo:{path}", seed)
