"""Plays the games of a schedule on Ray's cluster; see `ratings.tournament` for what a game is.

A call plays some games, one after the other, in a process that keeps its agents for the next call.
A call whose node is lost is made again, so that no game is missing and none is there twice.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from busenv import cluster
from busenv.experiments.common.runs import RunError
from busenv.experiments.ratings.dependencies import (
    Model,
    build,
    file_hashes,
    is_program,
    read_models,
)
from busenv.experiments.ratings.schedule import Schedule
from busenv.experiments.ratings.tournament import close_agents, play_game
from busenv.interrupts import interrupts_deferred

AHEAD = 3  # calls handed out to each core at a time
SECONDS = 2.0  # that a call is to take: calls of half a second take a tenth of two cores
LOOK = 0.1  # seconds between looks whether Ctrl-C has come


class WorkerPayload(NamedTuple):
    """What a process needs to play a schedule's games.

    models: see `ratings.needs`. programs: hashes of the files that programs' specs name here, seen
    from `folder`, where a node has such a folder.
    """

    schedule: Schedule
    models: dict[str, Model]
    programs: dict[str, str]
    folder: str


_settled: list[str] = []  # the key of the kit that this process plays by


def play_on_cluster(
    schedule: Schedule, numbers: list[int]
) -> Generator[list[dict[str, Any]], None, None]:
    """Play the games of these numbers, and hand them over as they end, some at a time.

    Ctrl-C is held back until the end: then games that have not ended are given up, those that have
    are handed over. RunError when a node lacks what an agent needs, `cluster.ClusterError` when the
    cluster cannot go on.
    """
    kit = cluster.Shared(
        WorkerPayload(
            schedule, read_models(schedule.specs), file_hashes(_programs(schedule)), os.getcwd()
        )
    )
    left, size = list(reversed(numbers)), 1
    running: list[Any] = []
    with interrupts_deferred() as interrupted:
        while not interrupted:
            cores = max(cluster.cores(), 1)
            while left and len(running) < AHEAD * cores:
                some = [left.pop() for _ in range(min(size, -(-len(left) // (2 * cores))))]
                running.append(cluster.call(play_chunk, kit, some))
            if not running:
                return
            done, running = cluster.ready(running, LOOK)
            for call in done:
                games, seconds = cluster.result(call)
                size = max(1, min(2 * size, int(SECONDS * len(games) / seconds)))
                yield games
        yield [game for call in cluster.ready(running, 0)[0] for game in cluster.result(call)[0]]


def play_chunk(
    kit: cluster.Shared[WorkerPayload], numbers: list[int]
) -> tuple[list[dict[str, Any]], float]:
    """Some games of a kit's schedule, played here, and the seconds that they took."""
    found = kit.get()
    if _settled != [kit.key]:
        close_agents()
        _check_programs(found)
        _settled[:] = [kit.key]
    began = time.perf_counter()
    made = partial(build, models=found.models)
    games = [play_game(found.schedule, number, made) for number in numbers]
    return games, time.perf_counter() - began


def _programs(schedule: Schedule) -> tuple[str, ...]:
    return tuple(spec for spec in dict.fromkeys(schedule.specs) if is_program(spec))


def _check_programs(kit: WorkerPayload) -> None:
    """RunError unless programs are here as they are where the run began."""
    with suppress(OSError):
        os.chdir(kit.folder)
    found = file_hashes(_programs(kit.schedule))
    for spec in _programs(kit.schedule):
        if found.get(spec) != kit.programs.get(spec):
            raise RunError(
                f"agent {spec!r}: its files are not on node {socket.gethostname()} as they are "
                f"here; a program must lie at the same place on every node, seen from {kit.folder}"
            )
