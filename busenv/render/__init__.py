"""Drawings of positions as text, SVG or pixels, render modes, and the replay page.

Drawing modules take a board, rules and positions (`busenv.Position`); only `prompts` and
`render_modes` take games.
"""
