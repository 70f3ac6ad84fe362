"""Versions of busenv as folders from which they can be imported: of a commit, of a checkout, and
the one that runs.

A tree holds the package `busenv` with its agents, and nothing else of a checkout. It stays in the
user's cache under the digest of its content, and the machine code of its kernels stays in it.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from numba.misc.appdirs import AppDirs

import busenv
from busenv import agents

KEPT = 6  # trees, those used last
PACKAGES = ("busenv", "agents")  # top-level folders with what is measured


def trees_folder() -> Path:
    """Where trees are kept."""
    return Path(AppDirs("busenv", appauthor=False).user_cache_dir) / "bench"


def running_tree(kept: Path) -> Path:
    """The tree of the package that runs, as its files are now."""
    with tempfile.TemporaryDirectory() as made:
        _copy(Path(busenv.__file__).parent, Path(made) / "busenv")
        _copy(Path(agents.__file__).parent, Path(made) / "agents")
        return _keep(Path(made), kept)


def tree_of(revision: str, kept: Path) -> Path:
    """The tree of a commit of the repository here, or of a folder with a checkout.

    ValueError when it is neither, or holds no busenv.
    """
    with tempfile.TemporaryDirectory() as made:
        if Path(revision).is_dir():
            for name in PACKAGES:
                if (Path(revision) / name).is_dir():
                    _copy(Path(revision) / name, Path(made) / name)
        else:
            _extract(revision, Path(made))
        if not (Path(made) / "busenv/__init__.py").is_file():
            raise ValueError(f"{revision!r} holds no folder busenv with a package")
        return _keep(Path(made), kept)


def _extract(revision: str, folder: Path) -> None:
    """Put a commit's packages into a folder."""
    root = _git("rev-parse", "--show-toplevel").decode().strip()
    try:
        commit = _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except ValueError as error:
        raise ValueError(f"{revision!r} is neither a folder nor a commit of {root}") from error
    archive = _git("-C", root, "archive", "--format=zip", commit.decode().strip())
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        wanted = [name for name in files.namelist() if name.partition("/")[0] in PACKAGES]
        files.extractall(folder, wanted)


def _git(*words: str) -> bytes:
    try:
        return subprocess.run(["git", *words], check=True, capture_output=True).stdout
    except FileNotFoundError:
        raise ValueError("git is not installed; --against takes a folder as well") from None
    except subprocess.CalledProcessError as error:
        raise ValueError(f"git: {error.stderr.decode(errors='replace').strip()}") from error


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def _keep(checkout: Path, kept: Path) -> Path:
    """Keep the packages of a checkout as a tree, and return where. The checkout is used up."""
    layer = checkout / "busenv/agents"
    if not layer.is_dir() and (checkout / "agents").is_dir():
        # Before there was one import name `agents` stood beside `busenv`: it is in both places.
        shutil.copytree(checkout / "agents", layer)
    tree = kept / _digest(checkout)
    if not tree.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=kept))
        shutil.copytree(checkout, fresh, dirs_exist_ok=True)
        os.replace(fresh, tree)
    os.utime(tree)
    for old in sorted(kept.iterdir(), key=lambda path: -path.stat().st_mtime)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return tree


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix().encode()
        digest.update(b"%s\0%d\0" % (name, path.stat().st_size) + path.read_bytes())
    return digest.hexdigest()[:16]
