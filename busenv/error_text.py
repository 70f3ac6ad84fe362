"""Text for error messages: quoted values, suggestions, and how to install an extra."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 200  # characters of a quotation


def truncate(text: str, longest: int = LONGEST) -> str:
    """A text, or its beginning where it is too long for a message."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text):,} characters)"


def quote(value: object) -> str:
    """A value as an error message quotes it: as Python writes it, cut where it is long."""
    return truncate(repr(value))


def printable(text: object) -> str:
    """A text with everything escaped that a terminal may obey: control characters, line breaks
    among them, marks that turn the direction of writing, halves of characters."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """ "; did you mean 'NAME'?" for the closest allowed name; "" when none is close."""
    close = difflib.get_close_matches(truncate(word), list(allowed), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def install(*extras: str) -> str:
    """How to install extras of busenv, which is not on PyPI."""
    return f"In a clone of busenv: pip install -e '.[{','.join(extras)}]'"


def missing_extra(error: ModuleNotFoundError, extra: str, what: str) -> ModuleNotFoundError:
    """The error for `what` when a package of one of busenv's extras is missing."""
    return ModuleNotFoundError(
        f"{what} needs {error.name}, which is not installed. {install(extra)}", name=error.name
    )
