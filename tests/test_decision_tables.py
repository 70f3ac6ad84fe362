"""Tables of decisions and of estimates."""

import numpy as np
import pandas as pd
import pytest

from busenv import Game, GameDataset, Phase, Rules, load_board
from busenv.evaluation import decision_table, estimate_table
from tests.support.play import played


def test_rows_are_the_decisions_of_games_and_datasets() -> None:
    games = [played(3, 0), played(3, 1)]
    table = decision_table(games)
    assert [*table.columns] == ["game", "ply", "round", "phase", "seat", "action", "points", "won"]
    second = table[table["game"] == 1]
    assert second["action"].tolist() == games[1].history
    again = Game(3, first_player=games[1].first_player)
    for row in second.itertuples():
        decided = again.round, again.phase, again.current_player
        assert (row.round, Phase[row.phase.upper()], row.seat) == decided
        assert row.points == games[1].points[row.seat]
        assert row.won == (games[1].ranking()[row.seat] == 0)
        again.step(row.action)

    owners = np.array([[0, 1, 1], [1, 0, 0]], np.uint8)
    dataset = GameDataset(
        load_board("city"), Rules(), ("greedy", "random"), 0, 3,
        first_players=np.array([game.first_player for game in games], np.uint8),
        agents=owners,
        lengths=np.array([len(game.history) for game in games], np.uint16),
        actions=np.concatenate([game.history for game in games]).astype(np.uint16),
    )  # fmt: skip
    of_dataset = decision_table(dataset)
    agents = of_dataset.pop("agent")
    pd.testing.assert_frame_equal(of_dataset, table)
    specs = np.array(dataset.agent_specs)[owners[table["game"], table["seat"]]]
    assert agents.tolist() == specs.tolist()


def test_estimates_of_positions() -> None:
    games = [played(3, 0, plies=30), played(3, 1, plies=40)]
    table = estimate_table("uct:20", games)
    for number, game in enumerate(games):
        rows = table[table["game"] == number]
        assert sorted(rows["action"]) == game.legal_actions()
        assert rows["share"].sum() == pytest.approx(1)
        assert rows["share"].is_monotonic_decreasing
        assert {*rows["seat"]} == {game.current_player}
        assert rows["chance"].between(0, 1).all()
        assert rows["value"].dropna().between(0, 1).all()
        assert rows["value"].notna().any()
    assert estimate_table("net:city-4", games)[["chance", "value"]].isna().all(axis=None)


def test_values_of_the_last_decision_follow_the_results() -> None:
    won, lost = 0, 0
    for seed in range(20):
        finished = played(3, seed)
        game = played(3, seed, plies=len(finished.history) - 1)
        # Two threads: values are those of both trees.
        for row in estimate_table("uct@2:50", [game]).dropna().itertuples():
            after = game.clone()
            after.step(row.action)
            if after.is_over:
                wins = after.ranking()[row.seat] == 0
                assert (row.value > 0.5) == wins
                won, lost = won + wins, lost + (not wins)
    assert min(won, lost) >= 5
