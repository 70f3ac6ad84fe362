"""Where on the drawing an action belongs: what a page lets its readers point at.

All is plain JSON data, in the units of the drawing. A spot is something that can be pointed at,
with its shapes and one choice or several; a choice is an action.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from busenv.game.actions import ACTION_WORDS, BoardAction, Building, Phase, decode, describe_action
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render import panels
from busenv.render.layout import BUBBLE, TOKEN, Point, lay_out, rim
from busenv.render.phrases import count

STREET_WIDTH = 28
SPACE, CLOCK, MARGIN = (
    13,
    49,
    4,
)  # radii, and how much wider rings are

PASS = (panels.X + 94, panels.ACTIONS_Y + 3, 104, 24)  # where there is room for a word
STONES = (panels.X + 118, panels.CLOCK_Y + 40, 276, 30)  # the row of time stones

POWERS = {  # what the power of a marker is counted in
    BoardAction.LINE_EXPANSION: "street",
    BoardAction.PASSENGERS: "passenger",
    BoardAction.BUILDINGS: "building",
    BoardAction.VRROOOMM: "bus",
}
SINGLE_NOTES = {
    BoardAction.CLOCK: "stop time or let it advance",
    BoardAction.STARTING_PLAYER: "start the next round",
}

Shape = dict[str, Any]


def spots(
    board: Board, rules: Rules, position: Position, actions: Iterable[int]
) -> list[dict[str, Any]]:
    """The spots of actions, in order of their ids: id, `in` ("city" or "panels"),
    label, shapes, and the choices: action, words, short words, a note on what it comes to, shapes,
    and for lines `from` and `to`."""
    found: dict[str, dict[str, Any]] = {}
    for action in actions:
        kind, subject, detail = decode(board, action)
        name = _name(kind, subject)
        if name not in found:
            found[name] = {
                "id": name,
                **mark(board, rules, position, action),
                "label": _label(board, kind, subject),
                "choices": [],
            }
        grows = kind == "grow" and position.phase != Phase.SETUP_FIRST_LINE
        ends = board.streets[subject] if grows else ()
        found[name]["choices"].append(
            {
                "action": action,
                "words": describe_action(board, action),
                "short": _short(board, position, kind, subject, detail),
                "note": _note(rules, position, kind, subject),
                "shapes": mark(board, rules, position, action)["shapes"],
                "from": ends[detail] if ends else None,
                "to": ends[1 - detail] if ends else None,
            }
        )
    return list(found.values())


def mark(board: Board, rules: Rules, position: Position, action: int) -> dict[str, Any]:
    """Which of the two drawings an action is about, as `in`, and the shapes that it is about there;
    a line's goes from where the line ends to where it would."""
    kind, subject, detail = decode(board, action)
    where = lay_out(board)
    if kind == "place":
        space = min(len(position.spaces[subject]), rules.spaces_of(subject) - 1)
        row = panels.ACTIONS_Y + panels.TITLE + panels.ROW * subject
        bar = _rect(panels.X + 4, row, panels.PANEL_WIDTH - 8, panels.ROW)
        return _on("panels", bar, _circle(panels.space_middle(rules, subject, space), SPACE))
    if kind == "pass":
        return _on("panels", _rect(*PASS))
    if kind == "clock":
        return _on("panels", _rect(*STONES) if subject else _circle(panels.clock_middle(), CLOCK))
    if kind == "build":
        return _on("city", _circle(where.sites[subject], TOKEN + MARGIN))
    if kind == "grow":
        ends = board.streets[subject]
        return _on("city", _street(board, ends[detail], ends[1 - detail]))
    if kind == "split":
        return _on("city", *(_node(board, station) for station in board.stations))
    if kind == "pick_up":
        return _on("city", _circle(where.people[subject], BUBBLE), _node(board, subject))
    return _on("city", _node(board, subject))


def _on(drawing: str, *shapes: Shape) -> dict[str, Any]:
    return {"in": drawing, "shapes": [*shapes]}


def _circle(where: Point, radius: float) -> Shape:
    return {"kind": "circle", "x": round(where[0], 1), "y": round(where[1], 1), "r": radius}


def _rect(x: float, y: float, width: float, height: float) -> Shape:
    return {"kind": "rect", "x": x, "y": y, "width": width, "height": height}


def _node(board: Board, intersection: int) -> Shape:
    return _circle(lay_out(board).intersections[intersection], rim(board, intersection) + MARGIN)


def _street(board: Board, origin: int, goal: int) -> Shape:
    """A street from the rim of one of its intersections to the rim of the other."""
    nodes = lay_out(board).intersections
    start, end = nodes[origin], nodes[goal]
    length = math.dist(start, end)
    first, last = rim(board, origin) / length, 1 - rim(board, goal) / length
    points = [(a + (b - a) * first, a + (b - a) * last) for a, b in zip(start, end, strict=True)]
    (x1, x2), (y1, y2) = points
    line = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    rounded = {name: round(value, 1) for name, value in line.items()}
    return {"kind": "line", **rounded, "width": STREET_WIDTH}


def _name(kind: str, subject: int) -> str:
    """What a spot is called; actions of one spot share it."""
    if kind in ("pass", "split", "clock"):
        return kind
    names = {"place": "action", "build": "site", "grow": "street"}
    return f"{names.get(kind, kind.partition('_')[0])}-{int(subject)}"


def _label(board: Board, kind: str, subject: int) -> str:
    """What a spot is, in words."""
    if kind == "place":
        return ACTION_WORDS[subject]
    if kind == "build":
        site = board.sites[subject]
        return f"site {subject} at intersection {site.intersection}, zone {site.zone}"
    if kind == "grow":
        return "street between {} and {}".format(*board.streets[subject])
    if kind == "split":
        return "stations at {} and {}".format(*board.stations)
    words = {"pass": "pass", "clock": "the clock"}
    return words.get(kind, f"intersection {subject}")


def _short(board: Board, position: Position, kind: str, subject: int, detail: int) -> str:
    """A choice among those of its spot, in as few words as can be."""
    if kind == "build":
        return Building(detail).name.lower()
    if kind == "grow":
        ends = board.streets[subject]
        return f"from {ends[detail]} to {ends[1 - detail]}"
    if kind == "split":
        rest = min(position.power, position.supply) - subject
        return f"{subject} | {rest}"
    if kind == "clock":
        return "stop time" if subject else "let time advance"
    words = {"place": "place marker", "pass": "pass", "pick_up": "pick up"}
    return words.get(kind, "set down")


def _note(rules: Rules, position: Position, kind: str, subject: int) -> str:
    """What a choice comes to as things stand, where its words do not tell."""
    if kind == "clock" and subject:
        left = position.time_stones_left
        ends = "the last one: the game ends" if left == 1 else f"{left - 1} will be left"
        return f"you take a time stone, minus one point; {ends}"
    if kind == "clock":
        return f"the hand moves on to the {Building((position.clock + 1) % 3).name.lower()}"
    return _place_note(rules, position, BoardAction(subject)) if kind == "place" else ""


def _place_note(rules: Rules, position: Position, action: BoardAction) -> str:
    """What a marker on an action would come to (R7, R12)."""
    most, buses = max(position.buses), position.buses[position.current_player]
    if action == BoardAction.BUSES:
        more = min(buses + 1, rules.bus_limit)
        most = max(more, most)
        return f"you will have {count(more, 'bus')}; the most that anybody has will be {most}"
    if action in SINGLE_NOTES:
        return SINGLE_NOTES[action]
    space = len(position.spaces[action])
    five = action == BoardAction.LINE_EXPANSION and position.num_players == 5
    things = count(max(most - space + five, 0), POWERS[action])
    return f"space {'ABCDEFGH'[space]}: {things}, while the most buses that anybody has are {most}"
