"""Drawings of a game's position."""

from busenv import Game
from busenv.render.svg import Decision, draw_map, draw_panels


def drawn_parts(game: Game, last: Decision | None = None) -> dict[str, str]:
    """The parts of a game's drawing by name, without the headline."""
    position = game.position()
    panels = draw_panels(game.board, position, game.rules, last)
    return draw_map(game.board, position, last) | panels
