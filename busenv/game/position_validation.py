"""Types and ranges of the fields of a position; `busenv.game.states` checks how they fit."""

from __future__ import annotations

from collections.abc import Sequence

from busenv.core.state import NO_LIMIT, BoardAction, Phase
from busenv.error_text import quote
from busenv.errors import PositionError
from busenv.game.board import Board
from busenv.game.position import ENDINGS, Position
from busenv.game.rules import Rules, check_players
from busenv.io import is_int

MAX_DELIVERIES = 10_000  # by a seat; no game comes near, and the sum of all seats fits the state


def check_values(position: Position, board: Board, rules: Rules) -> None:
    """Raise PositionError unless each field has its type and is in the range of board and rules."""
    try:
        seats = check_players(position.num_players)
    except ValueError as error:
        raise PositionError(f"position: {error}") from error
    if not isinstance(position.phase, Phase):
        _refuse("phase", position.phase, "a busenv.Phase")
    if position.ending not in ENDINGS:
        _refuse("ending", position.ending, f"one of {ENDINGS}")
    stones, intersections = rules.stones_for(seats), len(board.intersections)
    for field, low, high in (
        ("round", 0, rules.action_markers),  # a round takes a marker of every seat that has one
        ("current_player", -1, seats - 1),
        ("first_player", 0, seats - 1),
        ("starting_player", 0, seats - 1),
        ("resolving", -1, rules.spaces - 1),
        ("power", 0, rules.bus_limit + 1),
        ("clock", 0, 2),
        ("time_stones_left", 0, stones),
        ("supply", 0, rules.passengers - rules.start_passengers),
    ):
        _check_number(field, getattr(position, field), low, high)
    for field, length, low, high in (
        ("action_markers", seats, 0, rules.action_markers),
        ("buses", seats, 1, rules.bus_limit),
        ("deliveries", seats, 0, MAX_DELIVERIES),
        ("time_stones", seats, 0, stones),
        ("delivery_order", seats, 0, seats),
        ("passengers", intersections, 0, rules.passengers),
        ("buildings", len(board.sites), -1, 2),
    ):
        _check_list(field, getattr(position, field), [length], low, high)
    _check_lines(position, board, seats)
    _check_ids("choosing", position.choosing, seats)
    _check_ids("waiting", position.waiting, intersections)
    _check_ids("vacant", position.vacant, intersections)
    _check_length("spaces", position.spaces, [len(BoardAction)])
    for action in BoardAction:
        lengths = range(rules.spaces_of(action) + 1)
        _check_list(f"spaces[{action.value}]", position.spaces[action], lengths, 0, seats - 1)


def _check_lines(position: Position, board: Board, seats: int) -> None:
    """The fields of lines have an entry per seat, with markers and ids in range."""
    for field in ("line_markers", "streets", "line_ends", "arrivals", "shared_with"):
        _check_length(field, getattr(position, field), [seats])
    for seat in range(seats):
        if position.line_markers[seat] is not None:
            _check_number(f"line_markers[{seat}]", position.line_markers[seat], 0, NO_LIMIT)
        _check_ids(f"streets[{seat}]", position.streets[seat], len(board.streets))
        ends = [2 if position.streets[seat] else 0]
        last = len(board.intersections) - 1
        _check_list(f"line_ends[{seat}]", position.line_ends[seat], ends, 0, last)
        last = len(board.streets) - 1
        _check_list(f"arrivals[{seat}]", position.arrivals[seat], ends, 0, last)
        _check_length(f"shared_with[{seat}]", position.shared_with[seat], ends)
        for end, others in enumerate(position.shared_with[seat]):
            _check_ids(f"shared_with[{seat}][{end}]", others, seats)


def _refuse(field: str, value: object, allowed: str) -> None:
    raise PositionError(f"position: {field} is {quote(value)}; allowed: {allowed}")


def _check_number(name: str, value: object, low: int, high: int) -> None:
    if not is_int(value, low, high):
        _refuse(name, value, f"a whole number {low} to {high}")


def _check_length(name: str, value: object, lengths: Sequence[int]) -> None:
    if not isinstance(value, list) or len(value) not in lengths:
        ends = f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else f"{lengths[0]}"
        _refuse(name, value, f"a list of {ends} entries")


def _check_list(name: str, value: list[int], lengths: Sequence[int], low: int, high: int) -> None:
    _check_length(name, value, lengths)
    for i, entry in enumerate(value):
        _check_number(f"{name}[{i}]", entry, low, high)


def _check_ids(name: str, value: list[int], count: int) -> None:
    """Check a set of ids or seats below `count`, in ascending order."""
    _check_list(name, value, range(count + 1), 0, count - 1)
    if value != sorted({*value}):
        _refuse(name, value, "each entry once, ascending")
