"""What tests of expert iteration learn from and train."""

from __future__ import annotations

from functools import cache

import numpy as np

from busenv import load_board
from busenv.agents import make_agent
from busenv.agents.networks.compiled_mlp import Weights, read_weights
from busenv.agents.networks.mlp import SeatsMlp, build_network
from busenv.game.rules import as_rules
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.teacher_data import taught_rows

CITY = load_board("city")
RULES = as_rules("capstone-2024")
SMALL = ExpertConfig(
    width=8, games=2, batch_size=32, num_simulations=4, fast_simulations=2, full_search_share=0.5, past_share=0.5, bot_share=0.25,
    bot_simulations=4, replay_size=400, reuse=2.0, snapshot_every=2, seconds=None, decisions=500,
    rated=("random",), rate_games=4, rate_every=1e6,
)  # fmt: skip


@cache
def teachers_rows() -> np.ndarray:
    """Rows of a network's games, of 3, 4 and 5 players."""
    rng = np.random.default_rng(1)
    return taught_rows(make_agent("net@1:city-2"), CITY, RULES, (3, 4, 5), 12, 0.2, rng)


def small_weights(seed: int) -> Weights:
    """Of a network that has learned nothing."""
    network = build_network("seats", CITY, 8, seed)
    assert isinstance(network, SeatsMlp)
    return read_weights(network)
