"""What README, CONTRIBUTING and the pages of docs/ promise is there: their examples run, and the
commands, options, modules and names that they mention exist."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import gymnasium
import pytest

from busenv.agents import SPECS
from busenv.experiments.ratings.ladder import AGENTS, BEGIN, END
from busenv.rewards import REWARDS
from tests.support.pages import ROOT, blocks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]

EXAMPLES = {
    f"{path.name} {number}": code
    for path in PAGES
    if path.parent.name != "recipes"  # they want other libraries: tests/test_recipes.py
    for number, code in enumerate(blocks(path, "python"), 1)
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str, tmp_path: Path) -> None:
    code = EXAMPLES[example]
    for long, short in ((r"learn\([\d_]+", "learn(1"), (r"range\(5\)", "range(1)")):
        code = re.sub(long, short, code)  # one rollout is enough here
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_first_page_has_the_loops_that_it_promises() -> None:
    first = "\n".join(blocks(ROOT / "README.md", "python"))
    for words in ("busenv.Game(", "MaskablePPO(", "model.learn(", "gymnasium.make(", "bus_v0.env("):
        assert words in first


@cache
def help_of(*words: str) -> str:
    """What a module prints when it is asked for help."""
    command = [sys.executable, "-m", *words, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands() -> list[str]:
    """Every `busenv COMMAND ...` of the pages, in fences and in running text."""
    found = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        lines = [line for block in blocks(path, "sh") for line in re.split(r"\n|&&|; do", block)]
        lines += re.findall(r"`([^`\n]+)`", text)
        for line in lines:
            words = line.partition("#")[0].strip().removeprefix(".venv/bin/")
            if re.match(r"busenv [a-z]", words):
                found.append(words)
    return sorted(set(found))


@pytest.mark.parametrize("line", commands())
def test_commands_and_their_options_exist(line: str) -> None:
    _, command, *words = line.split()
    part = words[:1] if (command, *words[:1]) == ("bench", "agents") else []
    told = help_of("busenv.experiments.cli", command, *part)
    for word in words:
        if word.startswith("-"):
            assert word in told, line


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_modules_and_names_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert importlib.util.find_spec(module), module
    if "`busenv.envs.rllib" in text:
        pytest.importorskip("ray.rllib.algorithms.ppo", exc_type=ImportError)
    for name in re.findall(r"`(busenv(?:\.\w+)+)", text):
        parts = name.split(".")
        thing = importlib.import_module(parts[0])
        for k, part in enumerate(parts[1:], 2):
            if not hasattr(thing, part):
                importlib.import_module(".".join(parts[:k]))
            thing = getattr(thing, part)


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_extras_exist(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in re.findall(r"\.\[([\w,]+)\]", path.read_text(encoding="utf-8")):
        assert {*extras.split(",")} <= {*project["optional-dependencies"]}


def test_the_ladder_has_a_place_for_its_table() -> None:
    text = (ROOT / "docs/ladder.md").read_text(encoding="utf-8")
    table = text.partition(BEGIN)[2].partition(END)[0]
    for agent in AGENTS:
        assert f"\n| {agent} |" in table


def test_tables_leave_nothing_out() -> None:
    """Extras, rewards and kinds of agents each have a row where they are told of."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kinds = {re.split(r"[:@]", spec)[0] for spec in SPECS}
    for page, names in (
        ("start.md", {*project["optional-dependencies"], "none"}),
        ("rewards.md", {*REWARDS}),
        ("agents.md", kinds),
    ):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        rows = re.findall(r"^\| `?(\w+)", text, re.MULTILINE)
        assert names <= {*rows}, page


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_files_in_commands_exist(path: Path) -> None:
    """Files that the pages name, in commands and elsewhere, and ids of environments."""
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:busenv|agents|train|experiments|tests|docs)/[\w./*-]+\w", text):
        assert name in gymnasium.registry or list(ROOT.glob(f"{name}*")), name


def test_the_three_commands_set_everything_up() -> None:
    """One line each, which .ci/run and a stranger take from the README as they stand."""
    lines = [block.strip() for block in blocks(ROOT / "README.md", "sh")]
    setup = (
        r"python3 -m venv \.venv && \.venv/bin/pip install -q -c constraints\.txt -e '\.\[.+\]' && "
    )
    demo, play, tests = (line for line in lines if re.match(setup, line))
    assert demo.endswith(".venv/bin/busenv demo")
    assert play.endswith(".venv/bin/busenv play")
    assert tests.endswith(".venv/bin/python -m pytest")
    assert "grep -m 1 -- '-m pytest$' README.md" in (ROOT / ".ci/run").read_text(encoding="utf-8")
