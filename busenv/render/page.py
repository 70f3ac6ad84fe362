"""Style and script that the replay page and the playing page share."""

from __future__ import annotations

from pathlib import Path

from busenv.render.pieces import SEAT_COLOURS, SEAT_INKS, STYLE

FOLDER = Path(__file__).parent


def page_style() -> str:
    """The style sheet: of the page, of the pieces, of the seats' badges."""
    seats = "".join(
        f".seat-{seat}{{background:{colour};color:{ink}}}"
        for seat, (colour, ink) in enumerate(zip(SEAT_COLOURS, SEAT_INKS, strict=True))
    )
    return f"{STYLE}{seats}\n{(FOLDER / 'page.css').read_text(encoding='utf-8')}"


def page_script() -> str:
    """The script, as a module."""
    return (FOLDER / "page.js").read_text(encoding="utf-8")


def inline_script() -> str:
    """The script for within a page: there is nothing to export to."""
    return page_script().replace("\nexport ", "\n")
