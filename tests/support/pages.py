"""Code blocks in the pages of the documentation."""

import re
from pathlib import Path

from busenv.experiments.benchmark.claims import MARKED

ROOT = Path(__file__).parents[2]
# A number with an interval, a rate, a decimal share, a share won, a time, a ratio
FIGURE = re.compile(
    r"\d%? \[-?\d[\d.,]*, |\d[\d.,]*(?: \w+){0,3} per second|\d\.\d+%|\bw[io]ns? \d+%|\d ms\b"
    r"|± \d|\d times\b"
)


def blocks(path: Path, language: str) -> list[str]:
    """The contents of a page's fenced code blocks in a language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def unclaimed_figures(text: str) -> list[str]:
    """The measured figures of a page outside of claims and code blocks."""
    prose = re.sub(r"^```.*?^```$", "", MARKED.sub("", text), flags=re.MULTILINE | re.DOTALL)
    return FIGURE.findall(" ".join(prose.split()))
