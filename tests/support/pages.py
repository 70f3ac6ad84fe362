"""Pages of the documentation, modules of the package, and the project's metadata."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# A number with an interval, a rate, a decimal share, a share won, a time, a ratio
FIGURE = re.compile(
    r"\d%? \[-?\d[\d.,]*, |\d[\d.,]*(?: \w+){0,3} per second|\d\.\d+%|\bw[io]ns? \d+%|\d ms\b"
    r"|± \d|\d times\b"
)


def find_modules() -> dict[str, Path]:
    """Every module of the package by its name, with its file."""
    paths = (ROOT / "busenv").rglob("*.py")
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def blocks(path: Path, language: str) -> list[str]:
    """The contents of a page's fenced code blocks in a language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def flow(text: str) -> str:
    """A text with single spaces in place of line breaks."""
    return " ".join(text.split())


def unclaimed_figures(text: str, claimed: Iterable[str]) -> list[str]:
    """The measured figures of a page outside of claimed texts and code blocks."""
    prose = flow(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    for known in sorted(map(flow, claimed), key=len, reverse=True):
        prose = prose.replace(known, "")
    return FIGURE.findall(prose)
