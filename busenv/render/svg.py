"""The drawing of a position, as one SVG text.

The drawing is made of named parts, so that a page that shows many positions of a game need keep
each state of a part only once, and may put the city and the panels one below the other.
"""

from __future__ import annotations

from busenv.game.actions import decode, describe_action
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render import city, panels
from busenv.render.layout import BOTTOM, EDGE, HEIGHT, LEFT, RIGHT, TOP, WIDTH, lay_out, rim
from busenv.render.phrases import ENDING_WORDS
from busenv.render.pieces import STYLE

Decision = tuple[int, int]
"""A seat and the action that it took."""

ALL = (0, 0, WIDTH, HEIGHT)
CITY = (LEFT - EDGE, TOP - EDGE, RIGHT - LEFT + 2 * EDGE, BOTTOM - TOP + 2 * EDGE)
PANELS = (
    panels.X - 4,
    panels.CLOCK_Y - 4,
    panels.PANEL_WIDTH + 8,
    panels.LEGEND_Y + panels.LEGEND_HEIGHT - panels.CLOCK_Y + 8,
)


def draw_svg(board: Board, position: Position, rules: Rules, last: Decision | None = None) -> str:
    """A position as SVG text, 1200 x 800 units.

    last: the seat that took the last action, and the action, which is lit up and told; None when
    there is none.
    """
    parts = {"paper": f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'}
    parts |= draw_city(board, position, last) | draw_panels(board, position, rules, last)
    parts["headline"] = panels.draw_headline(position, last_words(board, position, last))
    return join_parts(parts, ALL, "Board of the game Bus", f"<style>{STYLE}</style>")


def join_parts(parts: dict[str, str], view: tuple[int, ...], label: str, style: str = "") -> str:
    """A drawing from its parts; each is a group that bears its name. view: x, y, width, height."""
    groups = "".join(f'<g data-part="{name}">{part}</g>' for name, part in parts.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{" ".join(map(str, view))}" '
        f'class="bus" role="img" aria-label="{label}">{style}{groups}</svg>'
    )


def draw_city(board: Board, position: Position, last: Decision | None) -> dict[str, str]:
    """The parts of the map by name, in the order in which they are painted."""
    parts = {"ground": city.draw_ground(board)}
    parts |= _numbered("street", city.draw_streets(board, position))
    parts["intersections"] = city.draw_intersections(board)
    parts |= _numbered("site", city.draw_sites(board, position))
    parts |= _numbered("people", city.draw_people(board, position))
    parts["lit-city"] = _ring_city(board, last[1]) if last else ""
    return parts


def draw_panels(
    board: Board, position: Position, rules: Rules, last: Decision | None
) -> dict[str, str]:
    """The parts beside the map, likewise."""
    parts = {"frames": panels.draw_frames(), "clock": panels.draw_clock(position)}
    parts["most"] = panels.draw_most(position)
    parts |= _numbered("action", panels.draw_actions(position, rules))
    parts |= _numbered("player", panels.draw_players(position))
    parts["legend"] = panels.draw_legend(board, position)
    parts["lit-panels"] = _ring_panels(board, position, rules, last) if last else ""
    return parts


def _numbered(name: str, drawn: list[str]) -> dict[str, str]:
    return {f"{name}-{i}": part for i, part in enumerate(drawn)}


def last_words(board: Board, position: Position, last: Decision | None) -> str:
    """The last action in words, and at the end why the game is over."""
    if last is None:
        return "Nobody has moved yet"
    seat, action = last
    words = describe_action(board, action).replace("→", " to ")  # not every font has arrows
    told = f"Last: seat {seat}, {words}"
    if position.ending in ENDING_WORDS:
        told = f"{ENDING_WORDS[position.ending].capitalize()}. {told}"
    return told


def _ring_city(board: Board, action: int) -> str:
    """Light up what an action is about, where that is on the map."""
    kind, subject, _ = decode(board, action)
    where = lay_out(board)
    if kind == "build":
        return city.ring_point(where.sites[subject])
    if kind == "grow":
        return city.ring_street(board, subject)
    if kind in ("split", "pick_up", "set_down"):
        places = board.stations if kind == "split" else (subject,)
        return "".join(
            city.ring_point(where.intersections[place], rim(board, place) + 3) for place in places
        )
    return ""


def _ring_panels(board: Board, position: Position, rules: Rules, last: Decision) -> str:
    """Light up what an action is about, where that is beside the map."""
    kind, subject, _ = decode(board, last[1])
    if kind == "place" and (seats := position.spaces[subject]):
        return city.ring_point(panels.space_middle(rules, subject, len(seats) - 1), 13)
    if kind in ("pass", "place"):  # a marker may be off the board again: the round is over
        return panels.ring_player(position.num_players, last[0])
    return city.ring_point(panels.clock_middle(), 49) if kind == "clock" else ""
