"""Validation of positions."""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pytest

from busenv import Game, Phase, Position, PositionError, Rules
from busenv.game.position import waiting_and_vacant
from busenv.validation import check_games
from tests.support.positions import CASES, at_phase, begun, same, step

SELECTION, SETUP = Phase.SELECT_ACTIONS, Phase.SETUP_BUILDINGS
WRONG: list[tuple[Phase, dict[str, Any], str]] = [
    (SETUP, {"num_players": 6}, "num_players is 6; allowed: 3, 4 or 5"),
    (SETUP, {"phase": 0}, "phase is 0; allowed: a busenv.Phase"),
    (SETUP, {"round": 1}, "round is 1.*phase SETUP_BUILDINGS"),
    (SETUP, {"round": 2.0}, "round is 2.0; allowed: a whole number 0 to 20"),
    (SETUP, {"current_player": -1}, "current_player is -1"),
    (SETUP, {"clock": 3}, "clock is 3; allowed: a whole number 0 to 2"),
    (SETUP, {"clock": True}, "clock is True"),
    (SETUP, {"buses": [1, 1, 1]}, r"buses is \[1, 1, 1\]; allowed: a list of 4 entries"),
    (SETUP, {"buses": (1, 1, 1, 1)}, "buses is .*allowed: a list"),
    (
        SETUP,
        {"buses": [1, 2, 1, 1]},
        "buses is .*1 were taken; allowed up to round 0.*: 0, at most one",
    ),
    (SETUP, {"buses": [6, 1, 1, 1]}, r"buses\[0\] is 6; allowed: a whole number 1 to 5"),
    (SETUP, {"power": 0}, "power is 0"),
    (SETUP, {"deliveries": [1, 0, 0, 0]}, r"deliveries\[0\] is 1; allowed: at most 0, for 0 mark"),
    (
        SETUP,
        {"spaces": [[0], [], [], [], [], [], []]},
        r"action_markers\[0\] is 20; .*: at most 19",
    ),
    (SETUP, {"streets": [[3], [], [], []]}, r"line_markers\[0\] is 25; allowed: 24, with 1 of 25"),
    (
        SETUP,
        {"spaces": [[0], [], [], [], [], [], []], "action_markers": [19, 20, 20, 20]},
        "spaces is .*but phase is SETUP_BUILDINGS",
    ),
    (SETUP, {"starting_player": 9}, "starting_player is 9"),
    (SETUP, {"resolving": 0}, "resolving is 0"),
    (SELECTION, {"supply": 3}, "supply is 3; 4 of 15 passengers are in the city"),
    (
        SELECTION,
        {"supply": 15, "passengers": [0] * 36},
        "supply is 15; allowed: a whole number 0 to 11",
    ),
    (SELECTION, {"time_stones_left": 4}, "time_stones_left is 4; allowed: 5, with 0 of 5 taken"),
    (SELECTION, {"choosing": [0, 0, 1, 2]}, "choosing is .*each entry once, ascending"),
    (SELECTION, {"choosing": []}, r"choosing is \[\]; but current_player is"),
    (SELECTION, {"spaces": [[], [0, 1], [], [], [], [], []]}, r"spaces\[1\] is .*0 to 1 entries"),
    (SELECTION, {"spaces": [[]] * 6}, "spaces is .*a list of 7 entries"),
    (SELECTION, {"power": 1}, "power is 1; but phase is SELECT_ACTIONS"),
    (SELECTION, {"ending": "sites"}, "ending is 'sites'.*'running'"),
    (SELECTION, {"ending": "never"}, "ending is 'never'; allowed"),
    (SELECTION, {"waiting": [14]}, r"waiting is \[14\]; but by phase"),
    (SELECTION, {"delivery_order": [1, 0, 0, 0]}, "delivery_order is"),
    (SELECTION, {"action_markers": [19, 20, 20, 20]}, r"action_markers\[0\] is 19; .*round 2: 20"),
    (SELECTION, {"current_player": 1}, r"action_markers\[\d\] is 20; .* and still choos"),
    (SELECTION, {"round": 2}, r"action_markers\[0\] is 20; allowed in round 2: at most 19"),
    (SELECTION, {"round": 21}, "round is 21; allowed: a whole number 0 to 20"),
    (SELECTION, {"line_markers": [None, 23, 23, 23]}, r"line_markers\[0\] is None"),
    (SELECTION, {"line_markers": [23.0, 23, 23, 23]}, r"line_markers\[0\] is 23.0"),
    (
        Phase.PASSENGERS,
        {"supply": 0, "passengers": [15] + [0] * 35},
        "supply is 0; no passenger is left",
    ),
    (SELECTION, {"starting_player": 0, "first_player": 1}, "starting_player is 0; but first_play"),
    (Phase.PASSENGERS, {"power": 0}, "power is 0; in phase PASSENGERS"),
    (Phase.PASSENGERS, {"resolving": 5}, r"resolving is 5; but spaces\[2\] is"),
    (Phase.PASSENGERS, {"choosing": [0]}, r"choosing is \[0\]; but phase is PASSENGERS"),
    (Phase.CLOCK, {"power": 1}, "power is 1; in phase CLOCK.*0 to 0"),
    (Phase.CLOCK, {"time_stones_left": 0, "time_stones": [0, 0, 0, 5]}, "time_stones is"),
    (Phase.SET_DOWN, {"vacant": []}, r"vacant is \[\]; but by phase"),
    (Phase.SET_DOWN, {"phase": Phase.PICK_UP}, "supply"),
    (Phase.OVER, {"current_player": 1}, "current_player is 1; but phase is OVER"),
    (Phase.OVER, {"ending": "running"}, "ending is 'running'"),
]


@pytest.mark.parametrize(("phase", "changes", "message"), WRONG)
def test_invalid_fields_are_named(phase: Phase, changes: dict[str, Any], message: str) -> None:
    game = Game(4, first_player=0) if phase == SETUP else at_phase(phase)
    with pytest.raises(PositionError, match=f"position: {message}"):
        Game.from_position(dataclasses.replace(game.position(), **changes), game.rules)


def swapped(values: list[Any], i: int, j: int) -> list[Any]:
    values = list(values)
    values[i], values[j] = values[j], values[i]
    return values


@pytest.mark.parametrize(
    ("phase", "change", "message"),
    [
        # Whose turn it is follows from the markers on the spaces, or from whose marker is resolved.
        (
            Phase.SELECT_ACTIONS,
            lambda p: {"current_player": (p.current_player + 1) % 4},
            "action_markers|choosing",
        ),
        (Phase.BUILDINGS, lambda p: {"current_player": (p.current_player + 1) % 4}, "current_play"),
        (Phase.SETUP_FIRST_LINE, lambda p: {"current_player": p.current_player ^ 1}, "current_pl"),
        (Phase.SETUP_SECOND_LINE, lambda p: {"current_player": p.current_player ^ 1}, "current_p"),
        (Phase.BUILDINGS, lambda p: {"power": max(p.buses) + 1}, "power is"),
        (Phase.LINE_EXPANSION, lambda p: {"power": 0}, "power is 0"),
        # Lines are trails between their ends.
        (Phase.LINE_EXPANSION, lambda p: {"line_ends": swapped(p.line_ends, 0, 1)}, "arrivals"),
        (Phase.LINE_EXPANSION, lambda p: {"line_ends": [e[::-1] for e in p.line_ends]}, "arrivals"),
        (Phase.LINE_EXPANSION, lambda p: {"arrivals": [[]] * 4}, r"arrivals\[0\] is \[\]"),
        (Phase.LINE_EXPANSION, lambda p: {"shared_with": [[]] * 4}, r"shared_with\[0\] is \[\]"),
        (
            Phase.LINE_EXPANSION,
            lambda p: {"shared_with": [[[], [0]], *p.shared_with[1:]]},
            r"shared_with\[0\] is .*some of \[.*R9a",
        ),
        (
            Phase.LINE_EXPANSION,
            lambda p: {"shared_with": [[[1, 1], []], *p.shared_with[1:]]},
            r"shared_with\[0\]\[0\] is \[1, 1\]; allowed: each entry once",
        ),
        (Phase.LINE_EXPANSION, lambda p: {"arrivals": [a[:1] * 2 for a in p.arrivals]}, "arrival"),
        (
            Phase.LINE_EXPANSION,
            lambda p: {
                "streets": [sorted({*p.streets[0], 0, 69}), *p.streets[1:]],
                "line_markers": [25 - len({*p.streets[0], 0, 69}), *p.line_markers[1:]],
            },
            r"streets\[0\] is .*no trail",
        ),
        # Zones are built on one after another.
        (
            Phase.BUILDINGS,
            lambda p: {"buildings": swapped(p.buildings, p.buildings.index(2), -1)},
            r"buildings\[\d+\] is -1; free, in zone 1, but zone 4",
        ),
        (Phase.CLOCK, lambda p: {"buildings": [-1] * 47}, "buildings is .*8 were erected"),
        # Stones and sites end the game.
        (Phase.OVER, lambda p: {"action_markers": [1, 1, 0, 0]}, r"phase is 'OVER'.*\[0, 1\] hold"),
        (
            Phase.CLOCK,
            lambda p: {"time_stones_left": 0, "time_stones": [0, 2, 0, 3]},
            "time_stones_left is 0; the game ends when none is left",
        ),
        (
            Phase.SELECT_ACTIONS,
            lambda p: {"buildings": [0] * 47},
            "buildings is .*ended the game before round",
        ),
        (Phase.BUILDINGS, lambda p: {"buildings": [0] * 47}, "buildings is .*no site is free"),
        # Markers: two are needed for a round; a seat with one left has placed two.
        (
            Phase.SELECT_ACTIONS,
            lambda p: {"action_markers": [2, 0, 0, 0], "spaces": [[]] * 7},
            "action_markers is .*a round requires two such seats",
        ),
        (
            Phase.CLOCK,
            lambda p: {
                "action_markers": [n + k for n, k in zip(p.action_markers, p.placed, strict=True)],
                "spaces": [[]] * 4 + [[p.current_player]] + [[]] * 2,
                "buses": [2] * 4,  # as many as the rounds before have brought
            },
            r"action_markers\[\d\] is .*a seat must place two before it may pass",
        ),
        (Phase.PICK_UP, lambda p: {"power": p.buses[p.current_player] + 1}, "power"),
        (Phase.PICK_UP, lambda p: {"clock": (p.clock + 1) % 3}, "waiting|vacant"),
    ],
)
def test_inconsistent_fields_are_named(
    phase: Phase, change: Callable[[Position], dict[str, Any]], message: str
) -> None:
    least_round = 0 if phase.name.startswith("SETUP") else 6 if phase == Phase.CLOCK else 5
    game = at_phase(phase, least_round=least_round)
    position = game.position()
    with pytest.raises(PositionError, match=f"position: ({message})"):
        Game.from_position(dataclasses.replace(position, **change(position)), game.rules)


def test_no_seat_selects_when_all_spaces_are_taken() -> None:
    rules = Rules(spaces=1)
    game = Game(4, rules, first_player=0)
    while game.phase != Phase.SELECT_ACTIONS:
        game.step(game.legal_actions()[0])
    full = {"spaces": [[0], [1], [2], [3], [0], [1], [2]], "current_player": 3}
    hands = {"action_markers": [18, 18, 18, 19]}
    with pytest.raises(PositionError, match=r"spaces is .*all are taken"):
        Game.from_position(dataclasses.replace(game.position(), **full, **hands), rules)


def test_every_line_has_two_streets_from_the_set_up() -> None:
    position = at_phase(Phase.CLOCK).position()
    unbegun = {
        name: [nothing, *getattr(position, name)[1:]]
        for name, nothing in (
            ("streets", []), ("line_ends", []), ("arrivals", []), ("shared_with", []),
            ("line_markers", 25),
        )
    }  # fmt: skip
    with pytest.raises(PositionError, match=r"streets\[0\] is \[\]; but the setup gave two"):
        Game.from_position(dataclasses.replace(position, **unbegun))


@pytest.mark.parametrize("phase", [Phase.PICK_UP, Phase.SET_DOWN])
def test_a_driving_seat_has_a_passenger_to_carry(phase: Phase) -> None:
    game = at_phase(phase)
    position = game.position()
    line = {i for s in position.streets[game.current_player] for i in game.board.streets[s]}
    off = next(i for i in range(36) if i not in line)
    everybody = [0] * 36
    everybody[off] = sum(position.passengers)
    lonely = dataclasses.replace(position, passengers=everybody)
    waiting, vacant = waiting_and_vacant(lonely, game.board)
    if phase == Phase.SET_DOWN:  # all matching buildings are taken instead, or off the line
        buildings = [(k + 1) % 3 if k == lonely.clock else k for k in lonely.buildings]
        lonely = dataclasses.replace(lonely, buildings=buildings)
        waiting, vacant = waiting_and_vacant(lonely, game.board)
    field = "waiting" if phase == Phase.PICK_UP else "vacant"
    with pytest.raises(PositionError, match=f"{field} is .*none is on the line of seat"):
        Game.from_position(dataclasses.replace(lonely, waiting=waiting, vacant=vacant))


def test_a_line_that_must_grow_can_grow() -> None:
    game = at_phase(Phase.LINE_EXPANSION)
    seat, rules = game.current_player, Rules(line_markers=(2,) * 5)
    position = game.position()
    used = dataclasses.replace(
        position, line_markers=[2 - len(streets) for streets in position.streets]
    )
    with pytest.raises(PositionError, match=f"LINE_EXPANSION, but the line of seat {seat} cannot"):
        Game.from_position(used, rules)


def mutated(position: Position, rng: random.Random) -> Position:
    """A position with a field, or a number in one, changed at random."""
    field = rng.choice(dataclasses.fields(position)).name
    value = getattr(position, field)
    return dataclasses.replace(position, **{field: other(value, rng)})


def other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, Phase):
        return rng.choice([*Phase])
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 1, 2, 40])
    if isinstance(value, str):
        return rng.choice(["running", "time_stones", "sites", "markers"])
    if not isinstance(value, list):
        return rng.choice([0, 5])
    value, kind = list(value), rng.randrange(4)
    if not value or kind == 0:
        value.insert(rng.randint(0, len(value)), rng.choice([[], 0, 1, 4, 30]))
    elif kind == 1:
        del value[rng.randrange(len(value))]
    elif kind == 2:
        rng.shuffle(value)
    else:
        i = rng.randrange(len(value))
        value[i] = other(value[i], rng)
    return value


def test_mutated_positions_are_refused_or_can_be_played() -> None:
    rng = random.Random(0)
    positions = []
    for seed, (players, rules) in enumerate(CASES):
        game = Game(players, rules, seed=seed)
        while not game.is_over:
            positions.append((game.rules, game.position()))
            step(game, rng, seed)
    refused = played = 0
    for _ in range(1500):
        rules, position = rng.choice(positions)
        changed = position
        for _ in range(rng.randint(1, 3)):
            changed = mutated(changed, rng)
        if changed == position:
            continue
        try:
            game = Game.from_position(changed, rules)
        except PositionError:
            refused += 1
            continue
        assert game.position() == changed
        check_games(game.arrays()[0], game.board)
        played += 1
        while not game.is_over:
            assert len(game.history) < 2000
            game.step(rng.choice(game.legal_actions()))
            if rng.random() < 0.3:
                assert same(begun(game), game)  # what it plays to can be, too
        assert sorted(game.ranking()) == list(range(game.num_players))
    assert refused > 500
    assert played > 50
