"""What comes from a file or another program, made fit to be quoted and printed."""

from __future__ import annotations

LONGEST = 200  # characters of a quotation


def cut(text: str, longest: int = LONGEST) -> str:
    """A text, or its beginning where it is too long for a message."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text):,} characters)"


def quote(value: object) -> str:
    """A value as an error message quotes it: as Python writes it, cut where it is long."""
    return cut(repr(value))


def printable(text: object) -> str:
    """A text with everything escaped that a terminal may obey: control characters, line breaks
    among them, marks that turn the direction of writing, halves of characters."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )
