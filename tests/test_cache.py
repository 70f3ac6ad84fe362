"""The kernel cache: never stale or damaged, private, and optional."""

from __future__ import annotations

import hashlib
import os
import pickle
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import busenv

PROGRAM = """
import numpy as np
from busenv import load_board, Rules
from busenv.core import kernels, state
games = np.zeros(1, state.GAME)
kernels.new_games(games, load_board("city").array, Rules().record(4), np.zeros(1, np.int64))
print(games["power"][0], sum(len(s.cache_misses) for s in [kernels.new_games.stats]))
"""

DAMAGE = (
    PROGRAM
    + """
import random, sys
from pathlib import Path
cache = kernels.new_games._cache
(file,) = Path(cache.cache_path).glob("kernels.new_games*.nbc")
(signature,) = kernels.new_games.overloads
whole, draw = file.read_bytes(), random.Random(1)

def found():
    return cache.load_overload(signature, kernels.new_games.targetctx) is not None

assert found()
tries = believed = 0
for bit in draw.sample(range(8 * len(whole)), 1000):
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    file.write_bytes(damaged)
    tries, believed = tries + 1, believed + found()
for size in [*range(70), *draw.sample(range(len(whole)), 200)]:
    file.write_bytes(whole[:size])
    tries, believed = tries + 1, believed + found()
file.write_bytes(whole + b"more")
tries, believed = tries + 1, believed + found()
file.write_bytes(whole)
assert found()
cache.flush()
assert not found() and not file.exists()
print(tries, believed, file=sys.stderr)
"""
)


def copy_package(tmp_path: Path) -> Path:
    """The package without its cache."""
    source = Path(busenv.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "busenv", ignore=ignore)
    return tmp_path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with its cache, to be copied."""
    root = copy_package(tmp_path_factory.mktemp("template"))
    assert run(root) == (2, 1)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A copy of the package with its cache."""
    return Path(shutil.copytree(template, tmp_path / "root"))


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


def test_a_damaged_cache_is_compiled_again(root: Path) -> None:
    for damage in (lambda data: b"", lambda data: data[:-1], lambda data: os.urandom(len(data))):
        for path in cached(root):
            path.write_bytes(damage(path.read_bytes()))
        assert run(root) == (2, 1)
    assert run(root) == (2, 0)


def test_1_000_flipped_bits_and_270_cut_files_are_never_believed(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.split() == ["1271", "0"]


class Planted:
    """A pickle of it makes a folder when it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.folder),)


def plant(root: Path, checksum: bool) -> Path:
    """Put a pickle that runs something in the place of each cached file; what would tell it."""
    sprung = root / "sprung"
    pickled = pickle.dumps(Planted(sprung))
    digest = hashlib.blake2b(pickled, digest_size=32).digest() if checksum else b""
    for path in cached(root):
        path.write_bytes(digest + pickled)
    return sprung


def test_a_planted_file_is_not_run(root: Path) -> None:
    assert not plant(root, checksum=False).exists()
    assert run(root) == (2, 1)
    assert not (root / "sprung").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_can_write_is_not_run(root: Path, mode: int) -> None:
    sprung = plant(root, checksum=True)
    for path in cached(root):
        path.chmod(mode)
    assert run(root) == (2, 1)
    assert not sprung.exists()
    assert run(root) == (2, 0)
    for path in cached(root):
        assert path.stat().st_mode & 0o022 == 0


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_folder_that_others_can_write_is_passed_by(root: Path, mode: int) -> None:
    (folder,) = (root / "busenv/core/__pycache__").glob("core-*")
    sprung = plant(root, checksum=True)
    folder.chmod(mode)
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)
    assert not sprung.exists()
    assert any(path.is_relative_to(root / "home") for path in cached(root))


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may give away")
def test_folders_and_files_of_others_are_passed_by(root: Path) -> None:
    sprung = plant(root, checksum=True)
    for path in cached(root):
        os.chown(path, 12345, 12345)
    assert run(root) == (2, 1)
    (folder,) = (root / "busenv/core/__pycache__").glob("core-*")
    plant(root, checksum=True)
    os.chown(folder, 12345, 12345)
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)
    assert not sprung.exists()


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_a_link_in_the_place_of_the_folder_is_passed_by(root: Path) -> None:
    (folder,) = (root / "busenv/core/__pycache__").glob("core-*")
    folder.rename(root / "elsewhere")
    folder.symlink_to(root / "elsewhere")
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)


def test_what_is_shared_by_a_loose_umask_is_still_used(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    before = os.umask(0)
    try:
        assert run(root) == (2, 1)
        assert run(root) == (2, 0)
    finally:
        os.umask(before)
    assert cached(root)[0].is_relative_to(root / "busenv/core/__pycache__")


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
