"""Versions of busenv as importable folders: a commit, a checkout, or the running package.

A tree holds the package `busenv` with its agents, and no other part of a checkout. It is stored in
the user's cache under the digest of its content, together with the machine code of its kernels.
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

MAX_TREES = 6  # trees in the cache; the least recently used ones are deleted
PACKAGES = ("busenv", "agents")  # top-level folders that measurements need


def trees_folder() -> Path:
    """Return the folder of the cache."""
    return Path(AppDirs("busenv", appauthor=False).user_cache_dir) / "bench"


def running_tree(cache: Path) -> Path:
    """Store the files of the running package and return the path of their tree."""
    with tempfile.TemporaryDirectory() as checkout:
        _copy(Path(busenv.__file__).parent, Path(checkout) / "busenv")
        _copy(Path(agents.__file__).parent, Path(checkout) / "agents")
        return _store(Path(checkout), cache)


def tree_of(revision: str, cache: Path) -> Path:
    """Store a commit of the repository here, or a checkout's folder, and return its tree.

    ValueError when `revision` is neither, or contains no busenv.
    """
    with tempfile.TemporaryDirectory() as checkout:
        if Path(revision).is_dir():
            for name in PACKAGES:
                if (Path(revision) / name).is_dir():
                    _copy(Path(revision) / name, Path(checkout) / name)
        else:
            _extract(revision, Path(checkout))
        if not (Path(checkout) / "busenv/__init__.py").is_file():
            raise ValueError(f"{revision!r} contains no package busenv")
        return _store(Path(checkout), cache)


def _extract(revision: str, folder: Path) -> None:
    """Write a commit's packages into a folder."""
    root = _git("rev-parse", "--show-toplevel").decode().strip()
    try:
        commit = _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except ValueError as error:
        raise ValueError(f"{revision!r} is neither a folder nor a commit of {root}") from error
    archive = _git("-C", root, "archive", "--format=zip", commit.decode().strip())
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        members = [name for name in files.namelist() if name.partition("/")[0] in PACKAGES]
        files.extractall(folder, members)


def _git(*words: str) -> bytes:
    try:
        return subprocess.run(["git", *words], check=True, capture_output=True).stdout
    except FileNotFoundError:
        raise ValueError("git is not installed; --against also takes a folder") from None
    except subprocess.CalledProcessError as error:
        raise ValueError(f"git: {error.stderr.decode(errors='replace').strip()}") from error


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def _store(checkout: Path, cache: Path) -> Path:
    """Copy the packages of a checkout into the cache, unless it has them, and return their tree."""
    if (checkout / "agents").is_dir():
        shutil.move(checkout / "agents", checkout / "busenv/agents")  # the layout of a wheel
    tree = cache / _digest(checkout)
    if not tree.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=cache))
        shutil.copytree(checkout, draft, dirs_exist_ok=True)
        os.replace(draft, tree)
    os.utime(tree)
    for old in sorted(cache.iterdir(), key=lambda path: -path.stat().st_mtime)[MAX_TREES:]:
        shutil.rmtree(old, ignore_errors=True)
    return tree


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix().encode()
        digest.update(b"%s\0%d\0" % (name, path.stat().st_size) + path.read_bytes())
    return digest.hexdigest()[:16]
