"""The compiled core agrees with the second engine at every decision of whole random games."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from busenv import Rules
from busenv.board import make_board
from tests.compare import compare_game, compare_many

# Every rare situation that the second engine counts must come up in each run of the comparison.
RARE = """
action_full buildings_short bus_at_limit clock_chosen_advance clock_not_chosen clock_stopped
ended_markers ended_sites ended_time_stones exception_refused_not_final five_player_bonus full_loop
growth_lapsed_no_marker growth_lapsed_no_street last_stone loop_choice max_buses_raised
moved_on_from_full_loop other_end_only passengers_none passengers_short passengers_split
player_skipped_without_markers power_zero self_crossing shared_by_exception
shared_by_exception_two_others shared_no_empty spaces_all_full start_passed_on start_taken
stepped_in tie_by_first_delivery tie_by_seat tie_by_stones vroom_full vroom_nothing vroom_partial
zone_opened
""".split()


def check_reached(events: Counter) -> None:
    missing = [event for event in RARE if events[event] == 0]
    assert not missing, f"never reached: {missing}"


def test_agrees_on_random_games() -> None:
    check_reached(compare_many(0, 432))


@pytest.mark.slow
def test_agrees_on_20000_games() -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        parts = pool.map(compare_many, range(0, 20_000, 500), [500] * 40)
        check_reached(sum(parts, Counter()))


def random_board(rng: random.Random) -> dict:
    """A small connected board, quite unlike the city."""
    size = rng.randint(2, 9)
    joined = {(rng.randrange(i), i) for i in range(1, size)}
    for _ in range(rng.randint(0, size)):
        a, b = sorted(rng.sample(range(size), 2))
        joined.add((a, b))
    streets = [list(ends) if rng.random() < 0.5 else list(ends)[::-1] for ends in sorted(joined)]
    stations = rng.sample(range(size), 2)
    roundabouts = rng.sample(range(size), rng.randint(1, size))
    zones = rng.randint(1, 4)
    sites = [i % zones + 1 for i in range(rng.randint(zones, 20))]
    return {
        "intersections": [
            {
                "id": i,
                "x": i,
                "y": 0,
                "roundabout": i in roundabouts,
                "train_station": i in stations,
            }
            for i in range(size)
        ],
        "streets": streets,
        "sites": [
            {"id": i, "intersection": rng.randrange(size), "zone": zone}
            for i, zone in enumerate(sites)
        ],
    }


def random_rules(rng: random.Random) -> Rules:
    """Rules with every field changed."""
    start = rng.randint(0, 6)
    return Rules(
        action_markers=rng.randint(1, 25),
        line_markers=rng.choice([None, tuple(rng.randint(2, 12) for _ in range(5))]),
        bus_limit=rng.randint(1, 9),
        spaces=rng.randint(1, 8),
        time_stones=(rng.randint(1, 6), rng.randint(1, 6)),
        passengers=start + rng.randint(0, 11),
        start_passengers=start,
        line_sharing=rng.choice(["final_segment", "line_end"]),
    )


def test_agrees_on_other_boards_and_rules() -> None:
    rng = random.Random(7)
    for seed in range(150):
        data = random_board(rng)
        compare_game(rng.choice([3, 4, 5]), random_rules(rng), seed, make_board(data), data)
