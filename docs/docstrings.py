"""A griffe extension: docstring lines `name: meaning` become lists, enums list their members."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELD = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*): (.*)")
MEMBER = re.compile(r"    ([A-Z_]+) = (\d+)(?:  # (.*))?")


def with_lists(text: str) -> str:
    """Convert lines `name: meaning` of a docstring into items of Markdown lists.

    An item starts a paragraph or follows a finished sentence; indented lines continue it.
    """
    lines: list[str] = []
    in_list, previous = False, ""
    for line in text.split("\n"):
        after_sentence = previous.strip()[-1:] in ("", ".", ":", ";", ")")
        item = FIELD.match(line) if after_sentence else None
        new_sentence = bool(line.strip()) and not line.startswith(" ") and after_sentence
        if (item and not in_list) or (in_list and new_sentence and not item):
            lines.append("")  # Markdown separates a list from a paragraph by an empty line
        if item or new_sentence:
            in_list = item is not None
        lines.append(f"- `{item[1]}`: {item[2]}" if item else line)
        previous = line
    return "\n".join(lines).strip("\n")


def enum_members(source: str) -> str:
    """A Markdown list of the members of an enum, with the comments after them."""
    matches = (MEMBER.match(line) for line in source.split("\n"))
    return "\n".join(
        f"- `{match[1]}` = {match[2]}" + (f": {match[3]}" if match[3] else "")
        for match in matches
        if match
    )


class PlainDocstrings(griffe.Extension):
    """Converts every docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is None:
            return
        obj.docstring.value = with_lists(obj.docstring.value)
        if obj.is_class and any(str(base).endswith("Enum") for base in obj.bases):
            obj.docstring.value += "\n\n" + enum_members(obj.source)
