"""Self-play on a Ray cluster, a few games per call. Its nodes do not import torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from busenv import cluster
from busenv.networks.compiled_network import copy_weights
from busenv.train.expert_iteration.expert_selfplay import GameSpecs, SelfPlayPayload, play_games

GAMES_PER_CALL = 4  # some seconds of work


def start_on_cluster(games: GameSpecs, payload: SelfPlayPayload) -> Callable[[], list[np.ndarray]]:
    """Start games on the cluster.

    Returns a function that waits for them and returns the samples (SAMPLE, (n,)) of each game.
    """
    shared = cluster.Shared(payload)
    starts = range(0, len(games.seeds), GAMES_PER_CALL)
    calls = [
        cluster.call(_play_on_node, shared, games.part(slice(k, k + GAMES_PER_CALL)))
        for k in starts
    ]
    return lambda: [samples for call in calls for samples in cluster.result(call)]


def _play_on_node(shared: cluster.Shared[SelfPlayPayload], games: GameSpecs) -> list[np.ndarray]:
    payload = shared.get()
    payload = payload._replace(  # Ray's arrays are read-only, kernels take writable ones
        weights=copy_weights(payload.weights), past_weights=copy_weights(payload.past_weights)
    )
    return play_games(games.part(slice(None)), payload)
