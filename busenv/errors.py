"""Errors that busenv raises."""

from __future__ import annotations


class IllegalActionError(ValueError):
    """An action is not legal now; the game is unchanged."""


class BoardError(ValueError):
    """A board is invalid; the message names the entry."""


class PositionError(ValueError):
    """A position is invalid; the message names the field and what contradicts it."""


class RecordError(ValueError):
    """A record or its encoding is invalid; the message names what is wrong."""


class AgentError(RuntimeError):
    """An agent failed: it crashed, timed out or chose an illegal action."""


class AgentUnavailableError(AgentError):
    """An agent cannot be reached: a rating stops, and does not count a forfeit."""
