"""The worked examples of the rulebooks, rebuilt on a board (of R10, R11: test_rules.py)."""

import dataclasses

import pytest

from busenv import EDITIONS, Phase, encode
from busenv.game.board import make_board
from tests.support.table import (
    BUILDINGS,
    BUSES,
    CLOCK,
    FEW_LINES,
    LINES,
    OFFICE,
    PASSENGERS,
    START,
    VROOM,
    Table,
)


def test_action_power() -> None:
    """Line Expansion holds green, purple, blue, purple; purple has 2 buses, blue 3, green 1."""
    green, purple, blue = 0, 1, 2
    table = Table().setup([[0, 1, 2], [25, 30, 31], [34, 35, 23]])
    for buyer in (blue, blue, purple):
        hands = [[VROOM, VROOM] for _ in range(3)]
        hands[buyer][0] = BUSES
        table.choose(*hands).finish_round()
    assert table.game.position().buses == [1, 2, 3]
    assert table.game.current_player == green
    before = [len(streets) for streets in table.game.position().streets]
    table.choose([LINES, VROOM], [LINES, LINES], [LINES, VROOM])
    assert table.game.position().spaces[LINES] == [green, purple, blue, purple]
    order = []
    while table.game.phase == Phase.LINE_EXPANSION:
        order.append(table.game.current_player)
        table.game.step(table.game.legal_actions()[0])
    # D has power 0; blue on C adds one street, purple on B two, green on A three.
    assert order == [blue, purple, purple, green, green, green]
    after = [len(streets) for streets in table.game.position().streets]
    assert [b - a for a, b in zip(before, after, strict=True)] == [3, 2, 1]


def test_partial_line_loop() -> None:
    """A line comes back to one of its own intersections: this end continues from there."""
    table = Table().setup([[13, 14, 15], [0, 1, 2], [25, 29, 30]])
    for path in ((15, 21), (21, 20)):
        table.choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
        table.grow(*path)
        table.finish_round()
    table.choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
    table.grow(20, 14)
    assert table.game.position().line_ends[0] == [14, 13]
    table.finish_round().choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
    # From the loop only the empty streets at 14, or from the other end as before.
    assert {goal for origin, goal in table.goals() if origin == 14} == {8, 9}
    assert {goal for origin, goal in table.goals() if origin == 13} == {5, 7, 12, 20}


def touching_ends(rules: str = "capstone-2024") -> Table:
    """Blue (seat 0) and yellow (seat 1) both end at 14, coming from 8 and 9."""
    return Table(rules=rules).setup([[7, 8, 14], [10, 9, 14], [25, 29, 30]])


@pytest.mark.parametrize("rules", [*EDITIONS])
def test_sharing_where_ends_touch(rules: str) -> None:
    """Blue may take any empty street or run beside yellow's last one."""
    table = touching_ends(rules).choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
    assert {goal for origin, goal in table.goals() if origin == 14} == {9, 13, 15, 20}


def test_sharing_is_for_one_street() -> None:
    """At the next intersection an empty street must be taken again."""
    table = touching_ends()
    table.choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
    table.grow(14, 9)
    table.finish_round().choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
    assert {goal for origin, goal in table.goals() if origin == 9} == {2, 16}  # not on to 10


def test_sharing_is_lost_when_the_other_builds_on() -> None:
    """Once yellow has gone on from 14, blue may no longer run beside it."""
    table = touching_ends()
    table.choose([VROOM] * 2, [LINES, CLOCK], [VROOM, START])
    table.grow(14, 15)
    table.finish_round().choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
    assert {goal for origin, goal in table.goals() if origin == 14} == {13, 20}


def test_sharing_needs_touching_ends() -> None:
    """A line that only passes by cannot be run beside while a street is empty."""
    table = Table().setup([[7, 8, 14], [9, 14, 15], [25, 29, 30]])
    table.choose([LINES, VROOM], [VROOM, CLOCK], [VROOM, START])
    assert {goal for origin, goal in table.goals() if origin == 14} == {13, 20}


# Intersections of the Vrrooomm! example: six roundabouts with a passenger each (the first has
# two), stations at A and apart. Yellow drives D-C-E, green A-B-station, blue F-G-H.
G, A, B, D, E, F, STATION, C, H = range(9)
STREETS = [[D, C], [C, E], [A, B], [B, STATION], [F, G], [G, H], [E, A], [STATION, F]]
SITES = [A, A, B, B, C, E, H, H, H, D]


def example_table(blue_buses: int) -> Table:
    data = {
        "intersections": [
            {"id": i, "x": i, "y": 0, "roundabout": i < STATION, "train_station": i in (A, STATION)}
            for i in range(9)
        ],
        "streets": STREETS,
        "sites": [{"id": i, "intersection": at, "zone": 1} for i, at in enumerate(SITES)],
    }
    rules = dataclasses.replace(FEW_LINES, passengers=13, start_passengers=7)
    table = Table(rules=rules, board=make_board(data))
    table.setup([[D, C, E], [A, B, STATION], [F, G, H]], [(site, OFFICE) for site in range(6)])
    for buyer in (0, 0, 1):
        hands = [[LINES, LINES] for _ in range(3)]
        hands[buyer][0] = BUSES
        table.choose(*hands).finish_round()
    # Round 4: the clock comes round to the office again. Seat 0 starts.
    hands = [[VROOM, BUILDINGS], [VROOM, PASSENGERS], [VROOM, PASSENGERS, PASSENGERS]]
    if blue_buses == 2:
        hands[2].append(BUSES)
    table.choose(*hands)
    for to_a in (2, 0, 0):
        table.take(to_a)
    for site in (6, 7, 8):
        table.game.step(encode(table.board, "build", site, OFFICE))
    return table


@pytest.mark.parametrize("blue_buses", [1, 2])
def test_clock_and_vrrooomm(blue_buses: int) -> None:
    table = example_table(blue_buses)
    position = table.game.position()
    assert position.clock == OFFICE
    assert position.buses == [3, 2, blue_buses]
    assert [position.passengers[i] for i in (A, B, D, E, F, G, STATION)] == [3, 1, 1, 1, 1, 2, 4]
    # Two at A step in, one at B, the one at E; those at D, F and G have no office.
    assert position.waiting == sorted([A, D, F, G, STATION])
    assert position.vacant == sorted([B, C, H])
    # Yellow has three buses, but only the passenger at D: one point.
    assert table.turn == (0, Phase.PICK_UP)
    assert table.subjects() == {D}
    table.take(D)
    assert table.subjects() == {C}
    table.take(C)
    # Green has two buses and many who wait, but only the office at B: one point.
    assert table.turn == (1, Phase.PICK_UP)
    assert table.subjects() == {A, STATION}
    table.take(STATION)
    assert table.subjects() == {B}
    table.take(B)
    # Blue could bring three to three offices, but a bus takes one.
    for bus in range(blue_buses):
        assert table.turn == (2, Phase.PICK_UP)
        assert table.subjects() == ({F, G} if bus == 0 else {G})
        table.take((F, G)[bus])
        assert table.subjects() == {H}
        table.take(H)
    assert table.game.phase == Phase.SELECT_ACTIONS
    assert table.game.deliveries == [1, 1, blue_buses]
