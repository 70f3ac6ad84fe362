"""README, CONTRIBUTING and docs/: examples run, names and files exist, tables are current."""

import doctest
import importlib
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from busenv import Batch, load_board
from busenv.agents import SPECS
from busenv.envs.gymnasium import BusEnv
from busenv.envs.pettingzoo import raw_env
from busenv.envs.sb3 import BusVecEnv
from busenv.envs.text import TextEnv
from busenv.envs.vector import BusVectorEnv
from busenv.networks.model_files import bundled_models, load_model, model_path
from busenv.rewards import REWARDS
from experiments.claims import read_claims
from tests.support.pages import PROJECT, ROOT, blocks, find_modules, flow, unclaimed_figures
from tests.support.tables import TABLE, TABLES, help_text, with_tables

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]

EXAMPLES = {
    f"{path.name} {number}": code
    for path in PAGES
    if path.parent.name != "recipes" and path.stem != "datasets"  # tests/test_recipes.py runs these
    for number, code in enumerate(blocks(path, "python"), 1)
}


# Each example runs in a fork of a process that has imported the libraries and loaded the kernels.
RUN = """import json, os, sys, tempfile, traceback, warnings
import busenv, gymnasium, sb3_contrib
batch = busenv.Batch(1, opponents="greedy")
batch.reset(0)
batch.step(batch.masks.argmax(axis=1))
busenv.observe(busenv.Game())
failed = []
for name, code in json.load(sys.stdin).items():
    if pid := os.fork():
        failed += [name] if os.waitpid(pid, 0)[1] else []
        continue
    try:
        os.chdir(tempfile.mkdtemp(dir=os.curdir))
        warnings.filterwarnings("error", category=DeprecationWarning, module="__main__")
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
sys.exit(f"failed: {failed}" if failed else None)
"""


def test_examples_run(tmp_path: Path) -> None:
    codes = EXAMPLES
    # One rollout is enough for a test.
    for long, short in ((r"learn\([\d_]+", "learn(1"), (r"range\(5\)", "range(1)")):
        codes = {name: re.sub(long, short, code) for name, code in codes.items()}
    for name, code in codes.items():  # the process has registered the ids
        imports = re.search(r"^(import|from) busenv", code, re.MULTILINE)
        assert '"busenv/' not in code or imports, name
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        env=environment,
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert len([*tmp_path.iterdir()]) == len(EXAMPLES)


def commands() -> list[str]:
    """Every `busenv COMMAND ...` of the pages, in code blocks and in text."""
    examples = set()
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        lines = [line for block in blocks(path, "sh") for line in re.split(r"\n|&&|; do", block)]
        lines += re.findall(r"`([^`\n]+)`", text)
        for line in lines:
            words = line.partition("#")[0].strip().removeprefix(".venv/bin/")
            if re.match(r"busenv [a-z]", words):
                examples.add(words)
    return sorted(examples)


@pytest.mark.parametrize("line", commands())
def test_commands_and_their_options_exist(line: str) -> None:
    _, command, *words = line.split()
    text = help_text(command)
    for word in words:
        if word.startswith("-"):
            assert word in text, line


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_modules_and_names_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert importlib.util.find_spec(module), module
    for environment, library in (("rllib", "ray.rllib.algorithms.ppo"), ("openspiel", "pyspiel")):
        if f"`busenv.envs.{environment}" in text:
            pytest.importorskip(library, exc_type=ImportError)
    for name in re.findall(r"`(busenv(?:\.\w+)+)", text):
        parts = name.split(".")
        thing = importlib.import_module(parts[0])
        for k, part in enumerate(parts[1:], 2):
            if not hasattr(thing, part):
                importlib.import_module(".".join(parts[:k]))
            thing = getattr(thing, part)


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_extras_exist(path: Path) -> None:
    for extras in re.findall(r"\.\[([\w,]+)\]", path.read_text(encoding="utf-8")):
        assert {*extras.split(",")} <= {*PROJECT["optional-dependencies"]}


# CONTRIBUTING is about development; the programs of the studies are in earlier commits only.
@pytest.mark.parametrize("name", sorted({*NAMES} - {"CONTRIBUTING.md", "docs/studies.md"}))
def test_figures_of_pages_have_a_claim(name: str) -> None:
    texts = [claim.shown for claim in read_claims().values()]
    assert unclaimed_figures((ROOT / name).read_text(encoding="utf-8"), texts) == []


@pytest.mark.parametrize("name", bundled_models())
def test_figures_of_cards_are_those_of_the_claims(name: str) -> None:
    figures = {figure for claim in read_claims().values() for figure in claim.figures}
    ratings = load_model(model_path(name), load_board("city"))[1].model_dump()["ratings"]
    for texts in ratings.values():
        assert {text.partition(" of ")[0] for text in texts.values()} <= figures


def test_every_claim_is_on_a_page() -> None:
    pages = flow(" ".join(path.read_text(encoding="utf-8") for path in PAGES))
    assert [key for key, claim in read_claims().items() if flow(claim.shown) not in pages] == []


def test_tables_list_every_extra_reward_and_agent() -> None:
    """Every extra, reward, kind of agent, and edition has a row in its table."""
    kinds = {re.split(r"[:@]", spec)[0] for spec in SPECS}
    for page, names in (
        ("start.md", {*PROJECT["optional-dependencies"], "none"}),
        ("rewards.md", {*REWARDS}),
        ("agents.md", kinds),
    ):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        rows = re.findall(r"^\| `?(\w+)", text, re.MULTILINE)
        assert names <= {*rows}, page


def test_the_environment_pages_list_every_setting() -> None:
    pages = ROOT / "docs/environments.md", ROOT / "docs/text_environment.md"
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    rows = {*re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)}
    for environment in (BusEnv, Batch, BusVectorEnv, BusVecEnv, raw_env, TextEnv):
        settings = {*inspect.signature(environment.__init__).parameters}
        assert settings <= rows | {"self", "settings", "num_games"}, environment


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_files_in_commands_exist(path: Path) -> None:
    """Files and ids of environments and data sets that the pages name exist."""
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:busenv|agents|train|experiments|tests|docs)/[\w./*-]+\w", text):
        is_id = name in {*gymnasium.registry, "busenv/bus-v0", "busenv/greedy-v0"}
        assert is_id or list(ROOT.glob(f"{name}*")), name


def test_the_readme_has_a_block_for_the_demo_and_one_for_the_tests() -> None:
    """Readers copy both blocks, and .ci/run executes the second one."""
    setup = (
        r"python3 -m venv \.venv\n"
        r"\.venv/bin/pip install -q -c constraints\.txt -e '\.\[[\w,]+\]'\n"
        r"\.venv/bin/(busenv demo|python -m pytest)\n"
    )
    readme = blocks(ROOT / "README.md", "sh")
    matches = [match for block in readme if (match := re.search(setup + r"\Z", block))]
    assert [match[1] for match in matches] == ["busenv demo", "python -m pytest"]
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    extract = re.search(r"^block=\$\((awk .*?)\)\n\[", script, re.MULTILINE | re.DOTALL)
    assert extract
    done = subprocess.run(
        ["bash", "-c", extract[1]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == matches[1][0]


@pytest.mark.parametrize("name", TABLES)
def test_generated_tables_are_current(name: str) -> None:
    if name == "commands" and sys.version_info >= (3, 13):
        pytest.skip("argparse formats options differently from Python 3.13 on")
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    tables = [match[0] for page in pages for match in TABLE.finditer(page) if match[2] == name]
    assert tables == [with_tables(table) for table in tables], "python -m tests.support.tables"
    assert len(tables) == 1


def modules_with_examples() -> list[str]:
    """Import names of all modules with an example in their source."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in find_modules().items()}
    return sorted(name for name, text in texts.items() if ">>> " in text)


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_docstrings_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0
