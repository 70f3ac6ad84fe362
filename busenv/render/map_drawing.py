"""The map as SVG: streets with lines, intersections, sites, buildings and passengers."""

from __future__ import annotations

import math
from functools import lru_cache

from busenv.game.board import Board
from busenv.game.position import Position
from busenv.render.layout import BUBBLE, NODE, TOKEN, Point, rim, scaled_layout
from busenv.render.pieces import BUILDINGS, PAWN, disc, highlighted, line_segment, placed, text

ROAD = 20  # width of a street
MAX_LINE_WIDTH = 8  # lines that share a street are narrower
FIRST_END = 12  # distance of the first line end from an intersection's rim
NEXT_END = 22  # maximum distance between two line ends


@lru_cache(maxsize=8)
def draw_ground(board: Board) -> str:
    """Draw the streets and the connections between sites and intersections."""
    layout = scaled_layout(board)
    nodes = layout.intersections
    roads = "".join(
        f"M{nodes[a][0]:.1f} {nodes[a][1]:.1f}L{nodes[b][0]:.1f} {nodes[b][1]:.1f}"
        for a, b in board.streets
    )
    connectors = "".join(
        _connector(nodes[site.intersection], layout.sites[i], NODE)
        for i, site in enumerate(board.sites)
    )
    return (
        f'<path d="{roads}" class="kerb" stroke-width="{ROAD}"/>'
        f'<path d="{roads}" class="road" stroke-width="{ROAD - 3}"/>{connectors}'
    )


@lru_cache(maxsize=8)
def draw_intersections(board: Board) -> str:
    """Draw the intersections with their numbers."""
    points = scaled_layout(board).intersections
    return "".join(
        intersection(x, y, entry.roundabout, entry.train_station) + text(x, y + 6.5, i, anchor="m")
        for i, ((x, y), entry) in enumerate(zip(points, board.intersections, strict=True))
    )


def intersection(x: float, y: float, roundabout: bool, station: bool) -> str:
    """Draw an intersection: stations are square, roundabouts have a ring."""
    drawn = ""
    if station:
        size = NODE + 4
        drawn += (
            f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size}" height="{2 * size}" '
            f'rx="3" class="track"/><path d="M{x - size:.1f} {y - size + 2.5:.1f}h{2 * size}'
            f'M{x - size:.1f} {y + size - 2.5:.1f}h{2 * size}" stroke="#fff" stroke-width="2" '
            'stroke-dasharray="3 3"/>'
        )
    if roundabout:
        drawn += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{NODE + 4}" class="node"/>'
    return drawn + f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{NODE}" class="node"/>'


def draw_streets(board: Board, position: Position) -> list[str]:
    """Draw, for each street, its lines side by side in order of seat, and their ends."""
    users: list[list[int]] = [[] for _ in board.streets]
    for seat, streets in enumerate(position.streets):
        for street in streets:
            users[street].append(seat)
    return [_lines(board, position, street, seats) for street, seats in enumerate(users)]


def _lines(board: Board, position: Position, street: int, seats: list[int]) -> str:
    a, b = board.streets[street]
    nodes = scaled_layout(board).intersections
    along, across = _axes(nodes[a], nodes[b])
    pitch = min(MAX_LINE_WIDTH + 1, (ROAD + 2) / max(len(seats), 1))
    segments, ends = [], []
    ends_at = {a: 0, b: 0}
    spacing = _end_spacing(board, position, street, seats)
    for k, seat in enumerate(seats):
        offset = pitch * (k - (len(seats) - 1) / 2)
        x1, y1 = nodes[a][0] + offset * across[0], nodes[a][1] + offset * across[1]
        x2, y2 = nodes[b][0] + offset * across[0], nodes[b][1] + offset * across[1]
        path = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        segments.append(line_segment(seat, path, min(MAX_LINE_WIDTH, pitch)))
        for end, arrival in zip(position.line_ends[seat], position.arrivals[seat], strict=True):
            if arrival == street:
                distance = rim(board, end) + FIRST_END + spacing * ends_at[end]
                ends_at[end] += 1
                x, y, sign = (x1, y1, 1) if end == a else (x2, y2, -1)
                ends.append(
                    disc(seat, x + sign * distance * along[0], y + sign * distance * along[1])
                )
    return "".join(segments + ends)


def _end_spacing(board: Board, position: Position, street: int, seats: list[int]) -> float:
    """Return the distance between two line ends on a street, smaller if there are many."""
    count = sum(position.arrivals[seat].count(street) for seat in seats)
    a, b = board.streets[street]
    nodes = scaled_layout(board).intersections
    room = math.dist(nodes[a], nodes[b]) - rim(board, a) - rim(board, b) - 2 * FIRST_END
    return min(NEXT_END, max(room, 0) / max(count - 1, 1))


def draw_sites(board: Board, position: Position) -> list[str]:
    """Draw, for each site, its building with a passenger indoors, or its zone."""
    sites = [*zip(board.sites, position.buildings, scaled_layout(board).sites, strict=True)]
    open_zone = min((site.zone for site, building, _ in sites if building < 0), default=0)
    indoors = _sites_with_passengers(board, position)
    drawn = []
    for i, (site, building, (x, y)) in enumerate(sites):
        if building < 0:
            drawn.append(free_site(x, y, site.zone, site.zone == open_zone))
        else:
            passenger = placed(PAWN, x + 8, y + 6, 0.95) if i in indoors else ""
            drawn.append(placed(BUILDINGS[building], x, y, 1.15) + passenger)
    return drawn


def free_site(x: float, y: float, zone: int, is_open: bool) -> str:
    """Draw a site without a building, paler if its zone is not open yet."""
    kind = "site" if is_open else "site later"
    return (
        f'<rect x="{x - 11:.1f}" y="{y - 11:.1f}" width="22" height="22" rx="3" class="{kind}"/>'
        + text(round(x, 1), round(y + 6.5, 1), zone, kind="ink" if is_open else "faint", anchor="m")
    )


def _sites_with_passengers(board: Board, position: Position) -> set[int]:
    """Return the sites with a passenger indoors, by the clock's hand (R16)."""
    left, sites = position.passengers.copy(), set()
    for i, site in enumerate(board.sites):
        if position.buildings[i] == position.clock and left[site.intersection]:
            left[site.intersection] -= 1
            sites.add(i)
    return sites


def draw_waiting_passengers(board: Board, position: Position) -> list[str]:
    """Draw the waiting passengers at each intersection."""
    waiting = position.passengers.copy()
    for site in _sites_with_passengers(board, position):
        waiting[board.sites[site].intersection] -= 1
    layout = scaled_layout(board)
    return [
        _connector(layout.intersections[i], layout.passengers[i], rim(board, i))
        + passengers(*layout.passengers[i], count)
        if count
        else ""
        for i, count in enumerate(waiting)
    ]


def passengers(x: float, y: float, count: int) -> str:
    """Draw waiting passengers in a bubble: one figure, with their number if there are several.

    The bubble has the size for which the layout has found room.
    """
    if count == 1:
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="14" class="bubble"/>'
        return circle + placed(PAWN, x, y + 0.5, 1.2)
    return (
        f'<rect x="{x - BUBBLE:.1f}" y="{y - 14:.1f}" width="{2 * BUBBLE}" height="28" rx="14" '
        'class="bubble"/>'
        + placed(PAWN, x - BUBBLE + 10, y + 0.5, 1.1)
        + text(round(x - BUBBLE + (20 if count < 10 else 16), 1), round(y + 6.5, 1), count)
    )


def highlight_street(board: Board, street: int) -> str:
    """Draw a highlight around a street."""
    (x1, y1), (x2, y2) = (scaled_layout(board).intersections[i] for i in board.streets[street])
    length, angle = math.hypot(x2 - x1, y2 - y1), math.degrees(math.atan2(y2 - y1, x2 - x1))
    start, stop = (rim(board, i) + 1 for i in board.streets[street])
    return highlighted(
        f'<rect x="{start}" y="-14" width="{max(length - start - stop, 1):.1f}" height="28" '
        f'rx="9" transform="translate({x1:.1f} {y1:.1f}) rotate({angle:.1f})" class="{{}}"/>'
    )


def highlight_point(point: Point, radius: float = TOKEN + 4) -> str:
    """Draw a highlight around a point."""
    x, y = point
    return highlighted(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{{}}"/>')


def _connector(node: Point, piece: Point, radius: float) -> str:
    """Draw the line between an intersection's rim and a piece next to it."""
    along, _ = _axes(node, piece)
    x, y = node[0] + radius * along[0], node[1] + radius * along[1]
    return f'<path d="M{x:.1f} {y:.1f}L{piece[0]:.1f} {piece[1]:.1f}" class="connector"/>'


def _axes(start: Point, end: Point) -> tuple[Point, Point]:
    """Return the unit vectors along a street and to its right."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max(math.hypot(dx, dy), 1e-9)  # a board may have two intersections at one point
    return (dx / length, dy / length), (-dy / length, dx / length)
