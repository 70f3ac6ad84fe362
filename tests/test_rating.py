"""Ratings: kills, refused runs and agents, reports."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from busenv import Game, Record, Rules, cli
from busenv.common.runs import SETTINGS, RunError, lock_folder
from busenv.evaluation.game_log import GAMES
from busenv.evaluation.rating import check_agent, run_rating
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tables import different_games
from busenv.game.board import BOARDS
from tests.support.commands import refusal
from tests.support.programs import children
from tests.support.ratings import THREE_AGENTS, games_of, stored_games, without_times
from tests.support.worlds import write_town

pytestmark = pytest.mark.usefixtures("few_resamples")

LIMIT = 240.0  # seconds that a rating in another process may take, on a busy machine


def wait_for_games(run: subprocess.Popen, folder: Path, count: int) -> None:
    """Wait until a rating in a process has stored some games."""
    path, deadline = folder / GAMES, time.monotonic() + LIMIT
    while not (path.exists() and path.read_bytes().count(b"\n") >= count):
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_rating_resumes_without_loss(tmp_path: Path) -> None:
    schedule = Schedule(THREE_AGENTS.agents, 3, games=450)
    command = [sys.executable, "-m", "busenv", "rate", *schedule.agents]
    command += ["--players", "3", "--games", "450", "--workers", "2", "--out", str(tmp_path)]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for_games(run, tmp_path, 20)
    run.kill()
    run.wait()
    before = stored_games(tmp_path)
    assert 20 <= len(before) < schedule.total
    run_rating(schedule, tmp_path, 2, Console(quiet=True))
    assert stored_games(tmp_path)[: len(before)] == before
    assert without_times(stored_games(tmp_path)) == without_times(games_of(schedule))


SLOW = """import os, sys, time
with open(os.path.join(os.path.dirname(__file__), "pids"), "a") as file:
    file.write(f"{os.getpid()}\\n")
for line in sys.stdin:
    word, *rest = line.split()
    if word == "hello":
        print("ready slow", flush=True)
    elif word == "go":
        time.sleep(0.02)
        print("bestmove", rest[rest.index("legal") + 1], flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_a_killed_rating_leaves_no_process(tmp_path: Path) -> None:
    program, out = tmp_path / "slow.py", tmp_path / "run"
    program.write_text(SLOW)
    agent = f"exec:{sys.executable} {program}"
    command = [sys.executable, "-m", "busenv", "rate", agent, f"{agent} other"]
    command += ["--players", "3", "--games", "900", "--workers", "2", "--out", str(out)]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_games(run, out, 2)
    workers = children(run.pid)
    assert len(workers) >= 2
    run.kill()
    run.wait()
    deadline = time.monotonic() + LIMIT
    programs = {int(pid) for pid in (tmp_path / "pids").read_text().split()}
    while any(Path(f"/proc/{pid}").exists() for pid in workers | programs):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        programs |= {int(pid) for pid in (tmp_path / "pids").read_text().split()}
    assert len(stored_games(out)) >= 2


def test_repeated_games_are_reported(tmp_path: Path) -> None:
    small_games = games_of(THREE_AGENTS)
    assert different_games(small_games) == len(small_games)
    turned = [
        {
            **game,
            "agents": [*game["agents"][1:], game["agents"][0]],
            "record": {**game["record"], "first_player": (game["record"]["first_player"] + 2) % 3},
        }
        for game in small_games
    ]
    assert different_games(small_games + turned) == len(small_games)
    console = Console(record=True, width=200)
    assert run_rating(THREE_AGENTS, tmp_path / "a", 1, console).warning == ""
    same = Schedule(("ppo@0:city-2", "ppo@0.0:city-2"), 3, 9)
    report = run_rating(same, tmp_path / "b", 1, console)
    assert report.warning.startswith("Only 6 of the 18 games are different")
    assert report.warning in (tmp_path / "b/report.md").read_text()


def test_a_folder_in_use_or_of_another_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    arguments = ["rate", *THREE_AGENTS.agents, "--players", "3", "--games", "9"]
    arguments += ["--out", str(tmp_path)]
    with lock_folder(tmp_path):
        error = refusal(capsys, *arguments)
    assert "in use by another process; wait for it or choose another folder" in error
    cli.main([*arguments, "--workers", "1"])
    games = (tmp_path / GAMES).read_bytes()
    error = refusal(capsys, *arguments, "--games=18", "--seed=5")
    assert "holds a run with games 9, not 18, seed 0, not 5" in error
    assert (tmp_path / GAMES).read_bytes() == games
    (tmp_path / SETTINGS).write_text("[1")
    assert "run.json is not JSON text" in refusal(capsys, *arguments)


def test_resuming_with_other_rules_or_another_board_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    rules, board, out = tmp_path / "rules.json", tmp_path / "map.json", tmp_path / "run"
    shutil.copy(BOARDS / "city.json", board)
    rules.write_text(json.dumps(Rules(bus_limit=3).to_dict()))
    arguments = ["rate", *THREE_AGENTS.agents, "--players", "3", "--games", "9", "--workers", "1"]
    arguments += ["--rules", str(rules), "--board", str(board), "--out", str(out)]
    cli.main(arguments)
    records = [Record.from_dict(game["record"]) for game in stored_games(out)]
    buses = [Game.from_record(record, str(board)).position().buses for record in records]
    assert max(map(max, buses)) == 3
    rules.write_text(json.dumps(Rules(bus_limit=4).to_dict()))
    write_town(board)
    games = (out / GAMES).read_bytes()
    error = refusal(capsys, *arguments)
    assert "rules: bus_limit 3, not 4; give" in error
    assert "board: fingerprint " in error
    assert (out / GAMES).read_bytes() == games


def test_a_rating_on_a_set_of_boards_resumes(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = ["rate", "greedy", "--against", "random", "--players", "3", "--games", "9"]
    arguments += ["--workers", "1", "--out", str(tmp_path)]
    cli.main([*arguments, "--board", "generated:mixed:test:2"])
    assert "2 boards of generated:mixed:test:2" in capsys.readouterr().out
    games = stored_games(tmp_path)
    names = {game["number"]: game["record"]["board"]["name"] for game in games}
    small, medium = names[0], names[3]
    assert small.startswith("generated:small:")
    assert medium.startswith("generated:medium:")
    assert [names[k] for k in range(9)] == [small] * 3 + [medium] * 3 + [small] * 3
    lines = (tmp_path / GAMES).read_bytes().splitlines(keepends=True)
    (tmp_path / GAMES).write_bytes(b"".join(lines[:4]))
    cli.main([*arguments, "--board", "generated:mixed:test:2"])
    assert without_times(stored_games(tmp_path)) == without_times(games)
    error = refusal(capsys, *arguments, "--board", "generated:mixed:test:3")
    assert "board: fingerprint " in error


def test_unknown_agents_are_refused_without_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for wrong in ("randm", "ppo:nowhere.pt"):
        error = refusal(capsys, "rate", "random", wrong, "--out", str(tmp_path / "run"))
        assert f"agent {wrong!r}" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["rate", "random"],
        ["benchmark", "--name", "mine", "--decisions", "0"],
        ["exploit"],
        ["export"],
    ],
    ids=lambda words: words[0],
)
def test_programs_that_fail_are_refused_without_a_folder(
    words: list[str], write: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """A program is tried in a game of as many players as it will play with."""
    failing = write(
        "if 'players 5' in asked('newgame'): sys.exit(3)\n"
        "while go := asked(): say('bestmove ' + go.split()[-1])"
    )
    options = ["--players", "5", "--out", str(tmp_path / "run")]
    error = refusal(capsys, *words, failing, *options)
    assert "ended with exit code 3" in error
    assert not (tmp_path / "run").exists()


def test_agents_trained_on_another_board_are_refused(tmp_path: Path) -> None:
    board = write_town(tmp_path / "map.json")
    check_agent("uct:5", "capstone-2024", board)
    for spec in ("net:city-2", "ppo:city-2", "az:city-3:90000", "az@2:city-3:60s"):
        check_agent(spec)
        with pytest.raises(RunError, match=rf"agent '{spec}': .* trained on"):
            check_agent(spec, "capstone-2024", "city", board)
    on_set = Schedule(("net:city-2",), 3, 9, against="greedy", board="generated:small:test:2")
    with pytest.raises(RunError, match=r"agent 'net:city-2': .* trained on"):
        run_rating(on_set, tmp_path / "run")


@pytest.mark.filterwarnings("error")
def test_rate_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The folder's name looks like markup of the console."""
    tmp_path /= "a[/b]"
    arguments = ["rate", "greedy", "--against", "random", "--players", "3", "--games", "10"]
    cli.main([*arguments, "--workers", "1", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert f"Report: {tmp_path / 'report.md'}\n" in out
    for words in (
        "Playing 18 games, not 10",
        "ms/decision",
        "deviation",
        "random is 0",
        "third",
        "Seats, turns and neighbours are",
    ):
        assert words in out
    made = {path.name for path in tmp_path.iterdir()}
    assert made >= {"results.csv", "pairs.csv", "seats.csv", "report.md"}
    for name in ("wins", "ratings", "seats"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert pd.read_csv(tmp_path / "results.csv")["par"].tolist() == pytest.approx([1 / 3, 2 / 3])
    report = (tmp_path / "report.md").read_text()
    assert "| greedy | 18 |" in report
