"""Where everything on the map stands, in pixels of the drawing.

Intersections stand where the board file puts them, scaled to the map's frame. Each site, and the
place where the passengers of an intersection wait, is put beside its intersection where most room
is left.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from busenv.game.board import Board

WIDTH, HEIGHT = 1200, 800
LEFT, TOP, RIGHT, BOTTOM = 52, 112, 736, 750  # the frame in which the intersections stand
EDGE = 48  # around that frame, the room for what stands beside them
NODE = 16  # radius of an intersection's disc
TOKEN, BUBBLE = 14, 20  # radius of a site, and of waiting passengers
STREET = 12  # half the width of a street with its lines
NEAR, STEP = 19, 13  # first distance of a token from its intersection's rim, and how it grows
ANGLES = np.arange(0, 2 * math.pi, math.pi / 36)
AROUND = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Points in pixels. people: by intersection, where its passengers wait."""

    intersections: tuple[Point, ...]
    sites: tuple[Point, ...]
    people: tuple[Point, ...]


@functools.lru_cache(maxsize=16)
def lay_out(board: Board) -> Layout:
    """Find a place for everything on a board; remembered, since that takes longer than drawing."""
    nodes = _scaled(np.array([(i.x, i.y) for i in board.intersections]))
    if not _drawable(nodes, board):
        nodes = _ellipse(len(nodes))
    taken: list[Point] = []
    for site in board.sites:
        taken.append(_roomiest(site.intersection, TOKEN, nodes, board, taken))
    for place in range(len(nodes)):
        taken.append(_roomiest(place, BUBBLE, nodes, board, taken))
    sites = len(board.sites)
    return Layout(
        tuple((float(x), float(y)) for x, y in nodes), tuple(taken[:sites]), tuple(taken[sites:])
    )


def _scaled(points: np.ndarray) -> np.ndarray:
    """Fit points into the frame, in its middle, without stretching them."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.maximum(high - low, 1e-9)
    scale = min((RIGHT - LEFT) / size[0], (BOTTOM - TOP) / size[1])
    middle = np.array([(LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2])
    return middle + (points - (low + high) / 2) * scale


def _drawable(nodes: np.ndarray, board: Board) -> bool:
    """Whether no intersection stands on another one or on a street that passes it by."""
    streets = np.array(board.streets)
    apart = _between(nodes, nodes)
    np.fill_diagonal(apart, np.inf)
    if apart.min() < 2 * NODE:
        return False
    passing = _distances(nodes, nodes[streets])
    passing[streets.T, np.arange(len(streets))] = np.inf
    return bool(passing.min() >= NODE)


def _ellipse(count: int) -> np.ndarray:
    """Points on an ellipse: no street between two of them touches a third."""
    turn = 2 * math.pi * np.arange(count) / count - math.pi / 2
    x = (LEFT + RIGHT) / 2 + (RIGHT - LEFT) / 2 * np.cos(turn)
    y = (TOP + BOTTOM) / 2 + (BOTTOM - TOP) / 2 * np.sin(turn)
    return np.column_stack([x, y])


def rim(board: Board, intersection: int) -> int:
    """Radius of an intersection as it is drawn: discs, wider as roundabout or station."""
    entry = board.intersections[intersection]
    return NODE + (8 if entry.train_station else 4 if entry.roundabout else 0)


def _roomiest(owner: int, size: int, nodes: np.ndarray, board: Board, taken: list[Point]) -> Point:
    """The spot around an intersection with most room; further out where it is crowded."""
    segments = nodes[np.array(board.streets)]
    others = np.delete(nodes, owner, axis=0)
    best, most = nodes[owner], -math.inf
    for ring in range(6):
        distance = rim(board, owner) + NEAR + STEP * ring
        spots = nodes[owner] + distance * AROUND
        room = _distances(spots, segments).min(axis=1) - STREET
        room = np.minimum(room, _between(spots, others).min(axis=1) - NODE)
        if taken:
            room = np.minimum(room, _between(spots, np.array(taken)).min(axis=1) - TOKEN)
        room = np.minimum(room, _inside(spots))
        spot = int(room.argmax())
        if room[spot] > most + 1:
            best, most = spots[spot], room[spot]
        if most >= size:
            break
    return float(best[0]), float(best[1])


def _between(spots: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance of each spot (n, 2) to each point (k, 2): (n, k)."""
    return np.hypot(*(spots[:, None] - points).transpose(2, 0, 1))


def _inside(spots: np.ndarray) -> np.ndarray:
    """How far each spot is from the edge of the map, (n,)."""
    low = spots - (LEFT - EDGE, TOP - EDGE)
    high = (RIGHT + EDGE, BOTTOM + EDGE) - spots
    return np.minimum(low, high).min(axis=1)


def _distances(spots: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Distance of each spot (n, 2) to each segment (k, 2, 2): (n, k)."""
    start, way = segments[:, 0], segments[:, 1] - segments[:, 0]
    rest = spots[:, None] - start
    along = np.clip((rest * way).sum(axis=2) / (way**2).sum(axis=1), 0, 1)
    return np.hypot(*(rest - along[..., None] * way).transpose(2, 0, 1))
