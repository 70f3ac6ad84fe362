"""R12 to R20, on positions reached by play (R1 to R11: test_rules.py)."""

import dataclasses

import numpy as np
import pytest

from busenv import Phase, random_playouts
from busenv.core.rules.score import rank_of
from busenv.core.state import GAME
from tests.support.table import (
    BUILDINGS,
    BUSES,
    CLOCK,
    FEW_LINES,
    HOUSE,
    LINES,
    OFFICE,
    PASSENGERS,
    PUB,
    START,
    VROOM,
    Table,
)

STOP, ADVANCE = 302, 301


def test_r12_buses_up_to_the_limit_and_m_at_once() -> None:
    table = Table(rules=FEW_LINES).setup()
    for buses in (2, 3, 4, 5):
        table.idle_round([BUSES])
        assert table.game.position().buses == [buses, 1, 1]
    table.idle_round([BUSES])
    assert table.game.position().buses == [5, 1, 1]  # at the limit it does nothing
    table.choose([VROOM] * 2, [PASSENGERS, BUSES], [VROOM] * 2)
    assert table.game.position().buses == [5, 2, 1]
    assert table.subjects() == {0, 1, 2, 3, 4, 5}  # M is the most buses of any player


def test_r13_passengers_split_as_the_player_likes() -> None:
    table = Table(rules=FEW_LINES).setup()
    for _ in range(4):
        table.idle_round([BUSES])
    table.choose([PASSENGERS] * 2, [PASSENGERS, VROOM], [VROOM] * 2)
    table.take(2)
    position = table.game.position()
    assert (position.passengers[10], position.passengers[25], position.supply) == (2, 3, 6)
    table.take(4)
    assert table.subjects() == {0, 1, 2}  # C would bring three: the supply has two
    table.take(0)
    position = table.game.position()
    assert (position.passengers[10], position.passengers[25], position.supply) == (6, 5, 0)
    table.finish_round().choose([PASSENGERS] * 2, [VROOM] * 2, [VROOM, CLOCK])
    assert table.game.phase == Phase.CLOCK  # no passenger is left: nothing is offered


def test_r14_buildings_go_to_the_lowest_zone_at_that_moment() -> None:
    table = Table(players=5, rules=FEW_LINES).setup()  # 10 of zone 1's 12 sites are built on
    for _ in range(2):
        table.idle_round([BUSES])
    table.choose([BUILDINGS] * 2, [VROOM] * 2, [VROOM] * 2, [VROOM] * 2, [LINES] * 2)
    assert table.subjects() == {10, 11}
    table.take(10)
    table.take(11)
    assert table.subjects() == set(range(12, 23))  # zone 2 opens within the action
    assert len(table.game.legal_actions()) == 33  # any type


@pytest.mark.parametrize(("action", "clock", "stones"), [(ADVANCE, OFFICE, 0), (STOP, HOUSE, 1)])
def test_r15_clock_advances_or_stops(action: int, clock: int, stones: int) -> None:
    table = Table(rules=FEW_LINES).setup()
    table.choose([LINES, CLOCK], [LINES] * 2, [LINES] * 2)
    assert table.turn == (0, Phase.CLOCK)
    assert table.game.legal_actions() == [ADVANCE, STOP]
    table.game.step(action)
    position = table.game.position()
    assert (position.clock, position.time_stones) == (clock, [stones, 0, 0])
    assert position.time_stones_left == 4 - stones
    assert table.game.points == [-stones, 0, 0]


def test_r15_time_goes_round_by_itself() -> None:
    table = Table(rules=FEW_LINES).setup()
    hands = []
    for _ in range(4):
        table.idle_round()
        hands.append(table.game.position().clock)
    assert hands == [OFFICE, PUB, HOUSE, OFFICE]


def test_r15_last_stone_ends_the_game_at_once() -> None:
    table = Table(rules=FEW_LINES).setup([[20, 14, 15], [25, 29, 30], [3, 4, 11]])
    for stone in range(1, 5):
        table.choose([LINES, VROOM], [CLOCK, START], [LINES] * 2)
        deliveries = table.game.deliveries
        table.game.step(STOP)
        if stone < 4:
            table.finish_round()
    assert table.game.is_over
    assert table.game.ending == "time_stones"
    assert table.game.deliveries == deliveries  # no Vrrooomm!
    assert table.game.position().starting_player == 1  # as before
    assert table.game.time_stones == [0, 4, 0]
    assert table.game.legal_actions() == []
    assert table.game.current_player == -1


def test_r16_passengers_step_into_matching_buildings() -> None:
    # Offices: two at 14 (one passenger), one at 15 (one passenger), one at 9 (none).
    offices = [(1, OFFICE), (2, OFFICE), (3, OFFICE), (0, OFFICE), (6, PUB), (11, PUB)]
    table = Table(rules=FEW_LINES).setup([[15, 14, 20], [2, 1, 0], [25, 29, 30]], offices)
    table.choose([LINES, VROOM], [LINES] * 2, [LINES] * 2)
    position = table.game.position()
    assert position.waiting == [20, 21]  # nothing for them there
    assert position.vacant == [9, 14]  # 14: one of two is taken
    assert table.turn == (0, Phase.PICK_UP)
    assert table.subjects() == {20}


def test_r17_vrrooomm_carries_while_there_are_passengers_and_places() -> None:
    offices = [(1, OFFICE), (2, OFFICE), (3, OFFICE), (0, OFFICE), (6, PUB), (11, PUB)]
    table = Table(rules=FEW_LINES).setup([[16, 15, 21], [9, 14, 20], [25, 29, 30]], offices)
    for _ in range(3):  # two more buses for seat 1; the clock comes round to house
        table.idle_round([], [BUSES], [])
    table.choose([LINES] * 2, [VROOM] * 2, [VROOM, PASSENGERS])
    table.take(0)
    # Seat 1 has four buses and reaches 9, 14, 20: one free office at 9, one at 14.
    assert table.turn == (1, Phase.PICK_UP)
    assert table.subjects() == {20}
    table.take(20)
    assert table.turn == (1, Phase.SET_DOWN)
    assert sum(table.game.position().passengers) + table.game.position().supply == 14
    assert table.subjects() == {9, 14}
    table.take(9)
    assert table.game.deliveries == [0, 1, 0]
    # 20 is empty now, and no other passenger waits on the line: three buses stay idle.
    assert table.game.phase == Phase.SELECT_ACTIONS


@pytest.mark.parametrize(("extra", "carried"), [([], 1), ([VROOM], 2), ([BUSES], 2)])
def test_r17_a_bus_carries_one_and_each_marker_uses_all_buses(extra: list, carried: int) -> None:
    """As in the rulebook's example, more passengers may wait than the buses carry."""
    buildings = [(0, OFFICE), (6, OFFICE), (1, PUB), (2, PUB), (3, PUB), (4, PUB)]
    table = Table().setup([[9, 14, 20], [0, 1, 2], [25, 29, 30]], buildings)
    table.choose([LINES, VROOM, *extra], [VROOM, CLOCK], [VROOM, START])
    table.grow(20, 19)
    table.game.step(ADVANCE)
    # Passengers wait at 14 and 20, offices at 9 and 19 are free.
    deliveries = [(14, {14, 20}, 9, {9, 19}), (20, {20}, 19, {19})]
    for start, waiting, goal, vacant in deliveries[:carried]:
        assert table.turn == (0, Phase.PICK_UP)
        assert table.subjects() == waiting
        table.take(start)
        assert table.subjects() == vacant
        table.take(goal)
    assert table.game.deliveries == [carried, 0, 0]
    assert table.game.phase == Phase.SELECT_ACTIONS


def test_r18_starting_player_is_taken_or_passes_clockwise() -> None:
    table = Table(players=4, rules=FEW_LINES, first=1).setup()
    table.idle_round()
    assert table.game.position().starting_player == 2 == table.game.current_player
    table.idle_round([START], [], [], [])
    assert table.game.current_player == 0
    for seat in (1, 2, 3, 0):
        table.idle_round()
        assert table.game.current_player == seat


def test_r19_ends_when_all_sites_are_built() -> None:
    table = Table(players=5, rules=dataclasses.replace(FEW_LINES, action_markers=60)).setup()
    for _ in range(4):
        table.idle_round([BUSES])
    while not table.game.is_over:
        before = table.game.position()
        table.choose([BUILDINGS] * 3, [BUILDINGS] * 3, [VROOM] * 2, [LINES] * 2, [LINES] * 2)
        table.finish_round()
    end = table.game.position()
    assert before.buildings.count(-1) <= 15
    assert end.buildings.count(-1) == 0
    assert end.clock == (before.clock + 1) % 3  # R15: the round was played to its end
    assert table.game.ending == "sites"


def test_r19_ends_when_at_most_one_player_has_markers() -> None:
    rules = dataclasses.replace(FEW_LINES, action_markers=5)
    table = Table(rules=rules).setup()
    table.choose([LINES] * 4, [LINES] * 2, [VROOM] * 2).finish_round()
    assert table.game.position().action_markers == [1, 3, 3]
    table.choose([VROOM], [VROOM] * 3, [LINES] * 2)
    assert table.game.is_over
    assert table.game.ending == "markers"
    assert table.game.position().action_markers == [0, 0, 1]
    assert table.game.round == 2


def test_r20_without_deliveries_the_first_seat_stands_before() -> None:
    table = Table(players=4, rules=FEW_LINES, first=2).setup()
    assert table.game.ranking() == [2, 3, 0, 1]  # no deliveries: from the first player on


def test_r20_who_reached_the_number_first_stands_before() -> None:
    offices = [(1, OFFICE), (2, OFFICE), (3, OFFICE), (4, OFFICE), (9, PUB), (11, PUB)]
    lines = [[20, 14, 8], [21, 15, 16], [25, 29, 30]]
    table = Table(rules=FEW_LINES).setup(lines, offices)
    table.choose([LINES, VROOM], [VROOM, LINES], [LINES] * 2)
    for start, goal in ((21, 15), (20, 14)):  # R6: seat 1 has space A
        table.take(start)
        table.take(goal)
    assert table.game.deliveries == [1, 1, 0]
    assert table.game.ranking() == [1, 0, 2]


def test_r20_more_stones_stand_before_an_earlier_delivery() -> None:
    """Seats 0 and 1 have one point; seat 0's last delivery came first."""
    game = np.zeros(1, GAME)
    game["players"] = 3
    game["deliveries"][0, :3], game["stones"][0, :3] = (1, 2, 0), (0, 1, 0)
    game["delivery_order"][0, :2] = 1, 2
    assert [rank_of(game[0], seat) for seat in range(3)] == [1, 0, 2]


def test_random_playouts_end_in_every_way() -> None:
    result = random_playouts(3000, seed=1)
    assert sum(result.endings.values()) == 3000 == result.games
    assert all(result.endings.values())
    assert len(result.deliveries) == 4
    assert 3 < result.rounds < 7
    assert result == random_playouts(3000, seed=1)
    assert result != random_playouts(3000, seed=2)
