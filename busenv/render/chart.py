"""A chart of one curve per seat over the plies of a game, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from busenv.render.pieces import SEAT_COLOURS, disc, text

WIDTH, HEIGHT = 460, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 426, 16, 170  # frame of the curves
LABEL_DISTANCE = 18  # minimum distance of the labels at the curves' ends
OFFSET = 3  # between curves of equal value
FONT_SIZE = 12

Curve = Sequence[float | None]


def first_plies(rounds: Iterable[int]) -> dict[int, int]:
    """Return the first ply of each round; round 0, the setup, is left out. rounds: by ply."""
    first: dict[int, int] = {}
    for ply, number in enumerate(rounds):
        if number:
            first.setdefault(number, ply)
    return first


def draw_chart(
    title: str,
    curves: Sequence[Curve],
    low: float,
    high: float,
    *,
    rounds: Mapping[int, int],
    ranking: Sequence[int],
    percent: bool = False,
) -> str:
    """Draw one step curve per seat; None leaves a gap. Curves of equal value are side by side.

    low, high: range of the axis. rounds: first ply of each round. ranking: rank by seat, which
    orders the labels of equal curves. percent: whether values are shares of 1.

    The element of class "cursor" marks ply 0. The attributes `data-left` and `data-right` hold the
    coordinates of the first and last ply, `data-top` and `data-bottom` those of high and low.
    """
    plies = max(len(curves[0]) - 1, 1)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'class="bus chart" role="img" aria-label="{title}" data-left="{LEFT}" '
        f'data-right="{RIGHT}" data-top="{TOP}" data-bottom="{BOTTOM}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="panel"/>'
    ]
    middle = (low + high) / 2 if percent else float((low + high) // 2)
    for value in sorted({low, 0.0, middle, high}):
        y = _y(value, low, high)
        words = f"{value:.0%}" if percent else f"{value:g}"
        drawn.append(f'<path d="M{LEFT} {y:.1f}H{RIGHT}" class="grid"/>')
        drawn.append(text(LEFT - 6, round(y + 5, 1), words, FONT_SIZE, "faint", "e"))
    for number, ply in rounds.items():
        x = _x(ply, plies)
        drawn.append(f'<path d="M{x:.1f} {TOP}V{BOTTOM}" class="grid"/>')
        drawn.append(text(round(x, 1), BOTTOM + 20, number, FONT_SIZE, "faint", "m"))
    drawn.append(text(4, BOTTOM + 20, "round", FONT_SIZE, "faint"))
    drawn += _curves(curves, low, high)
    drawn += _labels(curves, low, high, ranking)
    drawn.append(f'<path d="M{LEFT} {TOP}V{BOTTOM}" class="cursor"/></svg>')
    return "".join(drawn)


def _x(ply: int, plies: int) -> float:
    return LEFT + (RIGHT - LEFT) * ply / plies


def _y(value: float, low: float, high: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * (value - low) / max(high - low, 1e-9), 1)


def _curves(curves: Sequence[Curve], low: float, high: float) -> list[str]:
    """Draw the curves; those of equal or nearly equal value are shifted so that all are visible."""
    heights = [_heights(values, low, high) for values in zip(*curves, strict=True)]
    return [
        f'<path d="{_path(curve)}" '
        f'class="line" stroke="{SEAT_COLOURS[seat]}" stroke-width="3" stroke-linecap="square"/>'
        for seat, curve in enumerate(zip(*heights, strict=True))
    ]


def _heights(values: Sequence[float | None], low: float, high: float) -> list[float | None]:
    """Return the heights of the curves at one ply."""
    places = [None if v is None else round(_y(v, low, high) / OFFSET) for v in values]
    heights: list[float | None] = []
    for seat, value in enumerate(values):
        shift = places[:seat].count(places[seat]) - (places.count(places[seat]) - 1) / 2
        heights.append(None if value is None else round(_y(value, low, high) + OFFSET * shift, 1))
    return heights


def _path(heights: Sequence[float | None]) -> str:
    """Return a step curve of heights by ply as the data of a path; None leaves a gap."""
    plies, path, before = max(len(heights) - 1, 1), "", None
    for y, run in groupby(range(len(heights)), key=heights.__getitem__):
        if y is not None:
            within = [*run]
            start, stop = _x(within[0], plies), _x(min(within[-1] + 1, plies), plies)
            path += f"M{start:.1f} {y:g}" if before is None else f"V{y:g}"
            path += f"H{stop:.1f}"
        before = y
    return path


def _labels(curves: Sequence[Curve], low: float, high: float, ranking: Sequence[int]) -> list[str]:
    """Draw each seat's marker at the end of its curve, without overlap."""
    ends = []
    for seat, curve in enumerate(curves):
        last = next((value for value in reversed(curve) if value is not None), low)
        ends.append((_y(last, low, high), ranking[seat], seat))
    ends.sort()
    drawn, free = [], TOP - 6.0
    for k, (y, _, seat) in enumerate(ends):
        lowest = BOTTOM + 6 - LABEL_DISTANCE * (len(ends) - 1 - k)
        free = min(max(y, free), lowest)
        drawn.append(disc(seat, RIGHT + 17, free, 9, FONT_SIZE))
        free += LABEL_DISTANCE
    return drawn
