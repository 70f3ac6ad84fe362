"""Installations without extras, and modules with a command line."""

import json
import re
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from busenv.cli.extras import missing_extras
from tests.support.pages import ROOT
from tests.support.ratings import rated_game

BLOCK = """import json, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
blocked, commands = map(json.loads, sys.argv[1:])
sys.meta_path.insert(0, Block())
from busenv.cli import main
for command in commands:
    try:
        main(command) if isinstance(command, list) else exec(command)
    except SystemExit as stopped:
        print("status", stopped.code)
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
"""


def optional_modules() -> dict[str, str]:
    """Extra by module, for every package of the extras."""
    modules: dict[str, str] = {}
    for distribution in metadata.distributions():
        for module in {path.parts[0] for path in distribution.files or ()}:
            if extras := missing_extras(module):
                modules[module] = extras[0]
    return modules


def test_a_plain_installation_shows_games_and_names_missing_extras(tmp_path: Path) -> None:
    """One process runs all commands and statements as if no extra were installed."""
    game = ROOT / "busenv/pictures/game.json"
    games, picture, page = (tmp_path / name for name in ("games.jsonl", "game.svg", "game.html"))
    games.write_text(json.dumps(rated_game(7)) + "\n")
    plain = [
        ["--help"],
        ["show", str(game)],
        ["show", str(game), "--draw", str(picture)],
        ["replay", str(game), "-o", str(page), "--agent", "uct:5"],
        "from busenv import bus_v0, make_agent; bus_v0.env(render_mode='ansi')",
    ]
    refused = {
        "rate random greedy": "report",
        "bench": "report",
        "train quick": "train,report",
        "demo": "train,report",
        "play": "play",
        f"show {game} --draw {tmp_path / 'game.png'}": "render",
        f"replay {game} --gif {tmp_path / 'game.gif'}": "render",
        f"show {games}:7": "train",
        f"replay {game} -o {page} --agent net:city-2": "train",
    }
    statements = {  # the beginning of the error, and the extras
        "make_agent('net:city-2')": ("agent 'net:city-2' needs", "train"),
        "bus_v0.env(render_mode='rgb_array')": ("drawing pixels needs", "render"),
        "from busenv.play import play": ("busenv.play needs", "play,notebooks"),
    }
    commands = json.dumps([*plain, *map(str.split, refused), *statements])
    command = [sys.executable, "-c", BLOCK, json.dumps([*optional_modules()]), commands]
    done = subprocess.run(command, capture_output=True, text=True)
    statuses = re.findall(r"^status (\d)$", done.stdout, re.MULTILINE)
    assert (done.returncode, statuses) == (0, ["0", *"2" * len(refused)])  # --help exits too
    for words in ("Measure:", "\nRanking: seat"):
        assert words in done.stdout
    assert picture.read_text().startswith("<svg")
    assert "<html" in page.read_text()
    errors = [(f"busenv {words.split()[0]}:", extras) for words, extras in refused.items()]
    errors += statements.values()
    for (start, extras), error in zip(errors, done.stderr.splitlines(), strict=True):
        end = f" is not installed. In a clone of busenv: pip install -e '.[{extras}]'"
        assert error.startswith(f"{start} ")
        assert error.endswith(end)


def test_help_of_experiments_prints_usage_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["experiments", "--help"])
    for path in sorted(ROOT.glob("experiments/*.py")):
        if "argparse" in path.read_text(encoding="utf-8"):
            name = f"experiments.{path.stem}"
            monkeypatch.delitem(sys.modules, name, raising=False)  # runpy would warn
            with pytest.raises(SystemExit, match="0"):
                runpy.run_module(name, run_name="__main__")
            printed = capsys.readouterr()
            assert (printed.out[:7], printed.err) == ("usage: ", "")
    assert not [*tmp_path.iterdir()]


def test_imports_load_no_optional_library() -> None:
    for modules, others in (
        ("busenv", "torch stable_baselines3 matplotlib rich pandas"),
        ("busenv.cluster, busenv.evaluation.rating, busenv.train.ppo_run", "ray"),
    ):
        code = f"import sys, {modules}; print([m for m in {others.split()} if m in sys.modules])"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
