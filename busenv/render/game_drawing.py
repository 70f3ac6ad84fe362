"""Drawings of a game: as text, as SVG, which notebooks display, and as a PNG file."""

from __future__ import annotations

from pathlib import Path

from busenv.game.game import Game
from busenv.io import write_whole
from busenv.render.raster import svg_to_png
from busenv.render.svg import draw_svg
from busenv.render.text import draw_text


class Drawing(str):
    """The text of an SVG drawing. A notebook displays the drawing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<SVG drawing, {len(self):,} characters>"

    def _repr_svg_(self) -> str:
        return str(self)


def game_text(game: Game) -> str:
    """Describe the position of a game in words."""
    return draw_text(game.board, game.position(), game.rules)


def game_svg(game: Game, path: str | Path | None = None) -> Drawing:
    """Draw the position of a game as SVG text, and write it to `path` if given.

    The last decision is highlighted. Raises OSError for a path that cannot be written.
    """
    text = draw_svg(game.board, game.position(), game.rules, game.last_decision)
    if path is not None:
        write_whole(path, text)
    return Drawing(text)


def game_png(game: Game, path: str | Path | None = None) -> bytes:
    """Draw the position of a game as a PNG file of 1200 x 800 pixels, and write it if given a path.

    Raises ModuleNotFoundError without the extra `render`, OSError for a path that cannot be
    written.
    """
    data = svg_to_png(game_svg(game))
    if path is not None:
        write_whole(path, data)
    return data
