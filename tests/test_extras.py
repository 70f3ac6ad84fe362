"""Installations without extras, and modules with a command line."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from busenv import Game
from busenv.experiments import cli
from busenv.experiments.cli.extras import missing_extras

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
    for distribution in metadata.distributions():
        for module in {path.parts[0] for path in distribution.files or ()}:
            if extras := missing_extras(module):
                modules[module] = extras[0]
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


def test_imports_load_no_library_that_they_can_do_without() -> None:
    for modules, others in (
        ("busenv", "torch stable_baselines3 matplotlib rich pandas"),
        ("busenv.cluster, busenv.experiments.ratings.rating, busenv.train.ppo_run", "ray"),
    ):
        code = f"import sys, {modules}; print([m for m in {others.split()} if m in sys.modules])"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
