"""The kernel cache: never stale or damaged, private, and optional."""

import hashlib
import os
import pickle
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import busenv
from busenv import Game, agents
from busenv.core import jit, kernels
from busenv.train.expert_iteration import expert_selfplay
from tests.support.mutate import Trap

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
    """Return a number that the code decides, and how many kernels were compiled."""
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


def cached_files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.nbc"))


def test_code_is_cached_and_an_edit_in_another_module_is_seen(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)
    # new_games calls new_game of another module; keep that file's size and time as they are.
    module = root / "busenv/core/rules/setup.py"
    status = module.stat()
    text = module.read_text()
    assert text.count("    g.power = 2\n    g.space_limit") == 1
    module.write_text(
        text.replace("    g.power = 2\n    g.space_limit", "    g.power = 3\n    g.space_limit")
    )
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert module.stat().st_size == status.st_size
    for stale in (root / "busenv/core/rules/__pycache__").glob("setup.*.pyc"):
        stale.unlink()  # Python's own byte code goes by size and time; ours does not
    assert run(root) == (3, 1)
    assert run(root) == (3, 0)
    folders = list((root / "busenv/core/__pycache__").glob("core-*"))
    assert len(folders) == 1, "the old code is deleted"


def test_an_edit_in_agents_is_seen_by_kernels_of_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = expert_selfplay._play_games.py_func
    before = jit.KernelCache(kernel, tmp_path)._base
    assert jit.KernelCache(kernel, tmp_path)._base == before
    package = jit._package_of(Path(agents.__file__).resolve())
    fingerprint = jit.source_fingerprint
    monkeypatch.setattr(
        jit,
        "source_fingerprint",
        lambda folder: "edited" if folder == package else fingerprint(folder),
    )
    assert jit.KernelCache(kernel, tmp_path)._base != before


def block(folder: Path) -> None:
    """Make a folder impossible to create, for root too: a file has its name."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("")


@pytest.mark.parametrize(
    ("blocked", "environment", "expected"),
    [
        ((), {"NUMBA_CACHE_DIR": "chosen"}, "chosen"),
        (("busenv/core/__pycache__",), {}, "home"),  # a read-only installation
        (("busenv/core/__pycache__", "home"), {}, None),
    ],
)
def test_folders_are_tried_in_turn(
    tmp_path: Path, blocked: tuple[str, ...], environment: dict[str, str], expected: str | None
) -> None:
    root = copy_package(tmp_path)
    for name in blocked:
        block(root / name)
    environment = {name: str(root / folder) for name, folder in environment.items()}
    assert run(root, **environment) == (2, 1)
    assert run(root, **environment) == (2, 0 if expected else 1)
    folders = {path.relative_to(root).parts[0] for path in cached_files(root)}
    assert folders == ({expected} if expected else set())


def plant(root: Path, checksum: bool = True) -> Path:
    """Replace each cached file by a pickle that creates a file, which is returned."""
    effect = root / "effect"
    pickled = pickle.dumps(Trap(effect))
    digest = hashlib.blake2b(pickled, digest_size=32).digest() if checksum else b""
    for path in cached_files(root):
        path.write_bytes(digest + pickled)
    return effect


def cache_folder(root: Path) -> Path:
    (folder,) = (root / "busenv/core/__pycache__").glob("core-*")
    return folder


def loads(root: Path) -> bool:
    """Whether this process loads the cached code of a package, which runs it."""
    Game(3)  # compiles the kernel
    kernel = kernels.new_games
    cache = jit.KernelCache(kernel.py_func, cache_folder(root))
    codes = [cache.load_overload(signature, kernel.targetctx) for signature in kernel.overloads]
    return any(code is not None for code in codes)


def test_a_damaged_cache_is_compiled_again(root: Path) -> None:
    (file,) = cache_folder(root).glob("kernels.new_games*.nbc")
    whole = file.read_bytes()
    assert loads(root)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:20], whole[:-1], whole + b"more", flipped):
        file.write_bytes(damaged)
        assert not loads(root)
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)


def replace_by_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


TAMPERING: dict[str, tuple[bool, Callable[[Path], object]]] = {  # of files, or of the folder
    "file of a group": (True, lambda path: path.chmod(0o664)),
    "file of another user": (True, lambda path: os.chown(path, 12345, 12345)),
    "folder of all": (False, lambda path: path.chmod(0o757)),
    "folder of another user": (False, lambda path: os.chown(path, 12345, 12345)),
    "link": (False, replace_by_link),
}


def test_a_planted_file_is_run_with_a_checksum_only(root: Path) -> None:
    """Without tampering a planted file has its effect, which the test below excludes."""
    assert loads(root)
    effect = plant(root, checksum=False)
    assert not loads(root)
    assert not effect.exists()
    plant(root)
    assert not loads(root)
    assert effect.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
@pytest.mark.parametrize("name", TAMPERING)
def test_code_that_another_user_can_write_is_not_run(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "user" in name and os.geteuid() != 0:
        pytest.skip("only root may give files away")
    is_file, tamper = TAMPERING[name]
    if is_file:
        effect = plant(root)
        for path in cached_files(root):
            tamper(path)
        assert not loads(root)
        assert not effect.exists()
        return
    folder = cache_folder(root)
    monkeypatch.setattr(jit, "CORE", root / "busenv/core")
    monkeypatch.setattr(jit.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "home"))
    assert jit._cache_folder.__wrapped__() == folder
    tamper(folder)
    assert jit._cache_folder.__wrapped__().is_relative_to(root / "home")


def test_a_permissive_umask_leaves_the_cache_private(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    before = os.umask(0)
    try:
        assert run(root) == (2, 1)
        assert run(root) == (2, 0)
    finally:
        os.umask(before)
    assert cached_files(root)[0].is_relative_to(root / "busenv/core/__pycache__")


def test_the_first_compilation_is_announced_on_a_terminal(tmp_path: Path) -> None:
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
        printed = os.read(reader, 1000).decode()
        assert printed.startswith(expected)
        assert bool(expected) == (printed != ".")
        os.close(reader)
        os.close(writer)
