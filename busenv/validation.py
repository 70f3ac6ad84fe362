"""Validation of arguments that games and environments share."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any, Literal, get_args

from gymnasium.vector import AutoresetMode

from busenv.errors import IllegalActionError

Illegal = Literal["raise", "lose", "replace"]
MASK_HINT = "sample actions with the action mask, or set illegal to 'lose' or 'replace'"


def with_mask_hint(error: IllegalActionError) -> IllegalActionError:
    """Return the error of an environment: it also names the mask and the setting `illegal`."""
    return IllegalActionError(f"{error}; {MASK_HINT}")


def check_illegal(illegal: str) -> Illegal:
    """Return a setting `illegal` ("raise", "lose" or "replace"); else raise ValueError."""
    allowed = get_args(Illegal)
    if illegal not in allowed:
        raise ValueError(f"illegal is {illegal!r}; allowed: one of {[*allowed]}")
    return illegal  # type: ignore[return-value]


def check_autoreset(mode: str | AutoresetMode) -> AutoresetMode:
    """Return a setting `autoreset_mode`; else raise ValueError."""
    allowed = [one.value for one in AutoresetMode]
    if mode not in [*allowed, *AutoresetMode]:
        raise ValueError(f"autoreset_mode is {mode!r}; allowed: one of {allowed}")
    return AutoresetMode(mode)


def check_options(options: dict[str, Any] | None, allowed: Collection[str]) -> dict[str, Any]:
    """Return a reset's options as a dict.

    Raises TypeError for anything but None or a dict, and ValueError for an option that is not
    allowed.
    """
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"options is {options!r}; allowed: None or a dict")
    for name in options or {}:
        if name not in allowed:
            raise ValueError(f"options has {name!r}; allowed: {', '.join(allowed)}")
    return options or {}


def check_seed(seed: int) -> int:
    """Return a seed, 0 to 2**64 - 1, as an int; else raise ValueError."""
    try:
        value = operator.index(seed)
    except TypeError:
        value = -1
    if not 0 <= value < 2**64:
        raise ValueError(f"seed is {seed!r}; allowed: a whole number 0 to 2**64 - 1")
    return value


def check_whole(name: str, value: int, low: int, high: int | None = None) -> int:
    """Return a whole number within limits as an int; else raise ValueError, which names them."""
    try:
        number, kind = operator.index(value), ""
    except TypeError:
        number, kind = low - 1, ", whole numbers only"
    if number < low or (high is not None and number > high):
        allowed = f"{low} or more" if high is None else f"{low} to {high}"
        raise ValueError(f"{name} is {value!r}; allowed: {allowed}{kind}")
    return number
