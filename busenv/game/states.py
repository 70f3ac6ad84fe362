"""States of games as arrays: new ones, those of positions, and their validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from busenv.core import kernels, state_validation
from busenv.core.state import FIELDS, GAME, NO_LIMIT, RESOLVED_IN, Phase
from busenv.error_text import quote
from busenv.errors import AgentError, IllegalActionError, PositionError
from busenv.game.actions import describe_action
from busenv.game.board import Board
from busenv.game.position import ASCENDING, BY_SEAT, NUMBERS, Position, read_position
from busenv.game.position_validation import check_values
from busenv.game.rules import Rules

if TYPE_CHECKING:
    from busenv.game.game import Game

# The fields of positions that hold fields of states, where their names differ.
POSITION_FIELDS = {field: name for name, field in (NUMBERS | BY_SEAT).items()} | {
    "free_sites": "buildings", "grow_head": "streets", "head": "line_ends", "line": "streets",
    "head_shared": "shared_with", "tail_shared": "shared_with", "open": "spaces",
    "seat": "current_player", "space": "resolving", "type_sites": "buildings",
}  # fmt: skip
# Why a field of a state is invalid, where it is not plain.
REASONS = {
    "choosing": "allowed: seats with markers, among them the current player, while actions are "
    "selected, else none (R4)",
    "clock_stones": "the game ends when none is left (R15)",
    "delivery_order": "allowed: 1, 2, ... once each for seats with deliveries, 0 for others (R20)",
    "ending": "allowed in phase OVER: no stone on the clock, no free site, or markers in the hands "
    "of at most one seat (R15, R19)",
    "free_sites": "no site is free",
    "grow_head": "the line of the current player cannot grow (R8 to R10)",
    "head_shared": "an end may remember other seats on its arrival street only, where R9a needs it",
    "line": "a line is a trail between its ends that begins and ends with its arrivals (R8), and "
    "every seat has one after the setup (R3)",
    "markers": "a seat has at most the markers of the rules, and one or more while it selects and "
    "in the setup (R4)",
    "open": "all are taken, which ends the selection (R4)",
    "power": "allowed: 1 to the power that the resolved marker can have (R7), else 0",
    "round": "allowed: 0 in the setup, 1 or more after it",
    "seat": "the marker of another seat is resolved (R6)",
    "space": "no marker is resolved there (R6)",
    "spaces": "no marker is placed in the setup",
    "supply": "no passenger is left",
    "type_sites": "a zone has buildings only when all lower ones are full (R14)",
    "vacant": "none is on the line of the current player (R17)",
    "waiting": "none is on the line of the current player (R17)",
}
REASONS["tail_shared"] = REASONS["head_shared"]
MISFIT = "it does not fit the other fields or the board"


def new_state(board: Board, rules: Rules, num_players: int, first: int) -> np.ndarray:
    """Make the state before the first decision (R1): GAME, (1,). first: the first player's seat."""
    state = np.zeros(1, GAME)
    kernels.new_games(state, board.array, rules.record(num_players), np.array([first]))
    return state


def copy_state(state: np.ndarray) -> np.ndarray:
    """Copy a state (GAME, (1,)) by its bytes, because numpy copies records slowly."""
    return np.ndarray((1,), GAME, bytearray(state.tobytes()))


def check_games(games: np.ndarray, board: Board) -> np.ndarray:
    """Validate games (GAME, (N,)) and return them as the type for which kernels are compiled.

    Strided and read-only games are copied; the dtype becomes the object GAME, since one from a file
    or pickle can compare equal and still be another type to numba. Raises ValueError for games of
    another board, and for an invalid game, naming the game and the field
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
        reason = REASONS.get(name, MISFIT)
        raise ValueError(
            f"game {index} cannot be played on: {name} is {games[name][index].tolist()}; {reason}"
        )
    return games


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


def act_unchanged(act: Callable[[Game], Any], game: Game, name: str) -> Any:
    """Return act(game), the answer of an agent; AgentError if it changes the game."""
    state = game.arrays()[0]
    before = state.tobytes()
    answer = act(game)
    if state.tobytes() != before:
        raise AgentError(f"{name} changed the game; step game.clone() instead")
    return answer


def check_choice(answer: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return an agent's answer as int64; AgentError unless it is whole numbers of a shape."""
    actions = np.asarray(answer)
    if actions.shape != shape or actions.dtype.kind not in "iu":
        raise AgentError(f"{name} chose {actions!r}; allowed: whole numbers of shape {shape}")
    return actions.astype(np.int64)


def state_of(position: Position, board: Board, rules: Rules) -> np.ndarray:
    """Make the state of a position: GAME, (1,).

    Raises PositionError, which names a field and what contradicts it, for an invalid position.
    """
    if not isinstance(position, Position):
        raise TypeError(f"position is {position!r}; allowed: a busenv.Position")
    check_values(position, board, rules)
    seats, limits = position.num_players, rules.line_markers
    used = [len(streets) for streets in position.streets]
    _check_equal(
        position,
        line_markers=[limits[s] - used[s] if limits else None for s in range(seats)],
        time_stones_left=rules.stones_for(seats) - sum(position.time_stones),
        supply=rules.passengers - sum(position.passengers) - (position.phase == Phase.SET_DOWN),
    )
    state = new_state(board, rules, seats, position.first_player)
    _write_seats(state[0], position)
    _write_table(state[0], position)
    state_validation.derive_state(state, board.array)
    _check_equal(position, **vars(read_position(state, board)))
    _, field = state_validation.first_invalid(state, board.array)
    if field >= 0:
        name = FIELDS[field]
        _refuse(position, POSITION_FIELDS.get(name, name), REASONS.get(name, MISFIT))
    return state


def _check_equal(position: Position, **values: Any) -> None:
    """Raise PositionError for a field that differs from its value by the other fields."""
    for field, value in values.items():
        if getattr(position, field) != value:
            _refuse(position, field, f"by the other fields it is {quote(value)}")


def _refuse(position: Position, field: str, reason: str) -> None:
    raise PositionError(f"position: {field} is {quote(getattr(position, field))}; {reason}")


def _write_seats(state: np.void, position: Position) -> None:
    """Write markers, buses, deliveries and lines."""
    for name, field in BY_SEAT.items():
        state[field][: position.num_players] = getattr(position, name)
    left = [NO_LIMIT if n is None else n for n in position.line_markers]
    state["line_markers"][: position.num_players] = left
    for seat, streets in enumerate(position.streets):
        high, low = divmod(_word(streets), 1 << 64)
        state["line"][seat] = low, high
        if position.line_ends[seat]:
            state["head"][seat], state["tail"][seat] = position.line_ends[seat]
            state["head_street"][seat], state["tail_street"][seat] = position.arrivals[seat]
            shared = [_word(seats) for seats in position.shared_with[seat]]
            state["head_shared"][seat], state["tail_shared"][seat] = shared


def _write_table(state: np.void, position: Position) -> None:
    """Write the city, the action board and the turn."""
    state["passengers"][: len(position.passengers)] = position.passengers
    for kind in range(3):
        sites = (site for site, built in enumerate(position.buildings) if built == kind)
        state["type_sites"][kind] = _word(sites)
    for action, seats in enumerate(position.spaces):
        state["spaces"][action][: len(seats)] = seats
        state["taken"][action] = len(seats)
    state["choosing"] = _word(position.choosing)
    if position.phase in RESOLVED_IN:
        state["space"] = max(position.resolving, 0) + (position.phase in ASCENDING)
    for name, field in NUMBERS.items():
        state[field] = getattr(position, name)
    state["phase"], state["seat"] = position.phase, max(position.current_player, 0)


def _word(members: Iterable[int]) -> int:
    """Encode a set as a number: bit i is set for a member i."""
    return sum(1 << member for member in {*members})
