"""Workers that each play a part of a PPO rollout's games: local threads, or tasks on Ray.

A Ray worker needs torch only for an opponent or teacher that is a model's file.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from busenv import cluster
from busenv.agents import Agent, make_agent
from busenv.agents.networks.compiled_network import Weights, copy_weights, read_weights
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.train.selfplay import Decisions, SelfPlayGames, play_rollout

Part = tuple[SelfPlayGames, np.ndarray, int]  # games, their seats' owners, a seed
PlayedPart = tuple[SelfPlayGames, Decisions]


class RolloutPayload(NamedTuple):
    """The players of a rollout's games.

    learner: a torch network, or its arrays. opponents: an agent's spec, or a past self's network.
    teacher: a spec, "" for none. temperature: of the learner's play.
    """

    learner: Any
    opponents: tuple[Any, ...]
    teacher: str
    temperature: float


class ThreadWorkers:
    """Threads of this process that play parts of a rollout in parallel."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "rollout")

    def play(self, payload: RolloutPayload, parts: Sequence[Part]) -> list[PlayedPart]:
        """Play the parts to their ends; they end early when this thread is interrupted."""
        if len(parts) == 1:
            return [_play_part(payload, *parts[0])]
        interrupted = threading.Event()
        played = [self._threads.submit(_play_part, payload, *p, interrupted) for p in parts]
        try:
            return [future.result() for future in played]
        except BaseException:
            interrupted.set()
            raise


class RayWorkers:
    """Tasks on the cluster that this process is connected to (`busenv.cluster`)."""

    def play(self, payload: RolloutPayload, parts: Sequence[Part]) -> list[PlayedPart]:
        """Play the parts to their ends."""
        opponents = tuple(o if isinstance(o, str) else read_weights(o) for o in payload.opponents)
        learner = read_weights(payload.learner)
        shared = cluster.Shared(payload._replace(learner=learner, opponents=opponents))
        calls = [cluster.call(_play_on_node, shared, *part) for part in parts]
        return [cluster.result(call) for call in calls]


def _play_on_node(
    payload: cluster.Shared[RolloutPayload], games: SelfPlayGames, seat_owner: np.ndarray, seed: int
) -> PlayedPart:
    # Arrays from Ray are read-only.
    return _play_part(payload.get(), copy.deepcopy(games), seat_owner, seed)


def _play_part(
    payload: RolloutPayload,
    games: SelfPlayGames,
    seat_owner: np.ndarray,
    seed: int,
    interrupted: threading.Event | None = None,
) -> PlayedPart:
    """Play games to their ends in this thread, with the thread's own agents."""
    opponents = [
        _agent(one) if isinstance(one, str) else PolicyAgent(_unpack(one), games.board)
        for one in payload.opponents
    ]
    decisions = play_rollout(
        _unpack(payload.learner), games, seat_owner, opponents, seed,
        teacher=_agent(payload.teacher) if payload.teacher else None,
        temperature=payload.temperature, interrupted=interrupted,
    )  # fmt: skip
    return games, decisions


_agents = threading.local()


def _agent(spec: str) -> Agent:
    """Return this thread's agent of a spec, which is created at its first game."""
    agents: dict[str, Agent] = _agents.__dict__
    if spec not in agents:
        agents[spec] = make_agent(spec)
    return agents[spec]


def _unpack(network: Any) -> Any:
    """Return a torch network, or weights in writable arrays, since those of Ray are read-only."""
    return copy_weights(network) if isinstance(network, Weights) else network
