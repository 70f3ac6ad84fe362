"""Play the games of a schedule on a Ray cluster; `busenv.evaluation.tournament` defines a game.

Each call plays some games in a process that keeps its agents for later calls. Ray repeats the calls
of a lost node on another one.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import partial
from typing import Any, NamedTuple

from busenv import cluster
from busenv.agents.dependencies import Model, build_agent, read_models
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tournament import close_agents, play_game

CALLS_PER_CORE = 3  # calls in flight
POLL_SECONDS = 0.1  # between looks at the number of cores
CALL_SECONDS = 2.0  # target of a call; the overhead of shorter ones takes a tenth of two cores


class RatingPayload(NamedTuple):
    """Data that a process needs to play a schedule's games.

    models: see `dependencies.read_models`.
    """

    schedule: Schedule
    models: dict[str, Model]


_current_payload = ""  # key of the payload that this process's agents belong to


def play_on_cluster(
    schedule: Schedule, numbers: list[int]
) -> Generator[list[dict[str, Any]], None, None]:
    """Play the games with these numbers, and yield them in groups as they end.

    Raises `cluster.ClusterError` when the cluster fails.
    """
    payload = cluster.Shared(RatingPayload(schedule, read_models(schedule.specs)))
    remaining, size = list(reversed(numbers)), 1
    running: list[Any] = []
    while remaining or running:
        num_cpus = max(cluster.num_cpus(), 1)
        while remaining and len(running) < CALLS_PER_CORE * num_cpus:
            count = min(size, -(-len(remaining) // (2 * num_cpus)))
            chunk = [remaining.pop() for _ in range(count)]
            running.append(cluster.call(play_chunk, payload, chunk))
        done, running = cluster.ready(running, POLL_SECONDS)
        for call in done:
            games, seconds = cluster.result(call)
            size = max(1, min(2 * size, int(CALL_SECONDS * len(games) / seconds)))
            yield games


def play_chunk(
    shared: cluster.Shared[RatingPayload], numbers: list[int]
) -> tuple[list[dict[str, Any]], float]:
    """Play some games in this process, and return them with the duration in seconds."""
    global _current_payload
    payload = shared.get()
    if _current_payload != shared.key:
        close_agents()
        _current_payload = shared.key
    start = time.perf_counter()
    build = partial(build_agent, models=payload.models)
    games = [play_game(payload.schedule, number, build) for number in numbers]
    return games, time.perf_counter() - start
