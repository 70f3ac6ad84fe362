"""Recorded games are told in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from busenv.experiments import cli
from busenv.experiments.ratings.schedule import Plan
from busenv.experiments.ratings.tournament import play_game

from busenv import Game
from tests.support.golden import FOLDER, GAMES


def golden(name: str, players: int, rules: str, seed: int) -> Game:
    """A golden game (tests.support.golden), from the action ids in its text."""
    game = Game(players, rules, seed=seed)
    for action in re.findall(r"legal: +(\d+) ", (FOLDER / f"{name}.txt").read_text("utf-8")):
        game.step(int(action))
    return game


@pytest.mark.parametrize("setup", [setup for *setup, _ in GAMES])
def test_golden_games_in_words(setup: list, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    game = golden(*setup)
    game.save(tmp_path / "game.json")
    cli.main(["show", str(tmp_path / "game.json")])
    told = capsys.readouterr().out
    lines = told.splitlines()
    decisions = [line.strip() for line in lines if line.startswith("    seat ")]
    assert [line.partition(": ")[2] for line in decisions] == [
        game.describe(action) for action in game.history
    ]
    assert [line for line in lines if line.startswith("Round ")] == [
        f"Round {number + 1}" for number in range(game.round)
    ]
    assert sum(line.endswith(" buses") for line in lines) == sum(game.position().buses) - setup[1]
    winner = game.ranking().index(0)
    assert lines[-1].startswith(f"Ranking: seat {winner} ({game.points[winner]} points), ")


def test_a_game_of_a_rating_in_words(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    played = play_game(Plan(("greedy", "random"), players=3, games=18), 7)
    cut = {**played, "number": 8, "forfeit": {"seat": 1, "ply": 30, "why": "no answer"}}
    cut["record"] = {**played["record"], "actions": played["record"]["actions"][:30]}
    cut["record"]["result"] = None
    path = tmp_path / "games.jsonl"
    path.write_text(f"{json.dumps(played)}\n{json.dumps(cut)}\n")
    cli.main(["show", f"{path}:7"])
    told = capsys.readouterr().out
    assert "\nseat 0: greedy\nseat 1: random\n" in told
    assert "\nOver: " in told
    cli.main(["show", f"{path}:8"])
    assert "\nForfeited by seat 1 at ply 30: no answer\nRanking: " in capsys.readouterr().out


def test_games_that_run_are_told_so_far(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    Game(first_player=3, seed=1).save(tmp_path / "new.json")
    cli.main(["show", str(tmp_path / "new.json")])
    assert "Not over: seat 3 to decide SETUP_BUILDINGS" in capsys.readouterr().out


def test_what_cannot_be_shown_is_told(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "games.jsonl").write_text("")
    (tmp_path / "words.json").write_text("hello")
    for source, message in (
        ("nowhere.json", "nowhere.json"),
        ("nowhere.jsonl:3", "nowhere.jsonl"),
        (f"{tmp_path / 'games.jsonl'}:3", "has no game 3; games it has: none"),
        (str(tmp_path / "words.json"), "not a game record"),
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["show", source])
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
    Game(seed=1).save(tmp_path / "new.json")
    with pytest.raises(SystemExit):
        cli.main(["show", str(tmp_path / "new.json"), "--ply", "5"])
    assert "--ply goes with --draw" in capsys.readouterr().err
