"""Coordinates of everything on the map, in pixels of the drawing.

Intersections have the board file's coordinates, scaled to the map's frame. Sites and waiting
passengers are drawn next to their intersection, where most room is free.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from busenv.game.board import Board

WIDTH, HEIGHT = 1200, 800
LEFT, TOP, RIGHT, BOTTOM = 52, 112, 736, 750  # frame of the intersections
EDGE = 48  # margin around the frame for sites and passengers
NODE = 16  # radius of an intersection
TOKEN, BUBBLE = 14, 20  # radius of a site, and of waiting passengers
STREET = 12  # half the width of a street with its lines
NEAR, STEP = 19, 13  # distance of the first ring of candidate points, and between rings
ANGLES = np.arange(0, 2 * math.pi, math.pi / 36)
DIRECTIONS = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Points in pixels. passengers: where the passengers of each intersection wait."""

    intersections: tuple[Point, ...]
    sites: tuple[Point, ...]
    passengers: tuple[Point, ...]


@functools.lru_cache(maxsize=16)
def scaled_layout(board: Board) -> Layout:
    """Compute the layout of a board, cached since it takes longer than drawing."""
    nodes = _scale(np.array([(i.x, i.y) for i in board.intersections]))
    occupied: list[Point] = []
    for site in board.sites:
        occupied.append(_free_point(site.intersection, TOKEN, nodes, board, occupied))
    for intersection in range(len(nodes)):
        occupied.append(_free_point(intersection, BUBBLE, nodes, board, occupied))
    sites = len(board.sites)
    points = tuple((float(x), float(y)) for x, y in nodes)
    return Layout(points, tuple(occupied[:sites]), tuple(occupied[sites:]))


def _scale(points: np.ndarray) -> np.ndarray:
    """Scale points to the frame and centre them, without stretching."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.maximum(high - low, 1e-9)
    scale = min((RIGHT - LEFT) / size[0], (BOTTOM - TOP) / size[1])
    middle = np.array([(LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2])
    return middle + (points - (low + high) / 2) * scale


def rim(board: Board, intersection: int) -> int:
    """Return the radius of an intersection, larger for roundabouts and stations."""
    entry = board.intersections[intersection]
    return NODE + (8 if entry.train_station else 4 if entry.roundabout else 0)


def _free_point(
    owner: int, size: int, nodes: np.ndarray, board: Board, occupied: list[Point]
) -> Point:
    """Return the point around an intersection with most room, on the first ring that has enough."""
    segments = nodes[np.array(board.streets)]
    others = np.delete(nodes, owner, axis=0)
    best, most = nodes[owner], -math.inf
    for ring in range(6):
        distance = rim(board, owner) + NEAR + STEP * ring
        points = nodes[owner] + distance * DIRECTIONS
        room = _segment_distances(points, segments).min(axis=1) - STREET
        room = np.minimum(room, _distances(points, others).min(axis=1) - NODE)
        if occupied:
            room = np.minimum(room, _distances(points, np.array(occupied)).min(axis=1) - TOKEN)
        room = np.minimum(room, _edge_distances(points))
        index = int(room.argmax())
        if room[index] > most + 1:
            best, most = points[index], room[index]
        if most >= size:
            break
    return float(best[0]), float(best[1])


def _distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the distances of points (n, 2) to other points (k, 2): (n, k)."""
    return np.hypot(*(points[:, None] - others).transpose(2, 0, 1))


def _edge_distances(points: np.ndarray) -> np.ndarray:
    """Return the distances of points to the edge of the map, (n,)."""
    low = points - (LEFT - EDGE, TOP - EDGE)
    high = (RIGHT + EDGE, BOTTOM + EDGE) - points
    return np.minimum(low, high).min(axis=1)


def _segment_distances(points: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Return the distances of points (n, 2) to segments (k, 2, 2): (n, k)."""
    start, way = segments[:, 0], segments[:, 1] - segments[:, 0]
    rest = points[:, None] - start
    along = (rest * way).sum(axis=2) / np.maximum((way**2).sum(axis=1), 1e-9)
    return np.hypot(*(rest - np.clip(along, 0, 1)[..., None] * way).transpose(2, 0, 1))
