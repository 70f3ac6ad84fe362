"""Versions of busenv as importable folders: a commit, a checkout, or the running package."""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import busenv
from busenv import agents

PACKAGES = ("busenv", "agents")  # top-level folders that measurements need


def write_tree(tree: Path, revision: str | None = None) -> Path:
    """Replace a folder by the package of a version, and return it.

    The tree holds `busenv` with its agents, as a wheel does, and no other part of a checkout.
    revision: a commit of the repository here, or a checkout's folder; None for the running package.
    ValueError when `revision` is neither, or contains no busenv.
    """
    with tempfile.TemporaryDirectory() as checkout:
        if revision is None:
            sources = [Path(str(package.__file__)).parent for package in (busenv, agents)]
        else:
            root = Path(revision)
            if not root.is_dir():
                root = Path(checkout)
                _extract(revision, root)
            sources = [root / name for name in PACKAGES]
        if not (sources[0] / "__init__.py").is_file():
            raise ValueError(f"{revision!r} contains no package busenv")
        shutil.rmtree(tree, ignore_errors=True)
        for source, target in zip(sources, (tree / "busenv", tree / "busenv/agents"), strict=True):
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return tree


def _extract(revision: str, folder: Path) -> None:
    """Write a commit's packages into a folder."""
    try:
        root = _git("rev-parse", "--show-toplevel").decode().strip()
        commit = _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except ValueError as error:
        raise ValueError(
            f"{revision!r} is neither a folder nor a commit of the current folder's repository: "
            f"{error}"
        ) from None
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
