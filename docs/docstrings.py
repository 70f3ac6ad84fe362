"""How the reference shows docstrings: lines `name: meaning` become lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELD = re.compile(r"(\w+(?:, \w+)*): (.*)")


def as_list(text: str) -> str:
    """A docstring whose paragraphs of `name: meaning` lines are Markdown lists.

    Such a paragraph begins with a name and goes on with further names and with indented lines.
    """
    paragraphs = re.split(r"(\n\n+)", text)
    return "".join(_fields(paragraph) for paragraph in paragraphs)


def _fields(paragraph: str) -> str:
    lines = paragraph.split("\n")
    if not FIELD.match(lines[0]) or not all(
        FIELD.match(line) or line.startswith("    ") for line in lines
    ):
        return paragraph
    return "\n".join(FIELD.sub(r"- `\1`: \2", line, count=1) for line in lines)


class FieldLists(griffe.Extension):
    """Rewrites every docstring on its way to the page."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_list(obj.docstring.value)
