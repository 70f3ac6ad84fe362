"""Untrained networks, and positions to evaluate."""

from collections.abc import Sequence

import numpy as np
import torch

from busenv import EDITIONS, Board, Game, load_board
from busenv.core.state import GAME
from busenv.networks.board_network import BoardNetwork
from busenv.networks.factory import build_network
from busenv.networks.mlp import Mlp

CITY = load_board("city")


def positions(
    count: int = 600, board: Board = CITY, players: Sequence[int] = (3, 4, 5)
) -> np.ndarray:
    """Positions (GAME, (count,)) of random play under every edition, none of them over."""
    rng = np.random.default_rng(4)
    games = np.zeros(count, GAME)
    game = Game(players[0], board=board, seed=0)
    for k in range(count):
        for _ in range(3):
            game.step(int(rng.choice(game.legal_actions())))
            if game.is_over:
                game = Game(players[k % len(players)], [*EDITIONS][k % 4], board, seed=k)
        games[k] = game.arrays()[0][0]
    return games


def random_network(
    kind: str, width: int, board: Board = CITY, *, relative_types: bool = False
) -> Mlp | BoardNetwork:
    """A network without zero biases: random numbers are added to its initial weights."""
    network = build_network(kind, board, width, seed=1, relative_types=relative_types)
    assert isinstance(network, Mlp | BoardNetwork)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in network.parameters():
            spread = 1 / np.sqrt(weight.shape[-1])
            weight += torch.randn(weight.shape, generator=generator) * spread
    return network


def small_network(width: int = 8, seed: int = 1) -> Mlp:
    """A network with values for every seat, at its initial weights."""
    network = build_network("seats", CITY, width, seed)
    assert isinstance(network, Mlp)
    return network


def decisive_network(width: int = 16) -> Mlp:
    """An untrained network whose policy and values differ clearly between positions."""
    network = small_network(width)
    network.get_parameter("policy.2.weight").data *= 300
    network.get_parameter("value.2.weight").data *= 30
    return network
