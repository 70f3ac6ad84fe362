"""The drawing of a position, as one SVG text.

The drawing is made of named parts, so that a page that shows many positions of a game need keep
each state of a part only once.
"""

from __future__ import annotations

from busenv.actions import decode, describe_action
from busenv.board import Board
from busenv.position import Position
from busenv.render import city, panels
from busenv.render.pieces import STYLE
from busenv.render.places import HEIGHT, WIDTH, lay_out, rim
from busenv.rules import Rules

HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" class="bus" '
    'role="img" aria-label="Board of the game Bus">'
)


def draw_svg(
    board: Board, position: Position, rules: Rules, last: tuple[int, int] | None = None
) -> str:
    """A position as SVG text, 1200 x 800 units, with the last decision lit up.

    last: the seat that took it, and the action id; None when there is none.
    """
    return join_parts(draw_parts(board, position, rules, last))


def join_parts(parts: dict[str, str]) -> str:
    """The whole drawing from its parts; each is a group that bears its name."""
    groups = "".join(f'<g data-part="{name}">{part}</g>' for name, part in parts.items())
    return f"{HEAD}<style>{STYLE}</style>{groups}</svg>"


def draw_parts(
    board: Board, position: Position, rules: Rules, last: tuple[int, int] | None
) -> dict[str, str]:
    """The parts of the drawing by name, in the order in which they are painted; else as above."""
    table = position
    parts = {"ground": f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'}
    parts["ground"] += city.draw_ground(board)
    parts |= _numbered("street", city.draw_streets(board, table))
    parts["intersections"] = city.draw_intersections(board)
    parts |= _numbered("site", city.draw_sites(board, table))
    parts |= _numbered("people", city.draw_people(board, table))
    parts["frames"] = panels.draw_frames()
    parts["clock"] = panels.draw_clock(table)
    parts["most"] = panels.draw_most(table)
    parts |= _numbered("action", panels.draw_actions(table, rules))
    parts |= _numbered("player", panels.draw_players(table))
    parts["headline"] = panels.draw_headline(table, _last_words(board, last))
    parts["last"] = _ring(board, position, rules, last) if last else ""
    return parts


def _numbered(name: str, drawn: list[str]) -> dict[str, str]:
    return {f"{name}-{i}": part for i, part in enumerate(drawn)}


def _last_words(board: Board, last: tuple[int, int] | None) -> str:
    if last is None:
        return "Nobody has moved yet"
    words = describe_action(board, last[1])
    return f"Last: seat {last[0]}, {words.replace('→', ' to ')}"  # not every font has arrows


def _ring(board: Board, position: Position, rules: Rules, last: tuple[int, int]) -> str:
    """Light up what the last action was about."""
    mover = last[0]
    kind, subject, _ = decode(board, last[1])
    where = lay_out(board)
    if kind == "place" and (seats := position.spaces[subject]):
        return city.ring_point(panels.space_middle(rules, subject, len(seats) - 1), 14)
    if kind in ("pass", "place"):  # a marker may be off the board again: the round is over
        return panels.ring_player(mover)
    if kind == "build":
        return city.ring_point(where.sites[subject])
    if kind == "grow":
        return city.ring_street(board, subject)
    if kind == "clock":
        return city.ring_point(panels.clock_middle(), 56)
    places = board.stations if kind == "split" else (subject,)
    return "".join(
        city.ring_point(where.intersections[place], rim(board, place) + 3) for place in places
    )
