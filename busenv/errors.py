"""The errors of busenv, and the hint that an error may end with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class IllegalActionError(ValueError):
    """An action that is not legal now; nothing has changed."""


class BoardError(ValueError):
    """A board that cannot be used; the message names the entry that is wrong."""


class PositionError(ValueError):
    """A position that cannot be; the message names the field and what contradicts it."""


class RecordError(ValueError):
    """A record or byte string that cannot be loaded; the message says what is wrong."""


class AgentError(RuntimeError):
    """An agent that failed: it crashed, fell silent or chose what is illegal."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of an error message that names the known word nearest to one; empty if none is near.

    >>> did_you_mean("capstone", ["capstone-2024", "condensed"])
    "; did you mean 'capstone-2024'?"
    """
    near = difflib.get_close_matches(str(word), [*known], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
