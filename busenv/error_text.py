"""Text for error messages: quoted values, suggestions, and how to install an extra."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 200  # characters of a quotation


def truncate(text: str, longest: int = LONGEST) -> str:
    """Return a text, or its beginning and its length if it is too long for a message."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text):,} characters)"


def quote(value: object) -> str:
    """Return the repr of a value, truncated for an error message."""
    return truncate(repr(value))


def printable(text: object) -> str:
    """Escape control characters, line breaks, bidirectional marks and surrogates for a terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return "; did you mean 'NAME'?" for the closest allowed name, or "" without one."""
    close = difflib.get_close_matches(truncate(word), list(allowed), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def install(*extras: str) -> str:
    """Return how to install extras of busenv, which is not on PyPI."""
    return f"In a clone of busenv: pip install -e '.[{','.join(extras)}]'"


def missing_extra(error: ModuleNotFoundError, extra: str, what: str) -> ModuleNotFoundError:
    """Make the error for a feature (`what`) that needs a missing package of an extra."""
    return ModuleNotFoundError(
        f"{what} needs {error.name}, which is not installed. {install(extra)}", name=error.name
    )
