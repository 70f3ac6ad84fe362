"""A griffe extension: docstring lines `name: meaning` become lists, enums list their members."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A line after the end of a sentence, and a field at the beginning of a paragraph.
SENTENCE = re.compile(r"(?<=[.)]\n)(?=[^>\s])")
FIELD = re.compile(r"(\A|(?<=\n\n))([a-z_]\w*(?:, [a-z_]\w*)*): ")
MEMBER = re.compile(r"    ([A-Z_]+) = (\d+)(?:  # (.*))?")


def with_lists(text: str) -> str:
    """Convert lines `name: meaning` of a docstring into items of Markdown lists."""
    return FIELD.sub(r"- `\2`: ", SENTENCE.sub("\n", text))


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
