"""Pictures of games: one drawing as SVG, in pixels, in a window, and as a page to replay.

`svg` draws a position, `raster` turns the drawing into pixels, `modes` serves the environments,
and `replay` puts a whole game on one page.
"""
