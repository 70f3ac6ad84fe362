"""Shapes on the drawing that a page lets players click, as JSON data in units of the drawing.

A click target is a site, street, space or other thing on the drawing, with its shapes and one
choice or several; a choice is an action.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from busenv.core.state import BoardAction, Building
from busenv.game.actions import ACTION_WORDS, decode
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render import panels
from busenv.render.layout import BUBBLE, TOKEN, Point, rim, scaled_layout
from busenv.render.phrases import SPACE_LETTERS, arriving, count, describe_move, split_words

SPACE, CLOCK, MARGIN = 13, 49, 4  # radii, and how much wider rings are
PASS = (panels.X + 94, panels.ACTIONS_Y + 3, 104, 24)  # a rectangle with room for the word
STONES = (panels.X + 118, panels.CLOCK_Y + 40, 276, 30)  # the row of time stones

POWER_UNITS = {
    BoardAction.LINE_EXPANSION: "street",
    BoardAction.PASSENGERS: "passenger",
    BoardAction.BUILDINGS: "building",
}
SINGLE_NOTES = {
    BoardAction.CLOCK: "stop time or let it advance",
    BoardAction.STARTING_PLAYER: "start the next round",
}

Shape = dict[str, Any]


def click_targets(
    board: Board, rules: Rules, position: Position, actions: Iterable[int]
) -> list[dict[str, Any]]:
    """Return the click targets of actions, in order of the action ids.

    A target has "id", "label", "choices" and the entries of `target_shapes` for the first choice. A
    choice has "action", "words", "short" (short words), "note" (its effect), "shapes", "counts".
    """
    targets: dict[str, dict[str, Any]] = {}
    for action in actions:
        name, label, short, note = _describe(board, rules, position, action)
        shapes = target_shapes(board, rules, position, action)
        if name not in targets:
            targets[name] = {"id": name, **shapes, "label": label, "choices": []}
        targets[name]["choices"].append(
            {
                "action": action,
                "words": describe_move(board, position, action),
                "short": short,
                "note": note,
                "shapes": shapes["shapes"],
                "counts": shapes["counts"],
            }
        )
    return list(targets.values())


def target_shapes(board: Board, rules: Rules, position: Position, action: int) -> dict[str, Any]:
    """Return the shapes of an action's subject.

    "in": "city" or "panels", the drawing. "shapes": there; a line's runs from the line's present
    end to the new one. "counts": the passengers that arrive at each of the shapes, if any do.
    """
    kind, subject, detail = decode(board, action)
    layout = scaled_layout(board)
    if kind == "place":
        space = min(len(position.spaces[subject]), rules.spaces_of(subject) - 1)
        row = panels.ACTIONS_Y + panels.TITLE + panels.ROW * subject
        bar = _rect(panels.X + 4, row, panels.PANEL_WIDTH - 8, panels.ROW)
        return _on("panels", bar, _circle(panels.space_centre(rules, subject, space), SPACE))
    if kind == "pass":
        return _on("panels", _rect(*PASS))
    if kind == "clock":
        return _on("panels", _rect(*STONES) if subject else _circle(panels.clock_centre(), CLOCK))
    if kind == "build":
        return _on("city", _circle(layout.sites[subject], TOKEN + MARGIN))
    if kind == "grow":
        ends = board.streets[subject]
        return _on("city", _street(board, ends[detail], ends[1 - detail]))
    if kind == "split":
        stations, counts = [*board.stations], [subject, arriving(position) - subject]
        if sum(counts) == 1:
            stations, counts = [board.stations[1 - subject]], [1]
        shapes = [_intersection(board, station) for station in stations]
        return {"in": "city", "shapes": shapes, "counts": counts}
    if kind == "pick_up":
        bubble = _circle(layout.passengers[subject], BUBBLE)
        return _on("city", bubble, _intersection(board, subject))
    return _on("city", _intersection(board, subject))


def _on(drawing: str, *shapes: Shape) -> dict[str, Any]:
    return {"in": drawing, "shapes": [*shapes], "counts": []}


def _circle(centre: Point, radius: float) -> Shape:
    return {"kind": "circle", "x": round(centre[0], 1), "y": round(centre[1], 1), "r": radius}


def _rect(x: float, y: float, width: float, height: float) -> Shape:
    return {"kind": "rect", "x": x, "y": y, "width": width, "height": height}


def _intersection(board: Board, number: int) -> Shape:
    return _circle(scaled_layout(board).intersections[number], rim(board, number) + MARGIN)


def _street(board: Board, origin: int, goal: int) -> Shape:
    """Return the line between the rims of two intersections."""
    nodes = scaled_layout(board).intersections
    start, end = nodes[origin], nodes[goal]
    length = max(math.dist(start, end), 1e-9)
    first, last = rim(board, origin) / length, 1 - rim(board, goal) / length
    (x1, x2), (y1, y2) = (
        (round(a + (b - a) * first, 1), round(a + (b - a) * last, 1))
        for a, b in zip(start, end, strict=True)
    )
    return {"kind": "line", "x1": x1, "y1": y1, "x2": x2, "y2": y2}


def _describe(board: Board, rules: Rules, position: Position, action: int) -> tuple[str, ...]:
    """Return id and label of an action's target, and its own short words and note.

    The short words distinguish it from the target's other actions; the note is its effect.
    """
    kind, subject, detail = decode(board, action)
    if kind == "place":
        note = _marker_note(rules, position, BoardAction(subject))
        return f"action-{int(subject)}", ACTION_WORDS[subject], "place marker", note
    if kind == "build":
        site = board.sites[subject]
        label = f"site at intersection {site.intersection}, zone {site.zone}"
        return f"site-{subject}", label, Building(detail).name.lower(), ""
    if kind == "grow":
        ends = board.streets[subject]
        short = f"from {ends[detail]} to {ends[1 - detail]}"
        return f"street-{subject}", "street between {} and {}".format(*ends), short, ""
    if kind == "split":
        name = "split" if arriving(position) > 1 else f"station-{board.stations[1 - subject]}"
        label = "stations at {} and {}".format(*board.stations)
        return name, label, split_words(board, position, subject), ""
    if kind == "clock":
        following = Building((position.clock + 1) % 3).name.lower()
        if not subject:
            note = f"the hand moves on to the {following}"
            return "clock", "the clock", f"advance to {following}", note
        left = position.time_stones_left
        rest = "the last one: the game ends" if left == 1 else f"{left - 1} will be left"
        note = f"you take a time stone, minus one point; {rest}"
        return "clock", "the clock", "stop time, −1 point", note
    if kind == "pass":
        return "pass", "pass", "pass", ""
    words = kind.replace("_", " ")  # pick up, set down
    return f"{words.split()[0]}-{subject}", f"intersection {subject}", words, ""


def _marker_note(rules: Rules, position: Position, action: BoardAction) -> str:
    """Return the effect of a marker on an action with the buses of now (R6, R7, R12, R17)."""
    seat, space, most = position.current_player, len(position.spaces[action]), max(position.buses)
    buses = position.buses[seat]
    if action in SINGLE_NOTES:
        return SINGLE_NOTES[action]
    if action == BoardAction.BUSES:
        if buses >= rules.bus_limit:
            return f"no effect: you have the maximum of {count(rules.bus_limit, 'bus')}"
        return f"you will have {count(buses + 1, 'bus')}"
    if action == BoardAction.VRROOOMM:
        own = f"each of your {buses} buses" if buses > 1 else "your bus"
        return f"space {SPACE_LETTERS[space]}: {own} carries one passenger"
    power = rules.power(action, num_players=position.num_players, most_buses=most, space=space)
    pieces_left, pieces = {
        BoardAction.LINE_EXPANSION: (position.line_markers[seat], "line markers"),
        BoardAction.PASSENGERS: (position.supply, "passengers in the supply"),
        BoardAction.BUILDINGS: (position.buildings.count(-1), "free sites"),
    }[action]
    if pieces_left == 0:
        return f"no effect: no {pieces} are left"
    letter, unit = SPACE_LETTERS[space], POWER_UNITS[action]
    if pieces_left is not None and pieces_left < power:
        return f"space {letter}: up to {count(pieces_left, unit)}, the last"
    words = f"up to {count(power, unit)}" if power else f"no {unit}"
    return f"space {letter}: {words} while no player has more than {count(most, 'bus')}"
