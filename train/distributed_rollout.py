"""The games of a rollout of PPO on Ray's cluster: whole games, in the parts that they have anyway.

A process there needs torch only for a network that is not compiled, and for an opponent or teacher
that is a model's file.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from busenv import Board, cluster
from busenv.agents import Agent, make_agent
from busenv.agents.networks.compiled_mlp import Weights, read_weights
from busenv.agents.networks.inference import Forward, is_compiled, make_forward
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.train.ppo_selfplay import Decisions, play_games
from busenv.train.selfplay_games import SelfPlayGames

Part = tuple[SelfPlayGames, np.ndarray, int]  # games, whose seats are, a seed


class Network(NamedTuple):
    """A network that torch calls: its kind and width, and its weights by name."""

    kind: str
    width: int
    weights: dict[str, np.ndarray]


class Hands(NamedTuple):
    """Who plays the games of a rollout. opponents: specs, or the weights of past selves."""

    learner: Weights | Network
    opponents: tuple[str | Weights | Network, ...]
    teacher: str
    temperature: float


def pack(network: Any, kind: str, width: int) -> Weights | Network:
    """A torch network as arrays."""
    there = copy.deepcopy(network).cpu()
    if is_compiled(there):
        return read_weights(there)
    return Network(kind, width, {k: v.numpy() for k, v in there.state_dict().items()})


def play_on_cluster(hands: Hands, parts: Sequence[Part]) -> list[tuple[SelfPlayGames, Decisions]]:
    """The parts played to their ends, and the learner's decisions in each."""
    shared = cluster.Shared(hands)
    calls = [cluster.call(play_part, shared, *part) for part in parts]
    return [cluster.result(call) for call in calls]


def play_part(
    hands: cluster.Shared[Hands], games: SelfPlayGames, seat_owner: np.ndarray, seed: int
) -> tuple[SelfPlayGames, Decisions]:
    """What a node does."""
    found = hands.get()
    games = games.part(slice(None))  # what has come cannot be written to
    opponents = [
        _bot(one) if isinstance(one, str) else PolicyAgent(_unpack(one, games.board), games.board)
        for one in found.opponents
    ]
    forward: Forward = make_forward(_unpack(found.learner, games.board))
    teacher = _bot(found.teacher) if found.teacher else None
    decisions = play_games(forward, games, seat_owner, opponents, seed, teacher, found.temperature)
    return games, decisions


@cache
def _bot(spec: str) -> Agent:
    """An agent of this process, built at its first game and kept."""
    return make_agent(spec)


def _unpack(packed: Weights | Network, board: Board) -> Any:
    """What plays: compiled kernels take arrays that can be written to."""
    if isinstance(packed, Weights):
        return Weights(*map(np.array, packed))
    import torch

    from busenv.agents.networks.mlp import build_network

    torch.set_num_threads(1)
    network = build_network(packed.kind, board, packed.width)
    network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in packed.weights.items()})
    return network
