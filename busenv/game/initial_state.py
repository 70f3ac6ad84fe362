"""Initial states of games: after the setup (R1), or of a position."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from busenv.core import kernels
from busenv.core.rules.lines import offer_growth
from busenv.core.state import GAME, NO_LIMIT
from busenv.errors import PositionError
from busenv.game.actions import RESOLVED_IN, BoardAction, Phase
from busenv.game.board import Board
from busenv.game.position import ASCENDING, ENDINGS, Position
from busenv.game.position_validation import check_position
from busenv.game.rules import Rules


def new_state(board: Board, rules: Rules, num_players: int, first: int) -> np.ndarray:
    """Make the state before the first decision (R1): GAME, (1,). first: the first player's seat."""
    state = np.zeros(1, GAME)
    kernels.new_games(state, board.array, rules.record(num_players), np.array([first]))
    return state


def copy_state(state: np.ndarray) -> np.ndarray:
    """Copy a state (GAME, (1,)) by its bytes, because numpy copies records slowly."""
    return np.ndarray((1,), GAME, bytearray(state.tobytes()))


def state_of(position: Position, board: Board, rules: Rules) -> np.ndarray:
    """Make the state of a position: GAME, (1,).

    Raises PositionError, which names the field and what contradicts it, for an invalid position.
    """
    if not isinstance(position, Position):
        raise TypeError(f"position is {position!r}; allowed: a busenv.Position")
    check_position(position, board, rules)
    state = new_state(board, rules, position.num_players, position.first_player)
    _write_players(state[0], position, board)
    _write_city(state[0], position, board)
    _write_turn(state[0], position, rules)
    if position.phase in (Phase.LINE_EXPANSION, Phase.SETUP_SECOND_LINE):
        seat = position.current_player
        if not offer_growth(state[0], board.array[0], seat):
            raise PositionError(
                f"position: phase is {position.phase.name}, but the line of seat {seat} cannot grow"
            )
    return state


def _write_players(state: np.void, position: Position, board: Board) -> None:
    """Write markers, buses, deliveries and lines."""
    seats = position.num_players
    for field, values in (
        ("markers", position.action_markers),
        ("line_markers", [NO_LIMIT if n is None else n for n in position.line_markers]),
        ("buses", position.buses),
        ("stones", position.time_stones),
        ("deliveries", position.deliveries),
        ("delivery_order", position.delivery_order),
        ("placed", position.placed),
    ):
        state[field][:seats] = values
    state["delivered"] = sum(position.deliveries)
    state["max_buses"] = max(position.buses)
    for seat, streets in enumerate(position.streets):
        if not streets:
            continue
        state["line"][seat] = _words(streets)
        state["reach"][seat] = _word(i for street in streets for i in board.streets[street])
        state["head"][seat], state["tail"][seat] = position.line_ends[seat]
        state["head_street"][seat], state["tail_street"][seat] = position.arrivals[seat]
        shared = [_word(seats) for seats in position.shared_with[seat]]
        state["head_shared"][seat], state["tail_shared"][seat] = shared
    state["marked"] = _words(street for line in position.streets for street in line)


def _write_city(state: np.void, position: Position, board: Board) -> None:
    """Write passengers, buildings and the clock."""
    state["passengers"][: len(board.intersections)] = position.passengers
    state["occupied"] = _word(i for i, people in enumerate(position.passengers) if people)
    state["supply"] = position.supply
    for kind in range(3):
        sites = [site for site, built in enumerate(position.buildings) if built == kind]
        state["type_sites"][kind] = _word(sites)
        state["built"][kind] = _word(board.sites[site].intersection for site in sites)
    free = [site for site, built in enumerate(position.buildings) if built < 0]
    state["free_sites"] = _word(free)
    zones = max(site.zone for site in board.sites)
    state["zone"] = min((board.sites[site].zone - 1 for site in free), default=zones)
    state["clock"] = position.clock
    state["clock_stones"] = position.time_stones_left
    state["waiting"], state["vacant"] = _word(position.waiting), _word(position.vacant)


def _write_turn(state: np.void, position: Position, rules: Rules) -> None:
    """Write the action board and the turn."""
    state["phase"] = position.phase
    state["round"] = position.round
    state["start"] = position.starting_player
    state["seat"] = max(position.current_player, 0)
    state["ending"] = ENDINGS.index(position.ending)
    state["power"] = position.power
    for action, seats in enumerate(position.spaces):
        state["spaces"][action][: len(seats)] = seats
        state["taken"][action] = len(seats)
    state["choosing"] = _word(position.choosing)
    state["open"] = _word(
        action for action in BoardAction if len(position.spaces[action]) < rules.spaces_of(action)
    )
    if position.phase in RESOLVED_IN:
        state["action"] = RESOLVED_IN[position.phase]
        state["space"] = position.resolving + (position.phase in ASCENDING)


def _word(members: Iterable[int]) -> int:
    """Encode a set as a number: bit i is set for a member i."""
    return sum(1 << member for member in {*members})


def _words(members: Iterable[int]) -> tuple[int, int]:
    """Encode a set as two words of 64 bits."""
    high, low = divmod(_word(members), 1 << 64)
    return low, high
