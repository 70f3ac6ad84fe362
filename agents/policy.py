"""An agent that plays by a trained network."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from agents.base import Agent
from busenv import Board, Game
from busenv.board import as_board
from busenv.checks import check_games, check_seed
from busenv.core import playout
from busenv.files import write_whole
from busenv.observation import VERSION, ObservationLayout, spaces_of

HIDDEN = 256
FAVOURITES = 5  # actions that an estimate names


class SharedLayer(BaseFeaturesExtractor):
    """Brings the bytes of an observation to 0..1 and through one layer, shared by both heads."""

    scale: torch.Tensor

    def __init__(self, observation_space: spaces.Box, scale: np.ndarray) -> None:
        super().__init__(observation_space, HIDDEN)
        self.register_buffer("scale", torch.tensor(scale))
        self.layer = nn.Sequential(nn.Linear(len(scale), HIDDEN), nn.ReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layer(observations * self.scale)


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

    def __init__(
        self, policy: MaskableActorCriticPolicy, board: Board, name: str = "ppo", seed: int = 0
    ) -> None:
        self.name = name
        self.policy = policy
        self.board = board
        self._generator = torch.Generator()
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self._generator.manual_seed(check_seed(seed) % 2**63)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        chances = self._distribution(games, board)
        return torch.multinomial(chances, 1, generator=self._generator)[:, 0].numpy()

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """Its likeliest actions; of chances to win it knows nothing."""
        if game.is_over:
            raise ValueError("the game is over: there is nothing to estimate")
        chances = self._distribution(game.arrays()[0], game.board)[0]
        best = torch.topk(chances, min(FAVOURITES, len(game.legal_actions())))
        return [], list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    def _distribution(self, games: np.ndarray, board: Board) -> torch.Tensor:
        """The chance of each action in each game, float32 (N, num_actions)."""
        if board.fingerprint != self.board.fingerprint:
            raise ValueError(f"{self.name} was trained on {self.board!r}, not on {board!r}")
        check_games(games, board)
        rows = np.empty((len(games), playout.observation_size(board.array)), np.uint8)
        masks = np.empty((len(games), board.num_actions), np.bool_)
        bits = np.empty((board.num_actions + 63) // 64, np.uint64)
        playout.observe_seats(games, board.array, games["seat"].astype(np.int64), rows)
        playout.legal_bytes(games, board.array, bits, masks)
        with torch.no_grad():
            chosen = self.policy.get_distribution(torch.from_numpy(rows), masks).distribution
        return cast(torch.distributions.Categorical, chosen).probs


def save_policy(agent: PolicyAgent, path: str | Path) -> None:
    """Write an agent's parameters, with what they were trained to see, whole or not at all."""
    buffer = io.BytesIO()
    content = {
        "observation_version": VERSION,
        "board": agent.board.fingerprint,
        "parameters": agent.policy.state_dict(),
    }
    torch.save(content, buffer)
    write_whole(path, buffer.getvalue())


def load_policy_agent(path: str, seed: int = 0, board: str | Board = "city") -> PolicyAgent:
    """An agent from `save_policy`'s file. Nothing in the file is executed.

    Raises ValueError when it is no such file, or made for other observations or another board.
    """
    loaded = as_board(board)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        version, fingerprint = content["observation_version"], content["board"]
        parameters = content["parameters"]
    except (pickle.UnpicklingError, KeyError, TypeError, EOFError, RuntimeError) as error:
        raise ValueError(f"{path} is no policy file that is safe to load") from error
    if version != VERSION:
        raise ValueError(
            f"{path} sees observations of version {version}; this busenv has {VERSION}"
        )
    if fingerprint != loaded.fingerprint:
        raise ValueError(f"{path} was trained on another board than {loaded!r}")
    settings = policy_settings(loaded)
    policy = MaskableActorCriticPolicy(*spaces_of(loaded), lambda _: 0.0, **settings)
    policy.load_state_dict(parameters)
    policy.set_training_mode(False)
    return PolicyAgent(policy, loaded, f"ppo:{path}", seed)
