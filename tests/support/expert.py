"""Samples and small runs for tests of expert iteration."""

from functools import cache

import numpy as np
import torch

from busenv import load_board
from busenv.agents import make_agent
from busenv.agents.networks.compiled_network import Weights, read_weights
from busenv.agents.networks.mlp import SeatsMlp, build_network
from busenv.game.rules import as_rules
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.teacher_data import play_teacher_games

CITY = load_board("city")
RULES = as_rules("capstone-2024")
SMALL = ExpertConfig(
    width=8, games=2, batch_size=32, num_simulations=4, fast_simulations=2, full_search_share=0.5,
    past_share=0.5, bot_share=0.25, bot_simulations=4, replay_size=400, reuse=2.0, snapshot_every=2,
    seconds=None, decisions=500, rated=("random",), rate_games=4, rate_every=1e6,
)  # fmt: skip


@cache
def teacher_samples() -> np.ndarray:
    """Samples of a network's games with 3, 4 and 5 players."""
    counts, rng = np.resize((3, 4, 5), 12), np.random.default_rng(1)
    teacher = make_agent("net@1:city-2")
    return play_teacher_games(teacher, CITY, RULES, num_players=counts, sample_share=0.2, rng=rng)


def small_network(width: int = 8) -> SeatsMlp:
    """A network at its initial weights."""
    network = build_network("seats", CITY, width, seed=1)
    assert isinstance(network, SeatsMlp)
    return network


def decisive_network() -> SeatsMlp:
    """A network at its initial weights whose outputs are far from uniform."""
    network = small_network()
    with torch.no_grad():
        for layer in (network.policy[-1], network.value[-1]):
            layer.weight.mul_(1000)
    return network


def small_weights(seed: int) -> Weights:
    """Weights of a network at its initial weights."""
    network = build_network("seats", CITY, 8, seed)
    assert isinstance(network, SeatsMlp)
    return read_weights(network)
