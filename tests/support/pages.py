"""Code blocks in the pages of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(path: Path, language: str) -> list[str]:
    """The contents of a page's fenced code blocks in a language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
