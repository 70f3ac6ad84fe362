"""The errors of busenv."""

from __future__ import annotations


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
