"""The drawing of a position as SVG, made of named parts.

A page that shows many positions stores each state of a part only once, and can arrange the map and
the panels as it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from busenv.game.actions import decode, describe_action
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render import map_drawing, panels
from busenv.render.layout import BOTTOM, EDGE, HEIGHT, LEFT, RIGHT, TOP, WIDTH, rim, scaled_layout
from busenv.render.phrases import ENDING_WORDS, describe_move
from busenv.render.pieces import STYLE

Decision = tuple[int, int]
"""A seat and the action id that it took."""

ALL = (0, 0, WIDTH, HEIGHT)
CITY = (LEFT - EDGE, TOP - EDGE, RIGHT - LEFT + 2 * EDGE, BOTTOM - TOP + 2 * EDGE)
PANELS = (
    panels.X - 4,
    panels.CLOCK_Y - 4,
    panels.PANEL_WIDTH + 8,
    panels.LEGEND_Y + panels.LEGEND_HEIGHT - panels.CLOCK_Y + 8,
)
COLUMNS = 3  # of a drawing of several boards


def draw_svg(board: Board, position: Position, rules: Rules, last: Decision | None = None) -> str:
    """Draw a position as SVG text, 1200 x 800 units.

    last: the last seat to act and its action, which is highlighted; None before the first.
    """
    parts = {"paper": f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'}
    parts |= draw_map(board, position, last) | draw_panels(board, position, rules, last)
    parts["headline"] = panels.draw_headline(position, describe_last(board, position, last))
    return join_parts(parts, ALL, "Board of the game Bus", f"<style>{STYLE}</style>")


def join_parts(parts: dict[str, str], view: tuple[int, ...], label: str, style: str = "") -> str:
    """Join parts into a drawing of named groups. view: x, y, width and height of the view box."""
    groups = "".join(f'<g data-part="{name}">{part}</g>' for name, part in parts.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{" ".join(map(str, view))}" '
        f'class="bus" role="img" aria-label="{label}">{style}{groups}</svg>'
    )


def draw_boards(boards: Sequence[Board]) -> str:
    """Draw the maps of boards in a grid of three columns as SVG text.

    Zone 1 is drawn open, as before the first move.
    """
    x, y, width, height = CITY
    maps = ""
    for k, board in enumerate(boards):
        sites = zip(board.sites, scaled_layout(board).sites, strict=True)
        maps += (
            f'<svg x="{k % COLUMNS * width}" y="{k // COLUMNS * height}" width="{width}" '
            f'height="{height}" viewBox="{x} {y} {width} {height}">'
            + map_drawing.draw_ground(board)
            + map_drawing.draw_intersections(board)
            + "".join(map_drawing.free_site(*at, site.zone, site.zone == 1) for site, at in sites)
            + "</svg>"
        )
    rows = -(-len(boards) // COLUMNS)
    view = (0, 0, COLUMNS * width, rows * height)
    parts = {"paper": f'<rect width="{view[2]}" height="{view[3]}" class="paper"/>', "maps": maps}
    return join_parts(parts, view, "Boards of the game Bus", f"<style>{STYLE}</style>")


def draw_map(board: Board, position: Position, last: Decision | None) -> dict[str, str]:
    """Draw the parts of the map by name, in painting order."""
    parts = {"ground": map_drawing.draw_ground(board)}
    parts |= _numbered("street", map_drawing.draw_streets(board, position))
    parts["intersections"] = map_drawing.draw_intersections(board)
    parts |= _numbered("site", map_drawing.draw_sites(board, position))
    parts |= _numbered("people", map_drawing.draw_waiting_passengers(board, position))
    parts["lit-city"] = _highlight_on_map(board, last[1]) if last else ""
    return parts


def draw_panels(
    board: Board, position: Position, rules: Rules, last: Decision | None
) -> dict[str, str]:
    """Draw the parts of the panels by name, in painting order."""
    parts = {"frames": panels.draw_frames(), "clock": panels.draw_clock(position)}
    parts["most"] = panels.draw_most_buses(position)
    parts |= _numbered("action", panels.draw_actions(position, rules))
    parts |= _numbered("player", panels.draw_players(position))
    parts["legend"] = panels.draw_legend(board, position)
    parts["lit-panels"] = _highlight_on_panels(board, position, rules, last) if last else ""
    return parts


def _numbered(name: str, parts: list[str]) -> dict[str, str]:
    return {f"{name}-{i}": part for i, part in enumerate(parts)}


def describe_last(
    board: Board, position: Position, last: Decision | None, before: Position | None = None
) -> str:
    """Describe the last action, preceded by the reason for the end when the game is over.

    before: the position in which the action was chosen, for more precise words. Returns "" in the
    middle of a game without `last`.
    """
    if last is None:
        return "" if max(position.buildings) >= 0 else "No moves yet"
    seat, action = last
    words = describe_move(board, before, action) if before else describe_action(board, action)
    description = f"Last: seat {seat}, {words.replace('→', ' to ')}"  # some fonts lack arrows
    if position.ending in ENDING_WORDS:
        description = f"{ENDING_WORDS[position.ending].capitalize()}. {description}"
    return description


def _highlight_on_map(board: Board, action: int) -> str:
    """Draw a highlight around an action's subject on the map."""
    kind, subject, _ = decode(board, action)
    layout = scaled_layout(board)
    if kind == "build":
        return map_drawing.highlight_point(layout.sites[subject])
    if kind == "grow":
        return map_drawing.highlight_street(board, subject)
    if kind in ("split", "pick_up", "set_down"):
        nodes = board.stations if kind == "split" else (subject,)
        return "".join(
            map_drawing.highlight_point(layout.intersections[node], rim(board, node) + 3)
            for node in nodes
        )
    return ""


def _highlight_on_panels(board: Board, position: Position, rules: Rules, last: Decision) -> str:
    """Draw a highlight around an action's subject on the panels."""
    kind, subject, _ = decode(board, last[1])
    if kind == "place" and (seats := position.spaces[subject]):
        return map_drawing.highlight_point(panels.space_centre(rules, subject, len(seats) - 1), 13)
    if kind in ("pass", "place"):  # a marker has left the board when the round is over
        return panels.highlight_player(position.num_players, last[0])
    return map_drawing.highlight_point(panels.clock_centre(), 49) if kind == "clock" else ""
