"""Style and script that the replay page and the playing page share."""

from __future__ import annotations

from pathlib import Path

from busenv.render.pieces import SEAT_COLOURS, SEAT_INKS, STYLE

FOLDER = Path(__file__).parent


def pieces_style() -> str:
    """Style sheet of the pieces, the seats' colours and their badges."""
    seats = "".join(
        f":root{{--seat-{seat}:{colour}}}.seat-{seat}{{background:{colour};color:{ink}}}"
        for seat, (colour, ink) in enumerate(zip(SEAT_COLOURS, SEAT_INKS, strict=True))
    )
    return STYLE + seats


def page_style() -> str:
    """Style sheet of a page that stands alone."""
    return f"{pieces_style()}\n{(FOLDER / 'page.css').read_text(encoding='utf-8')}"


def inline_script() -> str:
    """The shared script for within a page, where it exports nothing."""
    return (FOLDER / "page.js").read_text(encoding="utf-8").replace("\nexport ", "\n")
