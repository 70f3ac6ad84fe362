"""The kernel cache: never stale or damaged, and optional."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import busenv
from busenv import Game
from busenv.core import jit, kernels
from busenv.train.expert_iteration import expert_selfplay

PROGRAM = """
import sys, types
sys.modules["busenv"] = types.ModuleType("busenv")  # avoids its slow imports
sys.modules["busenv"].__path__ = ["busenv"]
import numpy as np
from busenv.core import kernels, state
games, board, rules = (np.zeros(1, dtype) for dtype in (state.GAME, state.BOARD, state.RULES))
board["sites"] = 1
board.flags.writeable = False  # as that of a Board: numba's type includes it
kernels.new_games(games, board, rules, np.zeros(1, np.int64))
print(games["power"][0], sum(len(s.cache_misses) for s in [kernels.new_games.stats]))
"""
FOLDER = "busenv/core/__pycache__/kernels"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with its cache, to be copied."""
    root = tmp_path_factory.mktemp("template")
    source, ignore = Path(busenv.__file__).parent, shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, root / "busenv", ignore=ignore)
    assert run(root) == (2, 1)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A copy of the package with its cache."""
    return Path(shutil.copytree(template, tmp_path / "root"))


def start(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    home = root / "home"
    settings = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **environment}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **settings},
        capture_output=True,
        text=True,
    )


def run(root: Path, **environment: str) -> tuple[int, int]:
    """Return a number that the code decides, and how many kernels were compiled."""
    done = start(root, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    power, misses = done.stdout.split()
    return int(power), int(misses)


def test_an_edit_in_another_module_is_seen(root: Path) -> None:
    assert run(root) == (2, 0)
    # new_games calls new_game of another module; keep that file's size and time as they are.
    module = root / "busenv/core/rules/setup.py"
    status, text = module.stat(), module.read_text()
    assert text.count("    g.power = 2\n    g.space_limit") == 1
    module.write_text(
        text.replace("    g.power = 2\n    g.space_limit", "    g.power = 3\n    g.space_limit")
    )
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
    for stale in (root / "busenv/core/rules/__pycache__").glob("setup.*.pyc"):
        stale.unlink()  # Python's own byte code goes by size and time; ours does not
    files = {*(root / FOLDER).iterdir()}
    assert run(root) == (3, 1)
    assert run(root) == (3, 0)
    assert {*(root / FOLDER).iterdir()} == files, "the old code is replaced"


def test_sources_are_those_that_a_module_imports_through_others() -> None:
    modules = [Path(expert_selfplay.__file__)]
    for module in modules:
        modules += [one for one in jit.imported_modules(module) if one not in modules]
    names = {path.relative_to(jit.CORE.parent).as_posix() for path in modules}
    assert {"core/rules/lines.py", "search/tree.py", "core/bits.py"} <= names


@pytest.mark.parametrize(
    ("blocked", "environment", "expected"),
    [
        ((), {"NUMBA_CACHE_DIR": "chosen"}, "chosen"),
        (("busenv/core/__pycache__",), {}, "home"),  # a read-only installation
        (("busenv/core/__pycache__", "home"), {}, None),
    ],
)
def test_folders_are_tried_in_turn(
    root: Path, blocked: tuple[str, ...], environment: dict[str, str], expected: str | None
) -> None:
    shutil.rmtree(root / "busenv/core/__pycache__")
    for name in blocked:  # a file has its name: impossible to create, for root too
        (root / name).write_text("")
    environment = {name: str(root / folder) for name, folder in environment.items()}
    assert run(root, **environment) == (2, 1)
    assert run(root, **environment) == (2, 0 if expected else 1)
    folders = {path.relative_to(root).parts[0] for path in root.rglob("*.nbc")}
    assert folders == ({expected} if expected else set())


def test_a_filled_cache_is_read_before_another_folder_is_written(root: Path) -> None:
    assert run(root, NUMBA_CACHE_DIR=str(root / "chosen")) == (2, 0)
    assert not (root / "chosen").exists()


def test_code_without_bounds_checks_is_not_used_with_them(root: Path) -> None:
    assert run(root) == (2, 0)
    assert run(root, NUMBA_BOUNDSCHECK="1") == (2, 1)


def test_python_without_compilation_warns_in_one_sentence(root: Path) -> None:
    done = start(root, NUMBA_DISABLE_JIT="1")
    assert "busenv needs compiled kernels: unset NUMBA_DISABLE_JIT" in done.stderr


def loads(root: Path) -> bool:
    """Whether this process loads the cached code of a package, which runs it."""
    Game(3)  # compiles the kernel
    kernel = kernels.new_games
    cache = jit.KernelCache(kernel.py_func, [root / FOLDER])
    codes = [cache.load_overload(signature, kernel.targetctx) for signature in kernel.overloads]
    return any(code is not None for code in codes)


def test_a_damaged_cache_is_compiled_again(root: Path) -> None:
    (file,) = (root / FOLDER).glob("core.kernels.new_games*.nbc")
    whole = file.read_bytes()
    assert loads(root)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:20], whole[:-1], whole + b"more", flipped):
        file.write_bytes(damaged)
        assert not loads(root)
    assert run(root) == (2, 1)
    assert run(root) == (2, 0)


def test_a_kernel_does_not_inherit_fast_mathematics_from_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results must not depend on the kernel that is the first to call another one."""
    monkeypatch.setattr(jit, "cache_folders", lambda: [tmp_path])  # machine code has no flags

    @jit.kernel
    def total(numbers):
        sum_ = 0.0
        for number in numbers:
            sum_ += number
        return sum_

    @jit.fast_kernel
    def twice(numbers):
        return 2.0 * total(numbers) + numbers[0]

    assert twice(np.ones(3)) == 7.0
    flags = [
        " reassoc " in code for kernel in (total, twice) for code in kernel.inspect_llvm().values()
    ]
    assert "fadd double" in next(iter(total.inspect_llvm().values()))
    assert flags == [False, True]
