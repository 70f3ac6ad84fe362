"""Compiled code is cached and never stale; a read-only install and missing folders still work."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import busenv

PROGRAM = """
import numpy as np
from busenv import load_board, Rules
from busenv.core import kernels, state
games = np.zeros(1, state.GAME)
kernels.new_games(games, load_board("city").array, Rules().record(4), np.zeros(1, np.int64))
print(games["power"][0], sum(len(s.cache_misses) for s in [kernels.new_games.stats]))
"""


def copy_package(tmp_path: Path) -> Path:
    """The package without its cache."""
    source = Path(busenv.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "busenv", ignore=ignore)
    return tmp_path


def run(root: Path, **environment: str) -> tuple[int, int]:
    """Two numbers: a count that the code decides, and whether it had to be compiled."""
    home = root / "home"
    settings = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    power, misses = done.stdout.split()
    return int(power), int(misses)


def cached(root: Path) -> list[Path]:
    return sorted(root.rglob("*.nbc"))


def test_code_is_cached_and_an_edit_in_another_module_is_seen(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)
    # new_games calls new_game of another module; keep that file's size and time as they are.
    module = root / "busenv/core/rules/setup.py"
    status = module.stat()
    text = module.read_text()
    assert text.count("    g.power = 2\n    g.ending") == 1
    module.write_text(
        text.replace("    g.power = 2\n    g.ending", "    g.power = 3\n    g.ending")
    )
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert module.stat().st_size == status.st_size
    for stale in (root / "busenv/core/rules/__pycache__").glob("setup.*.pyc"):
        stale.unlink()  # Python's own byte code goes by size and time; ours does not
    assert run(root) == (3, 1)
    assert run(root) == (3, 0)
    folders = list((root / "busenv/core/__pycache__").glob("core-*"))
    assert len(folders) == 1, "the old code is cleared away"


def test_a_chosen_folder_is_used(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    chosen = tmp_path / "chosen"
    assert run(root, NUMBA_CACHE_DIR=str(chosen)) == (2, 1)
    assert run(root, NUMBA_CACHE_DIR=str(chosen)) == (2, 0)
    assert {path.is_relative_to(chosen) for path in cached(root)} == {True}


def block(folder: Path) -> None:
    """Make a folder impossible to create, for root too: a file stands in its place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("")


def test_a_read_only_install_uses_the_users_folder(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    block(root / "busenv/core/__pycache__")
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)
    assert {path.is_relative_to(root / "home") for path in cached(root)} == {True}


def test_without_any_folder_it_works_uncached(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    block(root / "busenv/core/__pycache__")
    block(root / "home")
    power, _ = run(root)
    assert power == 2
    assert cached(root) == []


def test_a_damaged_cache_is_compiled_again(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    run(root)
    for path in cached(root):
        path.write_bytes(path.read_bytes()[:100])
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)


def test_the_first_compilation_says_so_at_a_terminal(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    for expected in ("busenv: compiling the rules for this machine", ""):
        reader, writer = pty.openpty()
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "HOME": str(root / "home")},
            stdout=subprocess.DEVNULL,
            stderr=writer,
            check=True,
        )
        os.write(writer, b".")  # so that there is something to read
        said = os.read(reader, 1000).decode()
        assert said.startswith(expected)
        assert bool(expected) == (said != ".")
        os.close(reader)
        os.close(writer)
