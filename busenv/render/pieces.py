"""Pieces of the game as SVG elements, and their colours.

Seats have colours that are distinguishable with colour blindness (Okabe and Ito 2008), a number and
a pattern; buildings differ in shape. No text is smaller than `SMALL`, which is 12 pixels on a page
that shows the drawing 830 pixels wide.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

SMALL = 18

SEAT_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00")
SEAT_INKS = ("#fff", "#000", "#000", "#000", "#000")  # text on the colours


class Pattern(NamedTuple):
    """Dashes along a seat's line. width: as a fraction of the line's; cap: `stroke-linecap`."""

    dashes: str
    width: float
    ink: str
    cap: str


PATTERNS = (
    None,
    Pattern("2 9", 0.75, "#000", "butt"),
    Pattern("7 6", 0.33, "#fff", "round"),
    Pattern("0.1 5", 0.45, "#fff", "round"),
    Pattern("10 4 0.1 4", 0.33, "#fff", "round"),
)

HOUSE = (
    '<path d="M-9 9V-2L0-10.5 9-2V9Z" fill="#f0e442" class="edge"/>'
    '<path d="M-2.5 9V2.5h5V9Z" fill="#333"/>'
)
OFFICE = (
    '<path d="M-7 10V-10.5H7V10Z" fill="#56b4e9" class="edge"/>'
    '<path d="M-4-7h3v3h-3ZM1-7h3v3h-3ZM-4-2h3v3h-3ZM1-2h3v3h-3ZM-4 3h3v3h-3ZM1 3h3v3h-3Z" '
    'fill="#fff"/>'
)
PUB = (
    '<path d="M4-3h3a3 3 0 0 1 3 3v3a3 3 0 0 1-3 3h-3" fill="none" stroke="#a0522d" '
    'stroke-width="2.4"/>'
    '<path d="M-8-5V10H4V-5Z" fill="#a0522d" class="edge"/>'
    '<path d="M-9.5-4a3.2 3.2 0 0 1 2-5.5 3.5 3.5 0 0 1 6-1 3.5 3.5 0 0 1 5 1.5'
    ' 2.7 2.7 0 0 1 1.5 5Z" fill="#fff" class="edge"/>'
)
BUILDINGS = (HOUSE, OFFICE, PUB)  # in the order of busenv.Building

PAWN = '<path d="M-5 8C-5 3-3 1-1.5 0A4 4 0 1 1 1.5 0C3 1 5 3 5 8Z" class="pawn"/>'
STONE = '<path d="M0-9L8 0 0 9-8 0Z" class="stone"/>'
NO_STONE = '<path d="M0-9L8 0 0 9-8 0Z" class="gone"/>'
BUS = (
    '<path d="M-10-6H8a2 2 0 0 1 2 2V5H-10Z" class="bus-body"/>'
    '<path d="M-8-4h4v4h-4ZM-2-4h4v4h-4ZM4-4h4v4h-4Z" fill="#fff"/>'
    '<circle cx="-5" cy="6" r="2.5" fill="#222"/><circle cx="5" cy="6" r="2.5" fill="#222"/>'
)

STYLE = (
    ".bus{font-family:Helvetica,Arial,sans-serif;font-weight:bold}"
    ".bus .faint{font-weight:normal}"
    ".bus .paper{fill:#f4f1ea}.bus .panel{fill:#fff;stroke:#cfc8ba}"
    ".bus .kerb{stroke:#c9c2b4}.bus .road{stroke:#fff}"
    ".bus .ink{fill:#1d1d1d}.bus .faint{fill:#5f5b53}"
    ".bus .node{fill:#fff;stroke:#444;stroke-width:1.5}.bus .track{fill:#444}"
    ".bus .connector{stroke:#8d8778;stroke-width:1.5}"
    ".bus .bubble{fill:#fff;stroke:#111;stroke-width:1.5}"
    ".bus .site{fill:#fff;stroke:#6d675b;stroke-width:1.5}"
    ".bus .later{fill:#e4dfd3;stroke:#a9a294;stroke-dasharray:3 2}"
    ".bus .space{fill:#fff;stroke:#8d8778}.bus .now{fill:#fdf3c1}"
    ".bus .edge{stroke:#222;stroke-width:1.3}"
    ".bus .pawn{fill:#111;stroke:#fff;stroke-width:1.2;paint-order:stroke}"
    ".bus .stone{fill:#6a4c93;stroke:#222}.bus .gone{fill:none;stroke:#8d8778;"
    "stroke-dasharray:2 2}.bus .bus-body{fill:#444}"
    ".bus .line{fill:none}.bus .casing{fill:none;stroke:#333}"
    ".bus .dash{fill:none}"
    ".bus .halo{fill:none;stroke:#111;stroke-width:5}"
    ".bus .acting{fill:none;stroke:#111;stroke-width:2.5}"
    ".bus .glow{fill:none;stroke:#ffd400;stroke-width:2.5}"
)


def pieces_style() -> str:
    """Return the style sheet of the pieces and of the seats' colours and badges."""
    seats = "".join(
        f":root{{--seat-{seat}:{colour}}}.seat-{seat}{{background:{colour};color:{ink}}}"
        for seat, (colour, ink) in enumerate(zip(SEAT_COLOURS, SEAT_INKS, strict=True))
    )
    return STYLE + seats


def text(
    x: float, y: float, words: object, size: int = SMALL, kind: str = "ink", anchor: str = ""
) -> str:
    """Draw a line of text; anchor "m" for middle, "e" for end."""
    alignment = {"": "", "m": ' text-anchor="middle"', "e": ' text-anchor="end"'}[anchor]
    content = escape(str(words))
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" class="{kind}"{alignment}>{content}</text>'
    )


def placed(piece: str, x: float, y: float, scale: float = 1) -> str:
    """Draw a piece at a point."""
    size = "" if scale == 1 else f" scale({scale:g})"
    return f'<g transform="translate({x:.1f} {y:.1f}){size}">{piece}</g>'


def disc(seat: int, x: float, y: float, radius: float = 11, size: int = SMALL) -> str:
    """Draw a seat's marker, a disc with its number."""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{SEAT_COLOURS[seat]}" '
        f'stroke="#fff" stroke-width="1.5"/><text x="{x:.1f}" y="{y + size * 0.36:.1f}" '
        f'font-size="{size}" fill="{SEAT_INKS[seat]}" text-anchor="middle">{seat}</text>'
    )


def line_segment(seat: int, path: str, width: float = 8) -> str:
    """Draw a seat's line along a path: its colour between dark edges, under its pattern."""
    drawn = (
        f'<path d="{path}" class="casing" stroke-width="{width:g}"/>'
        f'<path d="{path}" class="line" stroke="{SEAT_COLOURS[seat]}" '
        f'stroke-width="{width - 1.6:g}"/>'
    )
    if pattern := PATTERNS[seat]:
        drawn += (
            f'<path d="{path}" class="dash" stroke="{pattern.ink}" '
            f'stroke-width="{pattern.width * width:.2g}" stroke-dasharray="{pattern.dashes}" '
            f'stroke-linecap="{pattern.cap}"/>'
        )
    return drawn


def highlighted(shape: str) -> str:
    """Draw the outline of a shape twice, as "halo" and "glow"; the shape has {} as its class."""
    return shape.format("halo") + shape.format("glow")
