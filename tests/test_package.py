"""A wheel installs one name, busenv, and works next to packages named agents or train."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from busenv.core import jit
from tests.support.pages import ROOT

FOLDERS = (
    "busenv",
    "agents",
    "train",
    "experiments",
    "tests",
    "docs",
    "notebooks",
    ".ci",
    ".github",
)
FILES = (
    "pyproject.toml MANIFEST.in README.md LICENSE CHANGELOG.md CITATION.cff CONTRIBUTING.md "
    "constraints.txt mkdocs.yml .gitignore .pre-commit-config.yaml"
).split()
BORROWED = (  # what a plain installation brings along, from the environment that runs the tests
    "numpy numba llvmlite gymnasium pettingzoo cloudpickle farama_notifications typing_extensions"
).split()

GAME = """
import gymnasium

env = gymnasium.make("busenv:busenv/Bus-v0", opponents="greedy")
_, info = env.reset(seed=1)
over = False
while not over:
    _, reward, over, _, info = env.step(int(info["action_mask"].argmax()))

import agents, experiments, train  # the user's own, next to the script
import busenv
from busenv.agents import make_agent

assert {agents.OWNER, train.OWNER, experiments.OWNER} == {"user"}
game = busenv.Game(seed=1)
print(busenv.__file__, game.describe(make_agent("greedy").act(game)), reward != 0)
"""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution, built from a copy of the repository."""
    source, built = (tmp_path_factory.mktemp(name) for name in ("source", "built"))
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    code = f"import setuptools.build_meta as build; build.build_sdist({str(built)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)
    (archive,) = built.iterdir()
    shutil.unpack_archive(archive, built, filter="data")
    return next(path for path in built.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution without a download."""
    built = tmp_path_factory.mktemp("wheel")
    code = f"import setuptools.build_meta as build; build.build_wheel({str(built)!r})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=sdist, check=True, capture_output=True, text=True)
    assert "would be ignored" not in done.stdout + done.stderr
    (path,) = built.iterdir()
    return path


def files_of(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_source_distribution_is_complete(sdist: Path) -> None:
    for name in FOLDERS:
        assert files_of(sdist / name) == files_of(ROOT / name)
    assert all((sdist / name).read_bytes() == (ROOT / name).read_bytes() for name in FILES)


def test_the_wheel_holds_all_of_busenv_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {f"busenv/{name}" for name in files_of(ROOT / "busenv")}
    assert names >= {
        "busenv/py.typed",
        "busenv/RULES.md",
        "busenv/boards/city.json",
        "busenv/pictures/delivery.svg",
        "busenv/render/replay.html",
        "busenv/agents/external/EXEC.md",
        "busenv/heuristics/weights.json",
        "busenv/networks/models/city-2.safetensors",
    }


def borrow(site: Path) -> None:
    """Let an environment import what busenv depends on, and nothing else from there."""
    for distribution in BORROWED:
        for top in {str(path).split("/")[0] for path in metadata.files(distribution) or ()}:
            if not top.startswith(".."):
                source = Path(str(metadata.distribution(distribution).locate_file(top)))
                (site / top).symlink_to(source)


def test_an_installed_wheel_plays_next_to_other_agents(wheel: Path, tmp_path: Path) -> None:
    place, home = tmp_path / "environment", tmp_path / "home"
    venv.create(place, with_pip=False)
    scripts = place / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    site = next(place.rglob("site-packages"))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True)
    assert {path.name.partition("-")[0] for path in site.iterdir()} == {"busenv"}
    assert (site / "busenv/py.typed").is_file()

    borrow(site)
    kernels = next(filter(Path.is_dir, jit.cache_folders()))
    # The files name their sources, which the wheel has too.
    copy, drafts = site / "busenv/core/__pycache__" / kernels.name, shutil.ignore_patterns("tmp*")
    shutil.copytree(kernels, copy, ignore=drafts)
    (site / "agents").mkdir()  # another published package of that name
    (site / "agents/__init__.py").write_text("OWNER = 'other'\n")
    user = tmp_path / "user"
    (user / "agents").mkdir(parents=True)
    for name in ("agents/__init__.py", "train.py", "experiments.py"):
        (user / name).write_text("OWNER = 'user'\n")
    (user / "game.py").write_text(GAME)

    def run(*command: object) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"HOME": str(home), "COLUMNS": "80", "NUMBA_OPT": "0"}  # compiles faster
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=user, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    where, *words = run(python, "game.py").split()
    assert Path(where).is_relative_to(place)
    assert words[0] == "erect"
    assert words[-1] == "True"
    assert "demo" in run(scripts / "busenv", "--help")
    assert "not installed" in run(scripts / "busenv", "info")  # of the extras
