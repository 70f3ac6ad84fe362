"""Pages of the documentation, modules of the package, and the project's metadata."""

import re
import sys
from pathlib import Path

from busenv.experiments.benchmark.claims import MARKED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LAYERS = ("busenv", "busenv.agents", "busenv.train", "busenv.experiments")  # lowest first
# A number with an interval, a rate, a decimal share, a share won, a time, a ratio
FIGURE = re.compile(
    r"\d%? \[-?\d[\d.,]*, |\d[\d.,]*(?: \w+){0,3} per second|\d\.\d+%|\bw[io]ns? \d+%|\d ms\b"
    r"|± \d|\d times\b"
)


def find_modules() -> dict[str, Path]:
    """Every module of the package by its name, with its file."""
    modules = {}
    for layer in LAYERS:
        folder = ROOT / layer.rpartition(".")[2]
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((layer, *parts))
            modules[name.removesuffix(".__init__")] = path
    return modules


def blocks(path: Path, language: str) -> list[str]:
    """The contents of a page's fenced code blocks in a language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def unclaimed_figures(text: str) -> list[str]:
    """The measured figures of a page outside of claims and code blocks."""
    prose = re.sub(r"^```.*?^```$", "", MARKED.sub("", text), flags=re.MULTILINE | re.DOTALL)
    return FIGURE.findall(" ".join(prose.split()))
