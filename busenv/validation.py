"""Validation of arguments, actions and games that all environments share."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any, Literal, get_args

import numpy as np

from busenv.core import kernels, state_validation
from busenv.core.state import FIELDS, GAME
from busenv.errors import IllegalActionError
from busenv.game.actions import Phase, describe_action
from busenv.game.board import Board

Illegal = Literal["raise", "lose", "replace"]
MASK_HINT = "sample actions with the action mask, or set illegal to 'lose' or 'replace'"


def illegal_action(games: np.ndarray, index: int, board: Board, action: int) -> IllegalActionError:
    """Make the error for an action in one game of a batch: action, phase, seat, legal actions."""
    words = f" ({describe_action(board, action)})" if 0 <= action < board.num_actions else ""
    which = f" of game {index}" if len(games) > 1 else ""
    phase = Phase(games["phase"][index])
    if phase == Phase.OVER:
        return IllegalActionError(f"action {action}{words}{which} is illegal: the game is OVER")
    mask = np.zeros((1, board.num_actions), np.bool_)
    kernels.legal_bytes(games[index : index + 1], board.array, mask)
    return IllegalActionError(
        f"action {action}{words}{which} is illegal for seat {games['seat'][index]} "
        f"in phase {phase.name}; legal: {np.flatnonzero(mask[0]).tolist()}"
    )


def with_mask_hint(error: IllegalActionError) -> IllegalActionError:
    """Return the error of an environment: it also names the mask and the setting `illegal`."""
    return IllegalActionError(f"{error}; {MASK_HINT}")


def check_illegal(illegal: str) -> Illegal:
    """Return a setting `illegal` ("raise", "lose" or "replace"); else raise ValueError."""
    allowed = get_args(Illegal)
    if illegal not in allowed:
        raise ValueError(f"illegal is {illegal!r}; allowed: one of {[*allowed]}")
    return illegal  # type: ignore[return-value]


def check_options(
    options: dict[str, Any] | None, allowed: Collection[str] | None = None
) -> dict[str, Any]:
    """Return a reset's options as a dict.

    Raises TypeError for anything but None or a dict, and ValueError for an option that is not in
    `allowed`; None allows all options.
    """
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"options is {options!r}; allowed: None or a dict")
    for name in options or {}:
        if allowed is not None and name not in allowed:
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


def check_games(games: np.ndarray, board: Board) -> np.ndarray:
    """Validate games (GAME, (N,)) and return them as the type for which kernels are compiled.

    Strided and read-only games are copied; the dtype becomes the object GAME, since one from a file
    or pickle can compare equal and still be another type to numba. Raises ValueError for games of
    another board, and for a game that kernels cannot continue from, naming the game and the field
    (`busenv.core.state_validation`). The state need not be reachable by play. Games that a `Game`
    or `Batch` played need no validation.
    """
    if games.ndim != 1 or games.dtype != GAME:
        raise ValueError(
            f"games have shape {games.shape} and dtype {games.dtype}; allowed: GAME records, (N,)"
        )
    if not (games["board_tag"] == board.array["tag"]).all():
        raise ValueError(f"games of another board than {board!r}, or not begun")
    games = np.require(games, requirements=("C", "W")).view(GAME)
    index, field = state_validation.first_invalid(games, board.array)
    if index >= 0:
        name = FIELDS[field]
        raise ValueError(
            f"game {index} cannot be played on: {name} is {games[name][index].tolist()}, "
            "which does not fit its other fields or the board"
        )
    return games
