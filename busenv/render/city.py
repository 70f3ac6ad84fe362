"""The map: streets with the lines on them, intersections, sites, buildings and passengers."""

from __future__ import annotations

import math
from functools import lru_cache

from busenv.game.board import Board
from busenv.game.position import Position
from busenv.render.layout import NODE, TOKEN, Point, lay_out, rim
from busenv.render.pieces import BUILDINGS, PAWN, disc, halo, put, strand, text

ROAD = 20  # width of a street
WIDEST = 8  # of a line; lines that share a street are narrower, to stay on it
FIRST_END, NEXT_END = 12, 22  # how far from an intersection's rim the ends of lines are marked


@lru_cache(maxsize=8)
def draw_ground(board: Board) -> str:
    """What no game changes: streets, and what ties sites to intersections."""
    where = lay_out(board)
    roads = "".join(
        f"M{where.intersections[a][0]:.1f} {where.intersections[a][1]:.1f}"
        f"L{where.intersections[b][0]:.1f} {where.intersections[b][1]:.1f}"
        for a, b in board.streets
    )
    ties = "".join(
        _tie(where.intersections[site.intersection], where.sites[i], NODE)
        for i, site in enumerate(board.sites)
    )
    return (
        f'<path d="{roads}" class="kerb" stroke-width="{ROAD}"/>'
        f'<path d="{roads}" class="road" stroke-width="{ROAD - 3}"/>{ties}'
    )


@lru_cache(maxsize=8)
def draw_intersections(board: Board) -> str:
    """The intersections with their numbers; stations are square, roundabouts have a ring."""
    drawn = []
    for i, (x, y) in enumerate(lay_out(board).intersections):
        entry = board.intersections[i]
        drawn.append(intersection(x, y, entry.roundabout, entry.train_station))
        drawn.append(text(x, y + 6.5, i, anchor="m"))
    return "".join(drawn)


def intersection(x: float, y: float, roundabout: bool, station: bool) -> str:
    """The sign of an intersection."""
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
    """By street, the lines along it side by side, in order of seat, and their ends."""
    users: list[list[int]] = [[] for _ in board.streets]
    for seat, streets in enumerate(position.streets):
        for street in streets:
            users[street].append(seat)
    return [_lines(board, position, street, seats) for street, seats in enumerate(users)]


def _lines(board: Board, position: Position, street: int, seats: list[int]) -> str:
    """The lines along one street."""
    a, b = board.streets[street]
    nodes = lay_out(board).intersections
    along, across = _axes(nodes[a], nodes[b])
    pitch = min(WIDEST + 1, (ROAD + 2) / max(len(seats), 1))
    strands, ends = [], []
    marked = {a: 0, b: 0}
    step = _between_ends(board, position, street, seats)
    for k, seat in enumerate(seats):
        side = pitch * (k - (len(seats) - 1) / 2)
        x1, y1 = nodes[a][0] + side * across[0], nodes[a][1] + side * across[1]
        x2, y2 = nodes[b][0] + side * across[0], nodes[b][1] + side * across[1]
        strands.append(strand(seat, f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", min(WIDEST, pitch)))
        for end, arrival in zip(position.line_ends[seat], position.arrivals[seat], strict=True):
            if arrival == street:
                away = rim(board, end) + FIRST_END + step * marked[end]
                marked[end] += 1
                x, y, sign = (x1, y1, 1) if end == a else (x2, y2, -1)
                ends.append(disc(seat, x + sign * away * along[0], y + sign * away * along[1]))
    return "".join(strands + ends)


def _between_ends(board: Board, position: Position, street: int, seats: list[int]) -> float:
    """From one line's end on a street to the next one's: closer where there are many."""
    count = sum(position.arrivals[seat].count(street) for seat in seats)
    a, b = board.streets[street]
    nodes = lay_out(board).intersections
    room = math.dist(nodes[a], nodes[b]) - rim(board, a) - rim(board, b) - 2 * FIRST_END
    return min(NEXT_END, max(room, 0) / max(count - 1, 1))


def draw_sites(board: Board, position: Position) -> list[str]:
    """By site its building, with a passenger indoors, or its zone; paler while the zone waits."""
    free = [
        site.zone for site, kind in zip(board.sites, position.buildings, strict=True) if kind < 0
    ]
    open_zone = min(free, default=0)
    indoors = _indoors(board, position)
    return [
        _site(lay_out(board).sites[i], site.zone, position.buildings[i], i in indoors, open_zone)
        for i, site in enumerate(board.sites)
    ]


def _site(where: Point, zone: int, building: int, indoors: bool, open_zone: int) -> str:
    x, y = where
    if building < 0:
        return free_site(x, y, zone, zone == open_zone)
    person = put(PAWN, x + 8, y + 6, 0.95) if indoors else ""
    return put(BUILDINGS[building], x, y, 1.15) + person


def free_site(x: float, y: float, zone: int, is_open: bool) -> str:
    """A site without a building."""
    kind = "site" if is_open else "site later"
    return (
        f'<rect x="{x - 11:.1f}" y="{y - 11:.1f}" width="22" height="22" rx="3" class="{kind}"/>'
        + text(round(x, 1), round(y + 6.5, 1), zone, kind="ink" if is_open else "faint", anchor="m")
    )


def _indoors(board: Board, position: Position) -> set[int]:
    """Sites with a passenger indoors: whom R16 lets in as the clock points now."""
    left, inside = position.passengers.copy(), set()
    for i, site in enumerate(board.sites):
        if position.buildings[i] == position.clock and left[site.intersection]:
            left[site.intersection] -= 1
            inside.add(i)
    return inside


def draw_people(board: Board, position: Position) -> list[str]:
    """By intersection, the passengers who wait there."""
    waiting = position.passengers.copy()
    for site in _indoors(board, position):
        waiting[board.sites[site].intersection] -= 1
    where = lay_out(board)
    return [
        _tie(where.intersections[i], where.people[i], rim(board, i))
        + people(*where.people[i], count)
        if count
        else ""
        for i, count in enumerate(waiting)
    ]


def people(x: float, y: float, count: int) -> str:
    """Waiting passengers in a bubble: one figure, with their number when there are several."""
    if count == 1:
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="14" class="bubble"/>'
        return circle + put(PAWN, x, y + 0.5, 1.2)
    width = 52 if count < 10 else 64
    return (
        f'<rect x="{x - width / 2:.1f}" y="{y - 14:.1f}" width="{width}" height="28" rx="14" '
        'class="bubble"/>'
        + put(PAWN, x - width / 2 + 13, y + 0.5, 1.2)
        + text(round(x - width / 2 + 22, 1), round(y + 6.5, 1), f"×{count}")
    )


def ring_street(board: Board, street: int) -> str:
    """Light up a street."""
    (x1, y1), (x2, y2) = (lay_out(board).intersections[i] for i in board.streets[street])
    length, angle = math.hypot(x2 - x1, y2 - y1), math.degrees(math.atan2(y2 - y1, x2 - x1))
    start, stop = (rim(board, i) + 1 for i in board.streets[street])
    return halo(
        f'<rect x="{start}" y="-14" width="{max(length - start - stop, 1):.1f}" height="28" '
        f'rx="9" transform="translate({x1:.1f} {y1:.1f}) rotate({angle:.1f})" class="{{}}"/>'
    )


def ring_point(where: Point, radius: float = TOKEN + 4) -> str:
    """Light up what stands at a point."""
    return halo(f'<circle cx="{where[0]:.1f}" cy="{where[1]:.1f}" r="{radius:g}" class="{{}}"/>')


def _tie(node: Point, beside: Point, radius: float) -> str:
    """The line from an intersection's rim to what stands beside it."""
    along, _ = _axes(node, beside)
    x, y = node[0] + radius * along[0], node[1] + radius * along[1]
    return f'<path d="M{x:.1f} {y:.1f}L{beside[0]:.1f} {beside[1]:.1f}" class="tie"/>'


def _axes(start: Point, end: Point) -> tuple[Point, Point]:
    """Unit vectors along a street and to its right."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    return (dx / length, dy / length), (-dy / length, dx / length)
