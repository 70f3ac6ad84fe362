"""Matches, the demo, and the command line with and without extras."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import busenv
from busenv import Board, Game, IllegalActionError
from busenv.agents import Agent, make_agent
from busenv.core.state import SETUP_BUILDINGS
from busenv.experiments import cli
from busenv.experiments.cli.extras import missing_extras
from busenv.experiments.cli.replay_commands import list_games
from busenv.experiments.common.runs import RunError
from busenv.experiments.profiling.speed_worker import measure_speeds
from busenv.experiments.ratings import rating
from busenv.experiments.ratings.match import Score, play_match
from busenv.experiments.ratings.schedule import Schedule
from busenv.experiments.ratings.tournament import play_game
from tests.support.play import cut_off


class Watcher(Agent):
    """Plays at random and records its seats and the starting players."""

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
def test_seats_and_starting_players_are_balanced(players: int) -> None:
    watcher = Watcher()
    others = [make_agent("random", k) for k in range(players - 1)]
    scores = play_match([watcher, *others], 2 * players * players)
    assert sorted(watcher.seats) == sorted(
        2 * [(seat, first) for seat in range(players) for first in range(players)]
    )
    assert sum(score.wins for score in scores) == 2 * players * players
    assert sum(score.rank for score in scores) == pytest.approx(players * (players - 1) / 2)


def test_equal_agents_score_par() -> None:
    scores = play_match([make_agent("random", k) for k in range(4)], 4000)
    for score in scores:
        low, high = score.interval(z=4.0)
        assert low < 0.25 < high


def test_wilson_interval() -> None:
    low, high = Score("a", 100, 25, 0, 0).interval()
    assert (round(low, 4), round(high, 4)) == (0.1755, 0.3430)
    for games in range(1, 200):  # a plot needs error bars of positive length
        assert Score("a", games, 0, 0, 0).interval()[0] == 0
        assert Score("a", games, games, 0, 0).interval()[1] == 1


def test_an_illegal_action_names_the_agent() -> None:
    class Illegal(Watcher):
        name = "illegal"

        def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
            return np.full(len(games), 374)

    with pytest.raises(
        IllegalActionError,
        match=r"'illegal': action 374 .*of game 0 is illegal for seat \d in phase",
    ):
        play_match([Illegal(), make_agent("random"), make_agent("random")], 3)


def test_speeds_skip_the_warm_up_and_take_turns() -> None:
    calls = []
    speeds = measure_speeds(
        [lambda: calls.append(0) or 1000, lambda: calls.append(1) or 10], repeats=4
    )
    assert calls == 5 * [0, 1]
    assert [len(runs) for runs in speeds] == [4, 4]
    assert all(speed > 0 for runs in speeds for speed in runs)


@pytest.mark.filterwarnings("ignore")
def test_demo_writes_a_report_and_a_replay_and_suggests_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / "a run"
    cli.main(["demo", "--seconds", "1", "--games", "16", "--out", str(folder)])
    names = {path.name for path in folder.iterdir()}
    assert names >= {"report.md", "learning_curve.png", "curve.csv", "model.safetensors"}
    assert names >= {"model.json", "run.json", "tensorboard", "replay.json", "replay.html"}
    report = (folder / "report.md").read_text()
    assert "| az:64, 3 greedy | az:64 |" in report
    assert "| net, 3 greedy | net |" in report
    how = r"imitation of uct@\d:50( \(\d+\.\d% of the decisions\), then expert iteration)?"
    assert re.search(how, report.replace("\n", " "))
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "curve.csv").read_text().count("\n") >= 2
    assert make_agent(f"ppo:{folder / 'model.safetensors'}").name.startswith("ppo:")

    out = capsys.readouterr().out
    assert re.search(f"Trained by {how}", out.replace("\n", " "))
    assert re.search(r"rating ━+ 8/8 ", out)
    (last,) = (line for line in out.splitlines() if "won random" in line)  # after the training
    share = (folder / "curve.csv").read_text().splitlines()[-1].split(",")[3]
    assert f"won random {float(share):.0%}" in last
    (head,) = (line for line in out.splitlines() if line.startswith("line-up"))
    for column in ("agent", "wins", "95% interval", "rank", "points"):  # all fit in 80 columns
        assert f" {column} " in f"{head} "
    assert len(head) <= 80
    assert "greedy, 3 random" in out

    game = Game.load(folder / "replay.json")
    assert game.is_over
    assert game.num_players == 4
    page = (folder / "replay.html").read_text()
    assert "planner" in page
    assert "<h2>Estimate of az:model:64</h2>" in page  # not its path
    assert "ppo" not in out

    commands = report.split("```sh\n")[1].split("\n```")[0].splitlines()
    assert [command for command in commands if command in out] == commands
    train, rate, replay = (shlex.split(command) for command in commands)
    assert {Path(words[0]).name for words in (train, rate, replay)} == {"busenv"}
    assert [words[1] for words in (train, rate, replay)] == ["train", "rate", "replay"]
    assert train[-1] == "seconds=3600"
    done = json.loads((folder / "model.json").read_text())["training"]["seconds"]
    cli.main([*train[1:-1], f"seconds={done + 0.5}", "rated=random", "--games", "4"])
    assert "Resuming after" in capsys.readouterr().out
    cli.main([{"uct:300": "uct:4"}.get(word, word) for word in replay[1:]])
    assert (folder / "replay-uct.html").exists()

    def agents_only(schedule: Schedule, *_: object) -> None:  # a rating plays 48 games or more
        for spec in schedule.specs:
            rating.check_agent(spec)
        raise RunError(f"agents: {schedule.specs}")

    monkeypatch.setattr(rating, "run_rating", agents_only)
    with pytest.raises(SystemExit):
        cli.main([*rate[1:], "--out", str(tmp_path / "rating")])
    assert f"agents: ('az:{folder}/model.safetensors:64', 'planner')" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["fly"], ["demo", "--seconds", "0"], ["demo", "--games", "-3"], ["demo", "--seed", "-1"]],
)
def test_invalid_commands_print_usage(arguments: list[str], capsys: pytest.CaptureFixture) -> None:
    assert "usage: busenv" in refusal(capsys, *arguments)


def refusal(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """The error output of a refused command."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rate greedy random --seed 1.5", "'1.5' is not a whole number from 0 to 2**31 - 1"),
        ("rate greedy random --games 1.5", "'1.5' is not a whole number greater than 0"),
        ("demo --seconds nan", "'nan' is not a number greater than 0"),
        ("rate uct greedy", "busenv: agent 'uct': a search needs a number"),
        ("rate greedy random --out file.json", "file.json is a file; allowed: a folder"),
        ("show file.json:3", "only a .jsonl file has numbered games; allowed: file.json"),
        ("replay GAME -o folder", "folder: it is a folder"),
        ("train folder", "folder is no run folder: it has no run.json"),
        (
            "train quick --set method=dqn",
            "method=dqn differs from the method of quick; allowed: ppo",
        ),
        ("bench --against nowhere", "'nowhere' is no folder, and there are no commits here: git:"),
    ],
)
def test_wrong_calls_name_the_cause(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.json").write_text("{}")
    game = str(Path(busenv.__file__).parent / "pictures/game.json")
    error = refusal(capsys, *words.replace("GAME", game).split())
    assert message in error.splitlines()[-1]


def test_the_bare_command_prints_help(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([])
    assert stopped.value.code == 0
    assert "usage: busenv" in capsys.readouterr().out


def test_a_mistyped_command_gets_a_suggestion(capsys: pytest.CaptureFixture) -> None:
    assert "no command 'rat'; did you mean 'rate'?" in refusal(capsys, "rat", "--players", "3")
    assert "allowed: play, show, replay, demo, train" in refusal(capsys, "xyz")


def help_of(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        cli.main([*arguments, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_lists_commands_with_examples(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = help_of(capsys)
    assert max(map(len, text.splitlines())) <= 80
    for title, group in cli.GROUPS.items():
        lines = text[text.index(f"{title}:") :].splitlines()[1:]
        for command, line in zip(group, lines, strict=False):
            assert line.startswith(f"  {command.name} ")
            assert line.endswith(f"  busenv {command.examples[0].partition(' ')[2]}")


@pytest.mark.parametrize("name", [*cli.COMMANDS])
def test_every_command_has_examples_that_parse(
    name: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = help_of(capsys, name)
    assert max(map(len, text.splitlines())) <= 80
    for example in cli.COMMANDS[name].examples:
        assert f"  {example}" in text
        words = example.partition("  ")[0].split()
        assert words[0] == "busenv"
        assert cli.parser().parse_args(words[1:]).command == name


BLOCK = """import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
blocked = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Block())
from busenv.experiments.cli import main
main()
"""


def optional_modules() -> dict[str, str]:
    """Extra by module, for every package of the extras."""
    modules: dict[str, str] = {}
    for module, packages in metadata.packages_distributions().items():
        if extras := missing_extras(module):
            modules[module] = extras[0]
            assert packages
    return modules


def bare(*arguments: str) -> subprocess.CompletedProcess:
    """Run a command as if no extra were installed."""
    blocked = ",".join(optional_modules())
    return subprocess.run(
        [sys.executable, "-c", BLOCK, blocked, *arguments], capture_output=True, text=True
    )


def test_modules_map_to_extras() -> None:
    extras = optional_modules()
    for module, extra in (
        ("torch", "train"),
        ("stable_baselines3", "train"),
        ("sb3_contrib", "train"),
        ("rich", "report"),
        ("filelock", "report"),
        ("pandas", "report"),
        ("pygame", "render"),
        ("resvg_py", "render"),
    ):
        assert extras[module] == extra
        assert missing_extras(f"{module}.part") == [extra]
    assert missing_extras("torch", ("train", "report")) == ["train", "report"]
    assert missing_extras("numpy") == missing_extras("nowhere") == missing_extras(None) == []


def test_a_plain_installation_shows_games_and_names_missing_extras(tmp_path: Path) -> None:
    record, page = tmp_path / "game.json", tmp_path / "game.html"
    game = Game(3, seed=1)
    game.step(game.legal_actions()[0])
    game.save(record)
    for arguments, words in (
        (["--help"], "Measure:"),
        (["info"], "million decisions/s"),
        (["show", str(record)], "Setup"),
        (["show", str(record), "--draw", str(tmp_path / "game.svg")], ""),
        (["replay", str(record), "-o", str(page), "--agent", "uct:5"], ""),
    ):
        done = bare(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert words in done.stdout
    assert (tmp_path / "game.svg").read_text().startswith("<svg")
    assert "<html" in page.read_text()
    for command, extras in (
        (["rate", "random", "greedy"], "report"),
        (["bench"], "report"),
        (["ladder"], "train,report"),
        (["train", "quick"], "train,report"),
        (["demo"], "train,report"),
    ):
        done = bare(*command)
        assert done.returncode == 2
        assert done.stderr.startswith(f"busenv {command[0]}: ")
        end = f" is not installed. In a clone of busenv: pip install -e '.[{extras}]'\n"
        assert done.stderr.endswith(end)
        assert done.stderr.count("\n") == 1


def mains() -> list[str]:
    """Modules of experiments with a main program."""
    folder = Path(cli.__file__).parents[1]
    names = []
    for path in sorted(folder.rglob("*.py")):
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8"):
            parts = path.relative_to(folder).with_suffix("").parts
            names.append(".".join(part for part in parts if part != "__main__"))
    return names


@pytest.mark.parametrize("module", mains())
def test_help_of_a_module_starts_nothing(module: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"busenv.experiments.{module}", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    assert not [*tmp_path.iterdir()]


@pytest.fixture(scope="module")
def games_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two games of a rating, the second cut off."""
    played = play_game(Schedule(("greedy", "random"), players=3, games=18), 7)
    cut = cut_off(played, 30, number=12)
    path = tmp_path_factory.mktemp("run") / "games.jsonl"
    path.write_text(f"{json.dumps(cut)}\n{json.dumps(played)}\n")
    return path


def test_a_games_file_is_listed(games_file: Path, capsys: pytest.CaptureFixture) -> None:
    cli.main(["show", str(games_file)])
    head, first, second, empty, hint = capsys.readouterr().out.splitlines()
    game = json.loads(games_file.read_text().splitlines()[1])
    winner = ["seat", str(game["ranking"].index(0))]
    assert head.split() == ["game", "rounds", "winner", "agents", "by", "seat"]
    rounds = str(game["record"]["result"]["rounds"])
    assert first.split() == ["7", rounds, *winner, *", ".join(game["agents"]).split()]
    assert second.split()[:4] == ["12", "cut", "off", "seat"]
    assert (
        head.index("agents by seat")
        == first.index(game["agents"][0])
        == second.index(game["agents"][0])
    )
    assert empty == ""
    assert hint == f"Show one in words: busenv show {games_file}:7"
    assert "busenv show 'a run/b.jsonl:12'" in list_games([{**game, "number": 12}], "a run/b.jsonl")
    assert list_games([], "a.jsonl") == "a.jsonl has no games\n"


def test_a_games_file_with_one_game_is_narrated(
    games_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    alone = tmp_path / "games.jsonl"
    alone.write_text(games_file.read_text().splitlines(keepends=True)[1])
    cli.main(["show", str(alone)])
    narration = capsys.readouterr().out
    cli.main(["show", f"{games_file}:7"])
    assert capsys.readouterr().out == narration
    assert "\nOver: " in narration


def test_drawings_are_svg_or_png(
    games_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    source = f"{games_file}:7"
    cli.main(["show", source, "--ply", "20", "--draw", str(tmp_path / "a.svg")])
    cli.main(["show", source, "--draw", str(tmp_path / "a.png")])
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    wrong = tmp_path / "a.gif"
    assert "allowed: FILE.svg or FILE.png" in refusal(capsys, "show", source, "--draw", str(wrong))
    assert not wrong.exists()


def other_board(folder: Path) -> Path:
    """The city with its two last zones in the other order: another board for the rules."""
    city = json.loads((Path(busenv.__file__).parent / "boards/city.json").read_text())
    last = max(site["zone"] for site in city["sites"])
    for site in city["sites"]:
        site["zone"] = {last: last - 1, last - 1: last}.get(site["zone"], site["zone"])
    path = folder / "map.json"
    path.write_text(json.dumps({**city, "name": "Map"}))
    return path


def test_games_of_another_board_need_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    board, run = other_board(tmp_path), tmp_path / "run"
    rate = ["rate", "greedy", "--against", "random", "--players", "3", "--games", "9"]
    cli.main([*rate, "--board", str(board), "--workers", "1", "--out", str(run)])
    assert f"board {board}" in "".join(capsys.readouterr().out.split("\n"))
    source, page = f"{run / 'games.jsonl'}:3", str(tmp_path / "game.html")
    for command in (
        ["show", str(run / "games.jsonl")],
        ["replay", source, "-o", page],
        ["show", source],
    ):
        error = refusal(capsys, *command)
        assert "the game was played on board 'Map' (fingerprint" in error
        assert error.endswith("give that board (board=..., --board NAME or FILE)\n")
        cli.main([*command, "--board", str(board)])
    assert "board Map" in capsys.readouterr().out
    assert Path(page).exists()


def test_info_reports_versions_board_and_speed(capsys: pytest.CaptureFixture) -> None:
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
