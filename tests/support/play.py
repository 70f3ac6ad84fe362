"""Random play in styles that reach rare positions: long games, loops, full boards, stopped clocks.

Uniformly random play passes early and seldom loops. A style is a weight for each kind of action.
"""

import random
from typing import Any

import numpy as np

from busenv import Board, Game, Rules, decode
from busenv.core import kernels
from busenv.core.state import BoardAction

# Weights by kind of action; 1 for what is not named. "join" weighs a street that leads back to an
# intersection of one's own line.
STYLES: tuple[dict[object, float], ...] = (
    {},  # uniform
    {"pass": 30},  # as few markers a round as possible: the longest games
    {"pass": 0.02},  # all markers at once: full spaces
    {"pass": 8, BoardAction.CLOCK: 20, "stop": 30},  # stopped clocks
    {"pass": 8, BoardAction.BUSES: 20, BoardAction.VRROOOMM: 4, BoardAction.PASSENGERS: 3},  # buses
    {"pass": 3, BoardAction.BUSES: 30, BoardAction.BUILDINGS: 8},  # a full board
    {
        "pass": 3,
        BoardAction.BUSES: 9,
        BoardAction.LINE_EXPANSION: 9,
        "join": 12,
    },  # long lines and loops
    {
        "pass": 8,
        BoardAction.BUSES: 9,
        BoardAction.LINE_EXPANSION: 4,
        BoardAction.PASSENGERS: 3,
        "join": 3,
    },
    {"pass": 20, BoardAction.BUSES: 9, BoardAction.LINE_EXPANSION: 9, "stop": 0.1, "join": 5},
)


def choose(
    rng: random.Random,
    board: Board,
    legal: list[int],
    style: dict[object, float],
    visited: set[int],
) -> int:
    """One of the legal actions in a style; `visited` are the intersections on the mover's line."""
    return rng.choices(legal, [_weight(board, action, style, visited) for action in legal])[0]


def _weight(board: Board, action: int, style: dict[object, float], visited: set[int]) -> float:
    kind, subject, detail = decode(board, action)
    if kind == "place":
        return style.get(BoardAction(subject), 1)
    if kind == "clock":
        return style.get("stop", 1) if subject else 1
    if kind == "grow":
        return style.get("join", 1) if board.streets[subject][1 - detail] in visited else 1
    return style.get(kind, 1)


def picks(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random legal action for every row of masks."""
    return np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)


def seen_by(games: np.ndarray, board: Board, seats: np.ndarray) -> np.ndarray:
    """Observations of games by seats (int64, (N,)): uint8, (N, length)."""
    rows = np.zeros((len(games), kernels.observation_length(board.array)), np.uint8)
    kernels.observe_seats(games, board.array, seats, rows)
    return rows


def played(
    num_players: int = 4,
    seed: int = 5,
    *,
    rules: str | Rules = "capstone-2024",
    plies: int = 10_000,
    **setup: Any,
) -> Game:
    """A game of uniformly random play, to its end or for a number of plies."""
    rng = random.Random(seed)
    game = Game(num_players, rules, seed=seed, **setup)
    while not game.is_over and len(game.history) < plies:
        game.step(rng.choice(game.legal_actions()))
    return game


def paid(game: Game, reward: str) -> list[float]:
    """The rewards of a finished game by seat, computed from its result."""
    places, points, others = game.ranking(), np.array(game.points), game.num_players - 1
    if reward == "deliveries":
        return [float(count) for count in game.deliveries]
    if reward == "margin":
        return list(points - (points.sum() - points) / others)
    if reward == "rank":
        return [1 - 2 * place / others for place in places]
    return [1.0 if place == 0 else -1 / others for place in places]
