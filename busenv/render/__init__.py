"""Drawings of positions as text, SVG or pixels, render modes, and the replay page.

The modules take a board, rules and positions (`busenv.Position`) and do not import games.
"""
