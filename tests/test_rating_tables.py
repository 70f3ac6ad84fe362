"""Tables and statistics of a rating."""

from functools import partial

import numpy as np
import pytest

from busenv.common.intervals import bootstrap
from busenv.evaluation.plackett_luce import ELO, plackett_luce_ratings
from busenv.evaluation.rating_report import short_name
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tables import pair_table, rate_agents, result_table, seat_rows, seat_table
from tests.support.ratings import THREE_AGENTS, games_of

pytestmark = pytest.mark.usefixtures("few_resamples")


def test_long_names_are_shortened_in_pictures() -> None:
    assert short_name("uct:300") == "uct:300"
    long = short_name("net:runs/demo-20261122-021652/model.safetensors")
    assert long == "…22-021652/model.safetensors"


def test_identical_agents_are_at_par() -> None:
    schedule = Schedule(("greedy",) * 4, games=480)
    rows = seat_rows(games_of(schedule))
    table = result_table(rows, schedule)
    assert (table["par"] == 0.25).all()
    assert (table["low"] < table["par"]).all()
    assert (table["par"] < table["high"]).all()
    assert table["won"].sum() == pytest.approx(1)
    assert (table["rating_low"] <= 0).all()
    assert (table["rating_high"] >= 0).all()
    ahead = pair_table(rows)
    assert len(ahead) == 12
    assert ((ahead["low"] < 0.5) & (ahead["high"] > 0.5)).all()


def test_tables_count_games_wins_and_margins() -> None:
    games = games_of(THREE_AGENTS)
    rows = seat_rows(games)
    table = result_table(rows, THREE_AGENTS)
    assert [*table.index] == ["greedy", "random", "random#2"]
    assert (table["games"] == 90).all()
    assert table["rank"].sum() == pytest.approx(6)
    won = sum(game["ranking"][game["agents"].index("greedy")] == 0 for game in games)
    assert table.loc["greedy", "won"] == won / 90
    assert table.loc["random", "rating"] == 0
    assert table.loc["greedy", "rating_low"] > 0 > table.loc["random#2", "rating_low"]
    margin = 2 * pair_table(rows)["ahead"].xs("greedy", level="other") - 1
    assert table["deviation"].to_dict() == pytest.approx({"greedy": 0, **margin})
    assert (table["deviation_low"] <= table["deviation"]).all()
    assert (table["deviation"] <= table["deviation_high"]).all()
    seats = seat_table(rows)
    assert (seats.xs("all")["games"] == 90).all()
    assert (seats.xs("greedy")["games"] == 30).all()
    assert seats.xs("all").groupby("by")["won"].sum().to_dict() == pytest.approx(
        {"turn": 1, "seat": 1}
    )


def test_par_of_copies_is_their_share_of_the_seats() -> None:
    schedule = Schedule(("greedy",), games=16, against="random")
    table = result_table(seat_rows(games_of(schedule)), schedule)
    assert table["par"].to_dict() == {"greedy": 0.25, "random": 0.75}
    assert table.loc["greedy", "rating"] > table.loc["random", "rating"] == 0


def drawn(strengths: np.ndarray, line_up: list[int], games: int) -> np.ndarray:
    """Rankings after Plackett and Luce of agents with these strengths (logarithms)."""
    noise = np.random.default_rng(0).gumbel(size=(games, len(line_up)))
    return np.array(line_up)[np.argsort(-(strengths[line_up] + noise), axis=1)]


def test_ratings_recover_simulated_strengths() -> None:
    strengths = np.array([0.0, 1.0, 2.5])
    orders = drawn(strengths, [0, 0, 1, 1, 2], 2000)
    means = plackett_luce_ratings(orders, 3) / ELO
    assert means.sum() == pytest.approx(0)
    assert means - means[0] == pytest.approx(strengths, abs=0.15)


def test_the_rating_of_two_agents_has_the_odds_of_their_games() -> None:
    orders = np.array([[0, 1]] * 100 + [[1, 0]] * 10)  # 400 points are odds of 10 to 1
    assert plackett_luce_ratings(orders, 2) == pytest.approx([200, -200], abs=1)
    always = plackett_luce_ratings(orders[:100], 2)
    assert 500 < always[0] < 1000
    first, *_, last = plackett_luce_ratings(np.tile(np.arange(4), (16_000, 1)), 4)
    assert first == pytest.approx(-last, abs=1)


def test_bootstrap_intervals_cover_the_truth_and_fix_the_anchor() -> None:
    orders = drawn(np.array([0.0, 1.0, 1.0]), [0, 1, 2], 400)
    rate = partial(rate_agents, agents=3, anchor=0)
    (low, _), (high, _) = bootstrap(rate, orders, seed=0)
    truth = ELO
    assert low[0] == high[0] == 0
    assert (low[1:] < truth).all()
    assert (truth < high[1:]).all()
    again = bootstrap(rate, orders, seed=0, workers=2)
    assert np.array_equal([limit[0] for limit in again], (low, high))
