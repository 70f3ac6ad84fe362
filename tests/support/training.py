"""Small training runs of both methods, their samples, and comparison of their parameters."""

from functools import cache

import numpy as np
import pytest
import torch

from busenv.agents import make_agent
from busenv.game.rules import as_rules
from busenv.train.config import PPOConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.selfplay_run import play_agent_games
from busenv.train.training_run import TrainingRun
from tests.support.networks import CITY

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    ),
]
RULES = as_rules("capstone-2024")
SMALL_PPO = PPOConfig(
    width=8, players=(3, 4), games=4, batch_size=64, snapshot_every=2, pool_size=2,
    steps=40, opponent_share=0.4, threads=1, device="cpu", seconds=None, decisions=1200,
    rate_games=4, bots=("greedy",), rated=("random",),
)  # fmt: skip
SMALL_EXPERT = ExpertConfig(
    width=8, games=2, batch_size=32, num_simulations=4, fast_simulations=2, full_search_share=0.5,
    bot_share=0.5, bot_simulations=4, replay_size=400, reuse=2.0, players=(3, 4, 5),
    seconds=None, decisions=500, rated=("random",), rate_games=4, rate_every=1e6, threads=1,
)  # fmt: skip


@cache
def network_samples() -> np.ndarray:
    """Samples of a network's games with 3, 4 and 5 players. Callers do not change them."""
    counts, rng = np.resize((3, 4, 5), 12), np.random.default_rng(1)
    agent = make_agent("net@1:city-2")
    return play_agent_games(agent, CITY, RULES, num_players=counts, sample_share=0.2, rng=rng)


def parameters(run: TrainingRun) -> dict[str, torch.Tensor]:
    """A copy of a run's parameters."""
    return {name: value.clone() for name, value in run.network.state_dict().items()}


def same_tensors(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of named tensors are equal bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
