"""Drawings of positions as text, SVG or pixels, render modes, and the replay page.

Drawing modules take a board, rules and positions (`busenv.Position`); only `game_drawing` and
`render_modes` take games.
"""

from busenv.render.game_drawing import Drawing, game_png, game_svg, game_text

__all__ = ["Drawing", "game_png", "game_svg", "game_text"]
