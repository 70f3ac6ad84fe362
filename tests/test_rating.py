"""Ratings: the games do not depend on workers or kills; forfeits and reports."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from busenv import Game, Record, Rules, cli, rate
from busenv.agents import Agent, AgentError, make_agent
from busenv.agents.dependencies import build_agent, file_hashes
from busenv.common.runs import SETTINGS, RunError, lock_folder
from busenv.errors import AgentUnavailableError
from busenv.evaluation import tournament
from busenv.evaluation.game_log import GAMES
from busenv.evaluation.rating import check_agent, run_rating
from busenv.evaluation.rating_report import forfeit_tables, neighbour_report
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tables import different_games, result_table, seat_rows
from busenv.evaluation.tournament import play_game, play_games
from busenv.game.board import BOARDS
from tests.support.commands import refusal
from tests.support.programs import children
from tests.support.ratings import (
    THREE_AGENTS,
    TWO_AGENTS,
    games_of,
    rated_game,
    stored_games,
    without_times,
)
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


def test_games_do_not_depend_on_the_workers() -> None:
    numbers, expected = range(THREE_AGENTS.total), without_times(games_of(THREE_AGENTS))
    together = [game for some in play_games(THREE_AGENTS, numbers, 2) for game in some]
    assert without_times(together) == expected
    other_seed = Schedule(THREE_AGENTS.agents, 3, 9, seed=1)
    assert without_times(games_of(other_seed)) != expected[:9]


def test_finished_games_are_kept_when_another_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(schedule: Schedule, number: int, **_: Any) -> dict[str, Any]:
        if number == 2:
            raise AgentUnavailableError("the server is gone")
        return rated_game(number, schedule)

    monkeypatch.setattr(tournament, "play_game", play)
    with pytest.raises(RunError, match=f"the server is gone; .* in {tmp_path}, and the same"):
        run_rating(THREE_AGENTS, tmp_path)
    assert [game["number"] for game in stored_games(tmp_path)] == [0, 1]


def test_few_games_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default games are played in this process first; then no more workers start than games."""
    started, numbers = [], range(3)

    def pool(workers: int, _: object) -> ThreadPoolExecutor:
        started.append(workers)
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(tournament, "worker_pool", pool)
    monkeypatch.setattr(tournament, "available_cores", lambda: 48)
    for workers, seconds in ((1, 0.0), (None, 100.0), (None, 0.0), (2, 0.0), (100, 0.0)):
        monkeypatch.setattr(tournament, "SECONDS_ALONE", seconds)
        assert len([*play_games(TWO_AGENTS, numbers, workers)])
    tournament.close_agents()
    assert started == [3, 2, 3]


SCRIPT = """
from pathlib import Path
from busenv.evaluation.rating import run_rating
from busenv.evaluation.schedule import Schedule
run_rating(Schedule(("greedy", "random"), 3, 18), Path({folder!r}), 2)
"""


def test_a_script_with_workers_needs_a_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path / "run")))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode != 0
    assert 'under if __name__ == "__main__":' in done.stderr


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


def test_files_of_agents_are_hashed(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    specs = (
        "random",
        "uct:5",
        f"ppo:{path}",
        f"exec:python3 {path}",
        f"py:player.py:Player:{path}",
    )
    path.write_bytes(b"one")
    path.with_suffix(".json").write_text("{}")
    one = file_hashes(specs)
    path.write_bytes(b"two")
    two = file_hashes(specs)
    assert [*one] == [*two] == [*specs[2:]]
    assert all(one[spec] != two[spec] for spec in specs[2:])
    path.with_suffix(".json").write_text('{"temperature": 0}')
    assert file_hashes(specs)[specs[2]] != two[specs[2]]
    assert [*file_hashes(("net:city-2", "net@0.5:city-2"))] == ["net:city-2", "net@0.5:city-2"]
    assert not file_hashes((f"exec:python3 -c '{300 * '#'}'",))


class Argument:
    """An agent whose argument is a file."""

    def __init__(self, file: str) -> None:
        self.act = make_agent(Path(file).read_text()).act


def test_files_of_arguments_are_found_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "agent.txt").write_text("greedy")
    spec = "py:tests.test_rating:Argument:agent.txt"
    game = Game(seed=1)
    assert build_agent(spec, {}, tmp_path).act(game) == make_agent("greedy").act(game)


def test_neighbours_that_met_on_one_side_only_keep_their_columns() -> None:
    sides = pd.DataFrame({"won": [0.5], "low": [0.1], "high": [0.9]})
    sides.index = pd.MultiIndex.from_tuples(
        [("a", "b", "right")], names=["agent", "neighbour", "side"]
    )
    assert neighbour_report(sides).rows == [["a", "b", "", "", "50.0%", "[10.0, 90.0]"]]


class Faulty(Agent):
    """Plays at random, then fails in the way of its name."""

    closed = 0

    def __init__(self, name: str) -> None:
        self.name = name
        self.inner = make_agent("random")
        self.left = 0

    def reset(self, seed: int) -> None:
        self.left = 7
        self.inner.reset(seed)

    def choose(self, games: np.ndarray, board: Any) -> np.ndarray:
        self.left -= 1
        if self.left:
            return self.inner.choose(games, board)
        if self.name == "silent":
            raise AgentError("no answer")
        if self.name == "broken":
            raise ZeroDivisionError("no visits")
        if self.name == "no memory":
            raise MemoryError
        return np.array([374])

    def _act(self, game: Game) -> Any:
        action = super()._act(game)
        return None if action == 374 and self.name == "none" else action

    def close(self) -> None:
        Faulty.closed += 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("silent", "no answer"),
        ("wrong", "action 374"),
        ("none", "action is None"),
        ("broken", "ZeroDivisionError: no visits"),
    ],
)
def test_agents_that_fail_forfeit(fault: str, why: str) -> None:
    def build(spec: str) -> Agent:
        return Faulty(spec) if spec == fault else make_agent(spec)

    before = Faulty.closed
    schedule = Schedule((fault,), players=4, games=16, against="random")
    games = [play_game(schedule, number, build) for number in range(schedule.total)]
    assert Faulty.closed == before + 16
    for game in games:
        forfeit, record = game["forfeit"], Record.from_dict(game["record"])
        seat, standing = forfeit["seat"], Game.from_record(record)
        assert game["agents"][seat] == fault
        assert why in forfeit["why"]
        assert forfeit["ply"] == len(record.actions)
        assert game["decisions"][seat] in (6, 7)
        assert game["ranking"][seat] == 3
        assert game["points"] == standing.points
        others = [other for other in range(4) if other != seat]
        assert sorted(others, key=game["ranking"].__getitem__) == sorted(
            others, key=standing.ranking().__getitem__
        )
    table = result_table(seat_rows(games), schedule)
    assert table["forfeits"].to_dict() == {fault: 16, "random": 0}
    assert table.loc[fault, "won"] == 0
    rows = forfeit_tables(games)[0].rows
    assert {agent for agent, _, _ in rows} == {fault}
    assert all(why in reason for _, reason, _ in rows)


def test_faults_of_this_machine_and_of_own_agents_are_no_forfeits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(MemoryError):
        play_game(Schedule(("no memory",) * 3, players=3), 0, Faulty)
    monkeypatch.setattr(Faulty, "__module__", "busenv.agents.faulty")
    with pytest.raises(ZeroDivisionError):
        play_game(Schedule(("broken",) * 3, players=3), 0, Faulty)
    tournament.close_agents()


def test_specs_and_objects_are_rated_in_one_call() -> None:
    mine = Faulty("silent")
    closed = Faulty.closed
    table = rate([mine, "random"], 20, against="greedy", players=3, seed=1)
    assert Faulty.closed == closed
    assert [*table.index] == ["silent", "random", "greedy"]
    assert table["games"].to_dict() == {"silent": 18, "random": 18, "greedy": 36}
    assert table["forfeits"].to_dict() == {"silent": 18, "random": 0, "greedy": 0}
    assert [*rate([make_agent("random"), make_agent("random")], 1).index] == [
        "random",
        "random (1)",
    ]
    with pytest.raises(ValueError, match="was trained on"):
        rate([make_agent("net:city-2"), "greedy"], 1, players=3, board="generated:small:1")
    assert [*rate([Faulty("greedy")], 1, against="greedy", players=3).index] == [
        "greedy (0)",
        "greedy",
    ]


class SlowToBegin(Faulty):
    """Plays at random; takes 1000 s over each of its first decisions and 1 s over the others."""

    clock = 0.0

    def choose(self, games: np.ndarray, board: Any) -> np.ndarray:
        SlowToBegin.clock += 1 if SlowToBegin.clock >= 1000 * tournament.WARM_UP else 1000
        return self.inner.choose(games, board)


def test_first_decisions_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tournament.time, "perf_counter", lambda: SlowToBegin.clock)
    game = play_game(Schedule(("slow to begin",) * 3, players=3, games=16), 0, SlowToBegin)
    assert sum(game["seconds"]) == sum(game["timed"])
    assert sum(game["timed"]) == sum(game["decisions"]) - tournament.WARM_UP
    assert sum(game["decisions"]) == len(game["record"]["actions"])


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
    assert made >= {"results.csv", "pairs.csv", "seats.csv", "neighbours.csv", "report.md"}
    for name in ("wins", "ratings", "seats"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert pd.read_csv(tmp_path / "results.csv")["par"].tolist() == pytest.approx([1 / 3, 2 / 3])
    report = (tmp_path / "report.md").read_text()
    assert "| greedy | 18 |" in report
    assert "| greedy | random | " in report.partition("## Games won by neighbour")[2]
