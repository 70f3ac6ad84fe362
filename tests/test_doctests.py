"""The examples in docstrings run and print the documented results."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"busenv": "busenv"} | {
    name: f"busenv.{name}" for name in ("agents", "train", "experiments")
}


def modules_with_examples() -> list[str]:
    """Import names of all modules with an example in their source."""
    modules = []
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                modules.append(".".join([package, *parts]).removesuffix(".__init__"))
    return modules


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_package_docstring_has_an_example() -> None:
    assert {"busenv", "busenv.observation"} <= {*modules_with_examples()}
