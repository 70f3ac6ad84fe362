"""Matches are balanced, the demo leaves its report, the commands answer."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from busenv.agents import Agent, make_agent
from busenv.experiments import cli
from busenv.experiments.bench.speed import rates
from busenv.experiments.ratings import rating
from busenv.experiments.ratings.match import Score, play_match
from busenv.experiments.ratings.schedule import Plan

from busenv import Board, Game, IllegalActionError
from busenv.core.state import SETUP_BUILDINGS


class Watcher(Agent):
    """Plays at random and notes where it sits and who starts."""

    name = "watcher"

    def __init__(self) -> None:
        self.inner = make_agent("random")
        self.seats: list[tuple[int, int]] = []

    def reset(self, seed: int) -> None:
        self.inner.reset(seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        for game in games[(games["phase"] == SETUP_BUILDINGS) & (games["power"] == 2)]:
            self.seats.append((int(game["seat"]), int(game["first"])))
        return self.inner.choose(games, board)


@pytest.mark.parametrize("players", [3, 4, 5])
def test_every_agent_sits_and_starts_everywhere_equally(players: int) -> None:
    watcher = Watcher()
    others = [make_agent("random", k) for k in range(players - 1)]
    scores = play_match([watcher, *others], 2 * players * players)
    assert sorted(watcher.seats) == sorted(
        2 * [(seat, first) for seat in range(players) for first in range(players)]
    )
    assert sum(score.wins for score in scores) == 2 * players * players
    assert sum(score.place for score in scores) == pytest.approx(players * (players - 1) / 2)


def test_equal_agents_score_par() -> None:
    scores = play_match([make_agent("random", k) for k in range(4)], 4000)
    for score in scores:
        low, high = score.interval(z=4.0)
        assert low < 0.25 < high


def test_wilson_interval() -> None:
    low, high = Score("a", 100, 25, 0, 0).interval()
    assert (round(low, 4), round(high, 4)) == (0.1755, 0.3430)
    for games in range(1, 200):  # a limit on the wrong side would make a bar of negative length
        assert Score("a", games, 0, 0, 0).interval()[0] == 0
        assert Score("a", games, games, 0, 0).interval()[1] == 1


def test_an_agent_that_chooses_wrongly_is_named() -> None:
    class Wrong(Watcher):
        name = "wrong"

        def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
            return np.full(len(games), 374)

    with pytest.raises(
        IllegalActionError, match=r"'wrong': action 374 .*of game 0 is illegal for seat \d in phase"
    ):
        play_match([Wrong(), make_agent("random"), make_agent("random")], 3)


def test_rates_counts_every_run_but_the_first() -> None:
    calls = []
    (found,) = rates([lambda: calls.append(1) or 1000], repeats=4)
    assert len(calls) == 5
    assert len(found) == 4
    assert all(rate > 0 for rate in found)


@pytest.mark.filterwarnings("ignore")
def test_demo_leaves_a_report_a_game_to_watch_and_commands_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / "a run"
    cli.main(["demo", "--seconds", "1", "--games", "16", "--out", str(folder)])
    names = {path.name for path in folder.iterdir()}
    assert names >= {"report.md", "learning_curve.png", "curve.csv", "model.safetensors"}
    assert names >= {"model.json", "run.json", "tensorboard", "replay.json", "replay.html"}
    report = (folder / "report.md").read_text()
    assert "| ppo, 3 greedy | ppo |" in report
    how = "imitation of planner, then PPO among greedy, planner and past selves"
    assert how in report.replace("\n", " ")
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "curve.csv").read_text().count("\n") >= 2
    assert make_agent(f"ppo:{folder / 'model.safetensors'}").name.startswith("ppo:")

    out = capsys.readouterr().out
    assert f"Training: {how}" in out.replace("\n", " ")
    (head,) = (line for line in out.splitlines() if "line-up" in line)
    for column in ("agent", "wins", "95% interval", "place", "points"):  # all fit in 80 columns
        assert f" {column} " in head
    assert len(head) <= 80
    assert "greedy, 3 random" in out

    game = Game.load(folder / "replay.json")
    assert game.is_over
    assert game.num_players == 4
    page = (folder / "replay.html").read_text()
    assert "planner" in page
    assert "ppo" in page

    commands = report.split("```sh\n")[1].split("\n```")[0].splitlines()
    assert [command for command in commands if command in out] == commands
    train, rate, replay = (shlex.split(command) for command in commands)
    assert [words[:2] for words in (train, rate, replay)] == [
        ["busenv", "train"], ["busenv", "rate"], ["busenv", "replay"],
    ]  # fmt: skip
    assert train[-1] == "seconds=3600"
    done = json.loads((folder / "model.json").read_text())["training"]["seconds"]
    cli.main([*train[1:-1], f"seconds={done + 0.5}", "rated=random", "--games", "4"])
    assert "Going on after" in capsys.readouterr().out
    cli.main([{"uct:300": "uct:4"}.get(word, word) for word in replay[1:]])
    assert (folder / "replay-uct.html").exists()

    def agents_only(plan: Plan, *_: object) -> None:  # a rating plays 48 games or more
        for spec in plan.specs:
            make_agent(spec).close()
        raise ValueError(f"all there: {plan.specs}")

    monkeypatch.setattr(rating, "run_rating", agents_only)
    with pytest.raises(SystemExit):
        cli.main([*rate[1:], "--out", str(tmp_path / "rating")])
    assert f"all there: ('net:{folder}/model.safetensors', 'planner')" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["demo", "--seconds", "0"], ["demo", "--games", "-3"], ["demo", "--seed", "-1"]],
)
def test_wrong_commands_say_what_is_allowed(
    arguments: list[str], capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert "usage: busenv" in capsys.readouterr().err


def test_info_tells_versions_board_and_speed(capsys: pytest.CaptureFixture) -> None:
    cli.main(["info"])
    out = capsys.readouterr().out
    for word in ("numba", "36 intersections", "capstone-2024", "million decisions/s"):
        assert word in out


def test_import_needs_no_learning_library() -> None:
    program = (
        "import sys, busenv; "
        "print([m for m in ('torch', 'stable_baselines3', 'matplotlib', 'rich', 'pandas') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
