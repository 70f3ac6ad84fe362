"""R1 to R11 by their numbers, on positions reached by play (R12 to R20: test_rules_actions.py)."""

import dataclasses
from collections import Counter

import pytest

from busenv import EDITIONS, Game, Phase, Rules
from tests.support.table import (
    BUILDINGS,
    BUSES,
    CLOCK,
    FEW_LINES,
    HOUSE,
    LINES,
    PASSENGERS,
    START,
    VROOM,
    Table,
)

PASS = 7


def test_editions_are_those_of_the_rules_page() -> None:
    table = {
        "capstone-2024": ((25,) * 5, 5, "final_segment", "other_line", "always"),
        "capstone-2019": ((25,) * 5, 5, "line_end", "never", "always"),
        "splotter-1999": ((28, 28, 28, 18, 18), 20, "line_end", "never", "always"),
        "condensed": (None, 20, "line_end", "always", "with_power"),
    }
    names = ("line_markers", "bus_limit", "line_sharing", "sharing_again", "extra_street")
    common = {"action_markers": 20, "spaces": 6, "time_stones": (4, 5), "passengers": 15}
    common["start_passengers"] = 4
    assert {name: dataclasses.asdict(rules) for name, rules in EDITIONS.items()} == {
        name: common | dict(zip(names, values, strict=True)) for name, values in table.items()
    }
    assert Rules() == EDITIONS["capstone-2024"]


@pytest.mark.parametrize(("players", "stones"), [(3, 4), (4, 5), (5, 5)])
def test_r1_start(players: int, stones: int) -> None:
    game = Game(players, seed=3)
    position = game.position()
    assert position.clock == HOUSE
    assert position.time_stones_left == stones
    assert position.supply == 11
    assert position.buses == [1] * players
    assert position.action_markers == [20] * players
    there = {i for i, count in enumerate(position.passengers) for _ in range(count)}
    assert there == {14, 15, 20, 21} == {i for i in there if game.board.intersections[i].roundabout}
    assert game.round == 0


def test_r1_first_player_is_given_or_drawn_from_the_seed() -> None:
    assert [Game(3, first_player=seat, seed=1).current_player for seat in range(3)] == [0, 1, 2]
    drawn = [Game(5, seed=seed).first_player for seed in range(2000)]
    assert drawn == [Game(5, seed=seed).first_player for seed in range(2000)]
    assert all(300 < count < 500 for count in Counter(drawn).values())
    assert len(Counter(drawn)) == 5


def test_r2_first_buildings() -> None:
    table = Table(players=4, first=2)
    movers = []
    for site in range(8):
        assert table.game.phase == Phase.SETUP_BUILDINGS
        assert table.subjects() == set(range(site, 12))  # zone 1 only, and free sites only
        assert len(table.game.legal_actions()) == 3 * (12 - site)
        movers.append(table.game.current_player)
        table.take(site)
    assert movers == [2, 2, 3, 3, 0, 0, 1, 1]
    assert table.turn == (2, Phase.SETUP_FIRST_LINE)


def test_r3_first_lines_go_round_and_back() -> None:
    table = Table(players=4, first=1).first_buildings()
    movers = []
    for _ in range(4):
        assert table.game.phase == Phase.SETUP_FIRST_LINE
        assert table.game.legal_actions() == list(range(149, 289, 2))  # any street, d = 0
        movers.append(table.game.current_player)
        table.game.step(149 + 2 * 20)  # all on street 8-14, occupied or not
    assert movers == [1, 2, 3, 0]
    movers = []
    while table.game.phase == Phase.SETUP_SECOND_LINE:
        movers.append(table.game.current_player)
        table.game.step(table.game.legal_actions()[0])
    assert movers == [0, 3, 2, 1]
    assert table.turn == (1, Phase.SELECT_ACTIONS)
    assert table.game.round == 1


def test_r3_second_marker_obeys_the_growth_rules() -> None:
    table = Table().first_buildings()
    for street in ((2, 3), (13, 20), (13, 20)):
        table.grow(*street, first=True)
    # Seat 2 has both ends at ends of seat 1's line; a free street is there, its own street is not.
    assert (20, 14) in table.goals()
    assert (20, 13) not in table.goals()
    table.grow(20, 14)
    # Seat 1: seat 2's line passes through 20 now, and there are empty streets.
    assert table.goals() == {(13, 5), (13, 7), (13, 12), (13, 14), (20, 19), (20, 21)}


def test_r4_two_markers_must_be_placed_then_passing_is_final() -> None:
    table = Table().setup()
    for seat in (0, 1, 2, 0, 1, 2):
        assert table.turn == (seat, Phase.SELECT_ACTIONS)
        assert PASS not in table.game.legal_actions()
        table.game.step(int(VROOM))
    assert table.game.legal_actions() == [0, 1, 2, 3, 4, 6, PASS]
    table.game.step(PASS)
    movers = []
    for action in (BUSES, PASSENGERS, PASSENGERS, PASS):
        movers.append(table.game.current_player)
        table.game.step(int(action))
    assert movers == [1, 2, 1, 2]  # seat 0 is not asked again
    assert table.turn == (1, Phase.SELECT_ACTIONS)
    table.game.step(PASS)
    assert table.game.phase == Phase.PASSENGERS


def test_r4_without_markers_a_player_is_skipped() -> None:
    rules = dataclasses.replace(EDITIONS["capstone-2024"], action_markers=3)
    table = Table(rules=rules).setup()
    for seat in (0, 1, 2, 0, 1, 2):
        assert table.game.current_player == seat
        table.game.step(int(LINES))
    table.game.step(int(VROOM))  # seat 0 spends its last marker
    table.game.step(PASS)
    table.game.step(PASS)
    table.finish_round()
    assert table.game.round == 2
    assert table.game.position().action_markers == [0, 1, 1]
    # One marker is less than two: it must be placed, and then its owner is out.
    assert table.turn == (1, Phase.SELECT_ACTIONS)
    assert PASS not in table.game.legal_actions()
    table.game.step(int(VROOM))
    assert table.turn == (2, Phase.SELECT_ACTIONS)
    table.game.step(int(VROOM))
    assert table.game.is_over


def test_r4_selection_ends_when_no_space_is_left() -> None:
    table = Table(players=5).setup()
    for count, action in enumerate([VROOM, LINES, PASSENGERS, BUILDINGS] * 6 + [1, 4, 6]):
        assert table.game.phase == Phase.SELECT_ACTIONS, count
        table.game.step(int(action))
    assert table.game.phase == Phase.LINE_EXPANSION


def test_r5_spaces() -> None:
    table = Table(players=4).setup()
    table.game.step(int(BUSES))
    assert int(BUSES) not in table.game.legal_actions()
    for _ in range(6):
        assert int(VROOM) in table.game.legal_actions()
        table.game.step(int(VROOM))
    assert int(VROOM) not in table.game.legal_actions()
    for action in (CLOCK, START):
        table.game.step(int(action))
        assert int(action) not in table.game.legal_actions()
    spaces = table.game.position().spaces
    assert spaces[VROOM] == [1, 2, 3, 0, 1, 2]  # A to F, one player several
    assert (spaces[BUSES], spaces[CLOCK], spaces[START]) == ([0], [3], [0])


def test_r6_order_of_resolution() -> None:
    table = Table(players=4, rules="condensed").setup()
    table.idle_round([BUSES])
    table.idle_round([], [BUSES], [], [])
    order = []
    hands = [
        [LINES, VROOM, BUILDINGS],
        [BUILDINGS, LINES],
        [PASSENGERS, CLOCK],
        [VROOM, PASSENGERS],
    ]
    table.choose(*hands)
    while table.game.phase != Phase.SELECT_ACTIONS:
        if not order or order[-1] != table.turn:
            order.append(table.turn)
        table.game.step(table.game.legal_actions()[0])
    spaces_of_lines = [1, 0]  # last space first
    assert [seat for seat, phase in order if phase == Phase.LINE_EXPANSION] == spaces_of_lines
    assert [seat for seat, phase in order if phase == Phase.PASSENGERS] == [2, 3]  # from A on
    assert [seat for seat, phase in order if phase == Phase.BUILDINGS] == [0, 1]  # last first
    phases = list(dict.fromkeys(phase for _, phase in order))
    chain = [Phase.LINE_EXPANSION, Phase.PASSENGERS, Phase.BUILDINGS, Phase.CLOCK]
    assert phases[:4] == chain
    assert set(phases[4:]) <= {Phase.PICK_UP, Phase.SET_DOWN}


def test_r6_lines_grow_before_buses_are_added() -> None:
    table = Table().setup()
    table.choose([LINES, BUSES], [VROOM] * 2, [VROOM] * 2)
    assert table.turn == (0, Phase.LINE_EXPANSION)
    table.game.step(table.game.legal_actions()[0])
    assert table.game.phase != Phase.LINE_EXPANSION  # M was 1
    assert table.game.position().buses == [2, 1, 1]


def test_r7_power_falls_by_the_space() -> None:
    table = Table().setup()
    table.choose([BUILDINGS, BUSES], [BUILDINGS, BUILDINGS], [PASSENGERS, PASSENGERS])
    assert table.turn == (2, Phase.PASSENGERS)
    assert table.subjects() == {0, 1, 2}  # M rose to 2 before: A brings two
    table.take(0)
    assert table.subjects() == {0, 1}  # B one
    table.take(0)
    built = []
    while table.game.phase == Phase.BUILDINGS:
        built.append(table.game.current_player)
        table.take(min(table.subjects()))
    assert built == [1, 0, 0]  # C nothing, B one, A two


@pytest.mark.parametrize("rules", EDITIONS)
def test_r7_five_players_expand_by_one_more(rules: str) -> None:
    table = Table(players=5, rules=rules).setup()
    table.choose([LINES, LINES], [LINES, VROOM], [BUILDINGS] * 2, [VROOM] * 2, [VROOM] * 2)
    grown = []
    while table.game.phase == Phase.LINE_EXPANSION:
        grown.append(table.game.current_player)
        table.game.step(table.game.legal_actions()[0])
    # M is 1. A: 1 + 1. C: 1 - 2 + 1 is nothing. B: 0 + 1, but `condensed` gives nothing to power 0.
    assert grown == ([0, 0] if rules == "condensed" else [1, 0, 0])
    built = 0
    while table.game.phase == Phase.BUILDINGS:
        built += 1
        table.take(min(table.subjects()))
    assert built == 1  # no bonus elsewhere


def test_r8_a_line_grows_from_either_end_and_never_twice_along_a_street() -> None:
    table = Table().setup([[13, 14, 20], [0, 1, 2], [25, 29, 30]])
    table.choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
    assert table.goals() == {(13, 5), (13, 7), (13, 12), (13, 20), (20, 13), (20, 19), (20, 21)}
    # Street 13-20 joins the ends: either may move.
    table.grow(13, 12)
    assert table.game.position().line_ends[0] == [12, 20]  # the end that moved last comes first
    assert table.game.position().arrivals[0][0] == table.board.streets.index((12, 13))


@pytest.mark.parametrize("rules", EDITIONS)
def test_r9_shares_the_street_of_arrival_or_any_of_a_line_that_ends_there(rules: str) -> None:
    """Seat 1's line passes 14 and ends there, as in the rulebook's partial-line loop."""
    table = Table(rules=rules).setup([[7, 8, 14], [9, 14, 15], [25, 29, 30]])
    for path in ((15, 21), (21, 20), (20, 14)):
        table.choose([VROOM] * 2, [LINES, VROOM], [VROOM] * 2)
        table.grow(*path)
        table.finish_round()
    assert table.game.position().line_ends[1] == [14, 9]
    table.choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
    goals = {goal for origin, goal in table.goals() if origin == 14}
    assert goals == ({13, 20} if rules == "capstone-2024" else {13, 20, 9, 15})


def test_r9_every_line_on_a_shared_street_must_end_there() -> None:
    """Street 9-14 bears seat 1, whose line ends at 14, and seat 2, whose line passes 14."""
    table = Table().setup([[7, 8, 14], [10, 9, 14], [9, 14, 15]])
    table.choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
    assert {goal for origin, goal in table.goals() if origin == 14} == {13, 20}


def test_r9a_sharing_again_with_another_line() -> None:
    """Seat 0's line 7-8-14 shares 14-9 with seat 1; at 9 seat 2's line ends and 9-16 is empty.

    At 14 seat 0 chooses among empty streets and 14-9, as in the rulebook's example of R9.
    """
    for rules in EDITIONS:
        table = Table(rules=rules).setup([[7, 8, 14], [10, 9, 14], [1, 2, 9]])
        table.choose([LINES, BUSES], [VROOM] * 2, [VROOM] * 2)
        assert {goal for origin, goal in table.goals() if origin == 14} == {9, 13, 15, 20}
        table.grow(14, 9)
        assert table.game.position().shared_with[0] == [[] if rules == "condensed" else [1], []]
        table.finish_round().choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
        never = rules in ("splotter-1999", "capstone-2019")
        goals = {goal for origin, goal in table.goals() if origin == 9}
        assert goals == ({16} if never else {16, 2}), rules


def test_r9a_sharing_again_with_the_same_line() -> None:
    """Seat 0 shares 14-9 with seat 1's line 9-10-16-9-14, which ends at 9 too; 9-2 is empty."""
    for rules in EDITIONS:
        table = Table(rules=rules).setup([[7, 8, 14], [9, 10, 16], [25, 29, 30]])
        for path in ((16, 9), (9, 14)):
            table.choose([VROOM] * 2, [LINES, VROOM], [VROOM] * 2)
            table.grow(*path)
            table.finish_round()
        table.choose([LINES, BUSES], [VROOM] * 2, [VROOM] * 2)
        table.grow(14, 9)
        table.finish_round().choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
        goals = {goal for origin, goal in table.goals() if origin == 9}
        # `line_end` would allow 9-16 as well, another street of seat 1.
        assert goals == ({2, 10, 16} if rules == "condensed" else {2}), rules
        table.grow(9, 2)
        assert table.game.position().shared_with[0] == [[], []]  # 9-2 was empty


@pytest.mark.parametrize("rules", EDITIONS)
def test_r9a_after_a_street_shared_by_r10(rules: str) -> None:
    table = Table(rules=rules).setup([[2, 3, 4], [9, 10, 3], [10, 11, 4]])
    table.choose([VROOM] * 2, [LINES, VROOM], [VROOM] * 2)
    table.grow(3, 4)  # no street at 3 is empty
    remembers = rules in ("splotter-1999", "capstone-2019")
    assert table.game.position().shared_with[1] == [[0] if remembers else [], []]
    table.finish_round().choose([VROOM] * 2, [LINES, VROOM], [VROOM] * 2)
    # At 4, where some street is empty, seat 2's line ends by 4-11.
    shares = (4, 11) in table.goals()
    assert shares is not remembers


def test_r9a_the_second_marker_is_remembered_and_the_first_is_not() -> None:
    table = Table(rules="capstone-2019").first_buildings()
    for _ in range(3):
        table.grow(8, 14, first=True)  # three lines on one street
    assert table.game.position().shared_with == [[[], []]] * 3
    table.grow(14, 9)
    table.grow(14, 13)
    table.grow(8, 2)
    assert table.game.position().shared_with == [[[], []]] * 3
    table = Table(rules="capstone-2019").setup([[8, 14, 9], [10, 9, 14], [25, 29, 30]])
    assert table.game.position().shared_with[0] == [[1], []]


def test_r9_r10_no_empty_street_then_any() -> None:
    """Seat 1 ends at 3 between seat 0's streets: nothing is empty there, but at its other end."""
    table = Table().setup([[2, 3, 4], [9, 10, 3], [25, 29, 30]])
    table.choose([VROOM] * 2, [LINES, VROOM], [VROOM] * 2)
    assert {goal for origin, goal in table.goals() if origin == 3} == {2, 4}
    assert (9, 14) in table.goals()
    table.grow(3, 2)
    assert table.game.position().line_ends[1] == [2, 9]


def test_r10_growth_lapses_without_line_markers() -> None:
    table = Table(players=5, rules=FEW_LINES).setup()
    table.choose([LINES, LINES], [LINES, VROOM], [VROOM, CLOCK], [VROOM] * 2, [VROOM] * 2)
    assert table.game.phase == Phase.CLOCK  # nothing was offered for Line Expansion
    assert table.game.position().line_markers == [0] * 5


@pytest.mark.parametrize(("origin", "goal", "goals"), [(13, 20, {19, 21}), (20, 13, {5, 7, 12})])
def test_r11_after_a_full_loop_the_end_that_moved_last_moves_on(
    origin: int, goal: int, goals: set[int]
) -> None:
    """The worked example of a full line loop: seat 0's line 13-14-20, joined by street 13-20."""
    table = Table().setup([[13, 14, 20], [0, 1, 2], [25, 29, 30]])
    table.choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
    table.grow(origin, goal)
    assert table.game.position().line_ends[0] == [goal, goal]
    table.finish_round().choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
    assert table.goals() == {(goal, onward) for onward in goals}
    out = min(table.goals())
    table.grow(*out)
    position = table.game.position()
    assert position.line_ends[0] == [out[1], goal]  # the other end stayed
    other_way_in = table.board.streets.index((14, 20) if goal == 20 else (13, 14))
    assert position.arrivals[0][1] == other_way_in


def test_r11_both_arrivals_of_a_full_loop_are_final_segments() -> None:
    table = Table().setup([[13, 14, 20], [18, 12, 19], [25, 29, 30]])
    table.choose([LINES, VROOM], [VROOM] * 2, [VROOM] * 2)
    table.grow(13, 20)
    table.finish_round().choose([VROOM] * 2, [LINES, VROOM], [VROOM] * 2)
    table.grow(19, 20)
    table.finish_round().choose([VROOM] * 2, [LINES, VROOM], [VROOM] * 2)
    # 20-21 is empty; 20-13 and 20-14 are seat 0's two ways in.
    assert {goal for origin, goal in table.goals() if origin == 20} == {21, 13, 14}
