"""Validation of positions."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from busenv import Board, Game, Phase, Position, PositionError, Rules
from tests.support.positions import at_phase

SELECTION, SETUP = Phase.SELECT_ACTIONS, Phase.SETUP_BUILDINGS
Change = Callable[[Position], dict[str, Any]]
IMPLIED = "by the other fields it is"


def waiting_and_vacant(position: Position, board: Board) -> tuple[list[int], list[int]]:
    """Intersections with a waiting passenger, and with a free building, in Vrrooomm! (R16)."""
    surplus = list(position.passengers)  # minus matching buildings
    for site, kind in zip(board.sites, position.buildings, strict=True):
        surplus[site.intersection] -= kind == position.clock
    waiting = [i for i, passengers in enumerate(surplus) if passengers > 0]
    return waiting, [i for i, passengers in enumerate(surplus) if passengers < 0]


def swapped(values: list[Any], i: int, j: int) -> list[Any]:
    values = list(values)
    values[i], values[j] = values[j], values[i]
    return values


WRONG: list[tuple[Phase, dict[str, Any] | Change, str]] = [
    # Types and ranges
    (SETUP, {"num_players": 6}, "num_players is 6; allowed: 3, 4 or 5"),
    (SETUP, {"phase": 0}, "phase is 0; allowed: a busenv.Phase"),
    (SETUP, {"round": 2.0}, "round is 2.0; allowed: a whole number 0 to 20"),
    (SETUP, {"clock": True}, "clock is True"),
    (SETUP, {"buses": [1, 1, 1]}, r"buses is \[1, 1, 1\]; allowed: a list of 4 entries"),
    (SETUP, {"buses": (1, 1, 1, 1)}, "buses is .*allowed: a list"),
    (SETUP, {"buses": [6, 1, 1, 1]}, r"buses\[0\] is 6; allowed: a whole number 1 to 5"),
    (SELECTION, {"choosing": [0, 0, 1, 2]}, "choosing is .*each entry once, ascending"),
    (SELECTION, {"spaces": [[], [0, 1], [], [], [], [], []]}, r"spaces\[1\] is .*0 to 1 entries"),
    (SELECTION, {"spaces": [[]] * 6}, "spaces is .*a list of 7 entries"),
    (SELECTION, {"ending": "never"}, "ending is 'never'; allowed"),
    (SELECTION, {"line_markers": [23.0, 23, 23, 23]}, r"line_markers\[0\] is 23.0"),
    (
        Phase.LINE_EXPANSION,
        lambda p: {"shared_with": [[[1, 1], []], *p.shared_with[1:]]},
        r"shared_with\[0\]\[0\] is \[1, 1\]; allowed: each entry once",
    ),
    # Pieces, and what follows from other fields
    (SETUP, {"streets": [[3], [], [], []]}, r"line_ends\[0\] is \[\]; allowed: a list of 2"),
    (SELECTION, {"line_markers": [None, 23, 23, 23]}, rf"line_markers is .*{IMPLIED} \[23"),
    (SELECTION, {"supply": 3}, f"supply is 3; {IMPLIED} 11"),
    (SELECTION, {"time_stones_left": 4}, f"time_stones_left is 4; {IMPLIED} 5"),
    (SELECTION, {"ending": "sites"}, f"ending is 'sites'; {IMPLIED} 'running'"),
    (SELECTION, {"waiting": [14]}, rf"waiting is \[14\]; {IMPLIED} \[\]"),
    (Phase.SET_DOWN, {"vacant": []}, rf"vacant is \[\]; {IMPLIED}"),
    (Phase.SET_DOWN, {"phase": Phase.PICK_UP}, f"supply is .*; {IMPLIED}"),
    (Phase.OVER, {"current_player": 1}, f"current_player is 1; {IMPLIED} -1"),
    (Phase.OVER, {"ending": "running"}, "ending is 'running'"),
    (SETUP, {"current_player": -1}, f"current_player is -1; {IMPLIED} 0"),
    (SETUP, {"resolving": 0}, f"resolving is 0; {IMPLIED} -1"),
    (
        SETUP,
        {"spaces": [[0], [], [], [], [], [], []]},
        "action_markers is .*at most the markers of the rules",
    ),
    (
        SETUP,
        {"spaces": [[0], [], [], [], [], [], []], "action_markers": [19, 20, 20, 20]},
        "spaces is .*no marker is placed in the setup",
    ),
    (SELECTION, {"delivery_order": [1, 0, 0, 0]}, "delivery_order is .*once each for seats"),
    # Phases
    (SETUP, {"round": 1}, "round is 1; allowed: 0 in the setup"),
    (SETUP, {"power": 0}, "power is 0"),
    (SELECTION, {"power": 1}, "power is 1; allowed"),
    (Phase.CLOCK, {"power": 1}, "power is 1"),
    (Phase.PASSENGERS, {"power": 0}, "power is 0"),
    (Phase.BUILDINGS, lambda p: {"power": max(p.buses) + 1}, "power is"),
    (Phase.PICK_UP, lambda p: {"power": p.buses[p.current_player] + 1}, "power"),
    (SELECTION, {"choosing": []}, r"choosing is \[\]; allowed: seats with markers"),
    (Phase.PASSENGERS, {"choosing": [0]}, r"choosing is \[0\]"),
    (Phase.PASSENGERS, {"resolving": 5}, "resolving is 5; no marker is resolved there"),
    (
        Phase.BUILDINGS,
        lambda p: {"current_player": (p.current_player + 1) % 4},
        "current_player is .*the marker of another seat is resolved",
    ),
    (Phase.SETUP_FIRST_LINE, lambda p: {"current_player": p.current_player ^ 1}, "streets is"),
    (Phase.CLOCK, {"time_stones_left": 0, "time_stones": [0, 2, 0, 3]}, "time_stones_left is 0; t"),
    (Phase.OVER, lambda p: {"action_markers": [1, 1, 0, 0]}, "ending is .*markers in the hands"),
    (Phase.BUILDINGS, lambda p: {"buildings": [0] * 47}, "buildings is .*no site is free"),
    (
        Phase.PASSENGERS,
        {"supply": 0, "passengers": [15] + [0] * 35},
        "supply is 0; no passenger is left",
    ),
    (
        Phase.BUILDINGS,
        lambda p: {"buildings": swapped(p.buildings, p.buildings.index(2), -1)},
        "buildings is .*when all lower ones are full",
    ),
    # Lines are trails between their ends.
    *(
        (Phase.LINE_EXPANSION, change, "streets is .*a line is a trail between its ends")
        for change in (
            lambda p: {"line_ends": swapped(p.line_ends, 0, 1)},
            lambda p: {"line_ends": [e[::-1] for e in p.line_ends]},
            lambda p: {"arrivals": [a[:1] * 2 for a in p.arrivals]},
            lambda p: {
                "streets": [sorted({*p.streets[0], 0, 69}), *p.streets[1:]],
                "line_markers": [25 - len({*p.streets[0], 0, 69}), *p.line_markers[1:]],
            },
        )
    ),
    (
        Phase.LINE_EXPANSION,
        lambda p: {"shared_with": [[[], [0]], *p.shared_with[1:]]},
        "shared_with is .*on its arrival street only",
    ),
]


@pytest.mark.parametrize(("phase", "changes", "message"), WRONG)
def test_invalid_fields_are_named(
    phase: Phase, changes: dict[str, Any] | Change, message: str
) -> None:
    least_round = 0 if phase.name.startswith("SETUP") or phase == SELECTION else 5
    game = Game(4, first_player=0) if phase == SETUP else at_phase(phase, least_round=least_round)
    position = game.position()
    changes = changes if isinstance(changes, dict) else changes(position)
    with pytest.raises(PositionError, match=f"position: {message}"):
        Game.from_position(dataclasses.replace(position, **changes), game.rules)


def test_no_seat_selects_when_all_spaces_are_taken() -> None:
    rules = Rules(spaces=1)
    game = Game(4, rules, first_player=0)
    while game.phase != Phase.SELECT_ACTIONS:
        game.step(game.legal_actions()[0])
    full = {"spaces": [[0], [1], [2], [3], [0], [1], [2]], "current_player": 3}
    hands = {"action_markers": [18, 18, 18, 19]}
    with pytest.raises(PositionError, match=r"spaces is .*all are taken"):
        Game.from_position(dataclasses.replace(game.position(), **full, **hands), rules)


@pytest.mark.parametrize("phase", [Phase.PICK_UP, Phase.SET_DOWN])
def test_a_driving_seat_has_a_passenger_to_carry(phase: Phase) -> None:
    game = at_phase(phase)
    position = game.position()
    line = {i for s in position.streets[game.current_player] for i in game.board.streets[s]}
    off = next(i for i in range(36) if i not in line)
    everybody = [0] * 36
    everybody[off] = sum(position.passengers)
    lonely = dataclasses.replace(position, passengers=everybody)
    if phase == Phase.SET_DOWN:  # all matching buildings are taken instead, or off the line
        buildings = [(k + 1) % 3 if k == lonely.clock else k for k in lonely.buildings]
        lonely = dataclasses.replace(lonely, buildings=buildings)
    waiting, vacant = waiting_and_vacant(lonely, game.board)
    field = "waiting" if phase == Phase.PICK_UP else "vacant"
    with pytest.raises(PositionError, match=f"{field} is .*none is on the line of the current"):
        Game.from_position(dataclasses.replace(lonely, waiting=waiting, vacant=vacant))


def test_a_line_that_must_grow_can_grow() -> None:
    game = at_phase(Phase.LINE_EXPANSION)
    rules, position = Rules(line_markers=(2,) * 5), game.position()
    used = dataclasses.replace(
        position, line_markers=[2 - len(streets) for streets in position.streets]
    )
    with pytest.raises(PositionError, match="the line of the current player cannot grow"):
        Game.from_position(used, rules)
