"""The wheel holds the package busenv and nothing else."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.pages import ROOT


def test_the_wheel_holds_all_of_busenv_and_nothing_else(tmp_path: Path) -> None:
    source, built, ignored = tmp_path / "source", tmp_path / "built", shutil.ignore_patterns
    shutil.copytree(ROOT / "busenv", source / "busenv", ignore=ignored("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    code = f"import setuptools.build_meta as build; build.build_wheel({str(built)!r})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    assert "would be ignored" not in done.stdout + done.stderr
    (wheel,) = built.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path.relative_to(ROOT) for path in (ROOT / "busenv").rglob("*") if path.is_file())
    assert names == {path.as_posix() for path in files if "__pycache__" not in path.parts}
    assert "busenv/networks/models/city-2.safetensors" in names


def test_the_package_imports_no_folder_that_the_wheel_leaves_out() -> None:
    """Users may have packages of the same names."""
    for path in (ROOT / "busenv").rglob("*.py"):
        pattern = r"^\s*(from|import) (agents|train|experiments|tests)\b"
        assert not re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE), path
