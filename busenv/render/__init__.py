"""Pictures of positions: as text, as SVG, in pixels, in a window; and a page to replay a game.

`svg` draws a position, `text` tells it, `raster` turns the drawing into pixels, `modes` serves the
environments, and `replay` puts a whole game on one page. All of them know boards, rules and
positions (`busenv.Position`), none of them games: a game draws itself by them.
"""
