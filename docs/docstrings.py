"""How the reference shows docstrings: `name: meaning` becomes a list, enums tell their values."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELD = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*): (.*)")
MEMBER = re.compile(r"    ([A-Z_]+) = (\d+)(?:  # (.*))?")


def with_lists(text: str) -> str:
    """A docstring whose lines `name: meaning` are items of Markdown lists.

    Such a line begins a paragraph or follows a finished sentence; indented lines go on with it.
    """
    lines: list[str] = []
    listed, before = False, ""
    for line in text.split("\n"):
        ended = before.strip()[-1:] in ("", ".", ":", ";", ")")
        found = FIELD.match(line) if ended else None
        if found and not listed:
            lines.append("")
        ends = bool(line.strip()) and not line.startswith(" ") and ended
        if listed and ends and not found:
            lines.append("")  # a sentence that is no item ends the list
        if found or ends:
            listed = found is not None
        lines.append(f"- `{found[1]}`: {found[2]}" if found else line)
        before = line
    return "\n".join(lines).strip("\n")


def members(source: str) -> str:
    """A Markdown list of an enum's members, with the comments behind them."""
    found = [MEMBER.match(line) for line in source.split("\n")]
    return "\n".join(
        f"- `{one[1]}` = {one[2]}" + (f": {one[3]}" if one[3] else "") for one in found if one
    )


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring on its way to the page."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is None:
            return
        obj.docstring.value = with_lists(obj.docstring.value)
        if obj.is_class and any(str(base).endswith("Enum") for base in obj.bases):
            obj.docstring.value += "\n\n" + members(obj.source)
