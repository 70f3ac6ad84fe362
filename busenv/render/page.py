"""Style sheet and script shared by the replay page and the play page."""

from __future__ import annotations

from pathlib import Path

from busenv.render.pieces import SEAT_COLOURS, SEAT_INKS, STYLE

FOLDER = Path(__file__).parent


def pieces_style() -> str:
    """Return the style sheet of the pieces and of the seats' colours and badges."""
    seats = "".join(
        f":root{{--seat-{seat}:{colour}}}.seat-{seat}{{background:{colour};color:{ink}}}"
        for seat, (colour, ink) in enumerate(zip(SEAT_COLOURS, SEAT_INKS, strict=True))
    )
    return STYLE + seats


def page_style() -> str:
    """Return the complete style sheet of the replay page."""
    return f"{pieces_style()}\n{(FOLDER / 'page.css').read_text(encoding='utf-8')}"


def inline_script() -> str:
    """Return the shared script without `export`, for a page's inline script."""
    return (FOLDER / "page.js").read_text(encoding="utf-8").replace("\nexport ", "\n")
