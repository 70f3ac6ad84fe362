"""A number of each seat over the plies of a game, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from busenv.render.pieces import disc, strand, text

WIDTH, HEIGHT = 640, 190
LEFT, RIGHT, TOP, BOTTOM = 40, 600, 14, 164  # of the frame in which the curves lie
APART = 14  # least distance of the labels at the curves' ends


def draw_chart(
    title: str,
    curves: Sequence[Sequence[float | None]],
    low: float,
    high: float,
    rounds: Sequence[int],
    percent: bool = False,
) -> str:
    """One curve a seat, in steps; what is None is left out.

    low, high: what the axis spans. rounds: the plies at which rounds begin. The line of class
    "cursor" stands at ply 0; `data-left` and `data-right` tell where the plies begin and end.
    """
    plies = max(len(curves[0]) - 1, 1)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'class="bus chart" role="img" aria-label="{title}" data-left="{LEFT}" '
        f'data-right="{RIGHT}"><rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="panel"/>'
    ]
    middle = (low + high) / 2 if percent else float((low + high) // 2)
    for value in sorted({low, 0.0, middle, high}):
        y = _y(value, low, high)
        words = f"{value:.0%}" if percent else f"{value:g}"
        drawn.append(f'<path d="M{LEFT} {y:.1f}H{RIGHT}" class="grid"/>')
        drawn.append(text(LEFT - 6, round(y + 4, 1), words, 11, "faint", "e"))
    for number, ply in enumerate(rounds, start=1):
        x = _x(ply, plies)
        drawn.append(f'<path d="M{x:.1f} {TOP}V{BOTTOM}" class="grid"/>')
        drawn.append(text(round(x, 1), BOTTOM + 15, number, 11, "faint", "m"))
    drawn.append(text(4, BOTTOM + 15, "round", 11, "faint"))
    drawn += [
        strand(seat, _steps(curve, seat - (len(curves) - 1) / 2, low, high), 3)
        for seat, curve in enumerate(curves)
    ]
    drawn += _labels(curves, low, high)
    drawn.append(f'<path d="M{LEFT} {TOP}V{BOTTOM}" class="cursor"/></svg>')
    return "".join(drawn)


def _x(ply: int, plies: int) -> float:
    return LEFT + (RIGHT - LEFT) * ply / plies


def _y(value: float, low: float, high: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * (value - low) / max(high - low, 1e-9)


def _steps(curve: Sequence[float | None], lift: float, low: float, high: float) -> str:
    """A path in steps; lifted by its seat's share, so that equal curves run side by side."""
    way, plies, shown = [], max(len(curve) - 1, 1), None
    for ply, value in enumerate(curve):
        if value == shown:
            continue
        x = _x(ply, plies)
        if shown is not None:
            way.append(f"H{x:.1f}")
        if value is not None:
            y = _y(value, low, high) + 3 * lift
            way.append(f"V{y:.1f}" if shown is not None else f"M{x:.1f} {y:.1f}")
        shown = value
    if shown is not None:
        way.append(f"H{RIGHT}")
    return "".join(way)


def _labels(curves: Sequence[Sequence[float | None]], low: float, high: float) -> list[str]:
    """Each seat's marker where its curve ends, moved apart where they would overlap."""
    ends = []
    for seat, curve in enumerate(curves):
        last = next((value for value in reversed(curve) if value is not None), low)
        ends.append((_y(last, low, high), seat))
    ends.sort()
    drawn, free = [], TOP - 6.0
    for k, (y, seat) in enumerate(ends):
        lowest = BOTTOM + 10 - APART * (len(ends) - 1 - k)
        free = min(max(y, free), lowest)
        drawn.append(disc(seat, RIGHT + 14, free, 7))
        free += APART
    return drawn
