"""The drawing of a position, as one SVG text.

The drawing is made of named parts, so that a page that shows many positions of a game need keep
each state of a part only once.
"""

from __future__ import annotations

import dataclasses

from busenv.actions import decode, describe_action
from busenv.game import Game
from busenv.render import city, panels
from busenv.render.pieces import STYLE
from busenv.render.places import HEIGHT, WIDTH, lay_out, rim

HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" class="bus" '
    'role="img" aria-label="Board of the game Bus">'
)


def draw_svg(game: Game) -> str:
    """A game's position as SVG text, 1200 x 800 units, with its last action lit up."""
    return join_parts(draw_parts(game, last_mover(game)))


def join_parts(parts: dict[str, str]) -> str:
    """The whole drawing from its parts; each is a group that bears its name."""
    groups = "".join(f'<g data-part="{name}">{part}</g>' for name, part in parts.items())
    return f"{HEAD}<style>{STYLE}</style>{groups}</svg>"


def last_mover(game: Game) -> int:
    """Seat that took the last action; -1 before the first."""
    if not game.history:
        return -1
    earlier = dataclasses.replace(game.record(), actions=tuple(game.history[:-1]), result=None)
    return Game.from_record(earlier, game.board).current_player


def draw_parts(game: Game, mover: int) -> dict[str, str]:
    """The parts of the drawing by name, in the order in which they are painted.

    mover: the seat that took the last action, -1 when there is none.
    """
    board, table = game.board, game.position()
    parts = {"ground": f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'}
    parts["ground"] += city.draw_ground(board)
    parts |= _numbered("street", city.draw_streets(board, table))
    parts["intersections"] = city.draw_intersections(board)
    parts |= _numbered("site", city.draw_sites(board, table))
    parts |= _numbered("people", city.draw_people(board, table))
    parts["frames"] = panels.draw_frames()
    parts["clock"] = panels.draw_clock(table)
    parts["most"] = panels.draw_most(table)
    parts |= _numbered("action", panels.draw_actions(game, table))
    parts |= _numbered("player", panels.draw_players(game, table))
    parts["headline"] = panels.draw_headline(game, _last_words(game, mover))
    parts["last"] = _ring(game, mover) if mover >= 0 else ""
    return parts


def _numbered(name: str, drawn: list[str]) -> dict[str, str]:
    return {f"{name}-{i}": part for i, part in enumerate(drawn)}


def _last_words(game: Game, mover: int) -> str:
    if mover < 0:
        return "Nobody has moved yet"
    words = describe_action(game.board, game.history[-1])
    return f"Last: seat {mover}, {words.replace('→', ' to ')}"  # not every font has arrows


def _ring(game: Game, mover: int) -> str:
    """Light up what the last action was about."""
    board = game.board
    kind, subject, _ = decode(board, game.history[-1])
    where = lay_out(board)
    if kind == "place" and (seats := game.position().spaces[subject]):
        return city.ring_point(panels.space_middle(game, subject, len(seats) - 1), 14)
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
