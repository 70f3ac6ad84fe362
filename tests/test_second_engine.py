"""The compiled core and the second engine agree at every decision of random games."""

import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from busenv.game.board import make_board
from tests.support.compare import compare_game, compare_many
from tests.support.worlds import random_board, random_rules

# Every rare situation that the second engine counts must come up in each run of the comparison.
RARE = """
action_full buildings_short bus_at_limit clock_chosen_advance clock_not_chosen clock_stopped
ended_markers ended_sites ended_time_stones exception_refused_not_final extra_street_needs_power
five_player_bonus full_loop growth_lapsed_no_marker growth_lapsed_no_street last_stone loop_choice
max_buses_raised moved_on_from_full_loop other_end_only passengers_none passengers_short
passengers_split player_skipped_without_markers power_zero self_crossing shared_again
shared_by_exception shared_by_exception_two_others shared_no_empty sharing_again_refused
spaces_all_full start_passed_on start_taken stepped_in tie_by_first_delivery tie_by_seat
tie_by_stones vroom_full vroom_nothing vroom_partial zone_opened
""".split()


def check_reached(events: Counter) -> None:
    missing = [event for event in RARE if events[event] == 0]
    assert not missing, f"never reached: {missing}"


def test_agrees_on_random_games() -> None:
    check_reached(compare_many(0, 216))


@pytest.mark.slow
def test_agrees_on_20000_games() -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        parts = pool.map(compare_many, range(0, 20_000, 500), [500] * 40)
        check_reached(sum(parts, Counter()))


def test_agrees_on_other_boards_and_rules() -> None:
    rng = random.Random(7)
    for seed in range(150):
        data = random_board(rng)
        compare_game(rng.choice([3, 4, 5]), random_rules(rng), seed, make_board(data), data)
