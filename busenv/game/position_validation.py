"""Position validation: no field of a position contradicts the others, the board or the rules.

The checks cover what is on the table, not whether play can reach it: the clock may point to any
type, and lines may run next to others in any way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NoReturn

from busenv.core.state import NO_LIMIT
from busenv.error_text import quote
from busenv.errors import PositionError
from busenv.game.actions import RESOLVED_IN, BoardAction, Phase
from busenv.game.board import Board
from busenv.game.position import DRIVING, ENDINGS, Position, waiting_and_vacant
from busenv.game.rules import Rules, check_players
from busenv.io import is_int

MAX_DELIVERIES = 10_000  # by a seat; no game comes near, and the sum of all seats fits the state
SETUP = (Phase.SETUP_BUILDINGS, Phase.SETUP_FIRST_LINE, Phase.SETUP_SECOND_LINE)
BEFORE_BUILDINGS = (Phase.SELECT_ACTIONS, Phase.LINE_EXPANSION, Phase.PASSENGERS)
# Phases in which this round's time stone, or bus, may have been taken already (R6).
AFTER_CLOCK = (*DRIVING, Phase.OVER)
AFTER_BUSES = (Phase.PASSENGERS, Phase.BUILDINGS, Phase.CLOCK, *AFTER_CLOCK)


# Each check yields whether it passed, the field that is wrong if not, and what contradicts it.
Checks = Iterator[tuple[bool, str, str]]


def check_position(position: Position, board: Board, rules: Rules) -> None:
    """Raise PositionError, which names a field and what contradicts it, for an invalid position."""
    _check_values(position, board, rules)
    in_setup, selecting = position.phase in SETUP, position.phase == Phase.SELECT_ACTIONS
    checks = chain(
        _check_markers(position, rules),
        _check_common_pieces(position, rules),
        _check_deliveries(position, rules),
        _check_lines(position, board),
        _check_shared(position, rules),
        _check_zones(position, board),
        _check_phase(position),
        _check_setup(position) if in_setup else _check_after_setup(position, board),
        (_check_selection if selecting else _check_selected)(position, rules),
        _check_resolution(position, rules),
        _check_waiting(position, board),
    )
    for passed, field, reason in checks:
        if not passed:
            name, _, index = field.partition("[")
            value = getattr(position, name)
            value = value[int(index[:-1])] if index else value
            _refuse(field, value.name if isinstance(value, Phase) else value, reason)


def _refuse(field: str, value: object, reason: str) -> NoReturn:
    raise PositionError(f"position: {field} is {quote(value)}; {reason}")


def _check_number(name: str, value: object, low: int, high: int) -> None:
    if not is_int(value, low, high):
        _refuse(name, value, f"allowed: a whole number {low} to {high}")


def _check_length(name: str, value: object, lengths: Sequence[int]) -> None:
    if not isinstance(value, list) or len(value) not in lengths:
        between = " to " if isinstance(lengths, range) else " or "
        ends = lengths if len(lengths) < 2 else (lengths[0], lengths[-1])
        _refuse(name, value, f"allowed: a list of {between.join(map(str, ends))} entries")


def _check_list(name: str, value: list[int], lengths: Sequence[int], low: int, high: int) -> None:
    _check_length(name, value, lengths)
    for i, entry in enumerate(value):
        _check_number(f"{name}[{i}]", entry, low, high)


def _check_ids(name: str, value: list[int], count: int) -> None:
    """Check a set of ids or seats below `count`, in ascending order."""
    _check_list(name, value, range(count + 1), 0, count - 1)
    if value != sorted({*value}):
        _refuse(name, value, "allowed: each entry once, ascending")


def _check_values(position: Position, board: Board, rules: Rules) -> None:
    """Every field has its type and is in the range that board and rules allow."""
    try:
        seats = check_players(position.num_players)
    except ValueError as error:
        raise PositionError(f"position: {error}") from error
    stones, intersections = rules.stones_for(seats), len(board.intersections)
    if not isinstance(position.phase, Phase):
        _refuse("phase", position.phase, "allowed: a busenv.Phase")
    if position.ending not in ENDINGS:
        _refuse("ending", position.ending, f"allowed: {ENDINGS}")
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
    _check_line_values(position, board, seats)
    _check_ids("choosing", position.choosing, seats)
    _check_ids("waiting", position.waiting, intersections)
    _check_ids("vacant", position.vacant, intersections)
    _check_length("spaces", position.spaces, [len(BoardAction)])
    for action in BoardAction:
        lengths = range(rules.spaces_of(action) + 1)
        _check_list(f"spaces[{action.value}]", position.spaces[action], lengths, 0, seats - 1)


def _check_line_values(position: Position, board: Board, seats: int) -> None:
    """The fields of lines have an entry per seat, with markers and ids in range."""
    streets, intersections = len(board.streets), len(board.intersections)
    for field in ("line_markers", "streets", "line_ends", "arrivals", "shared_with"):
        _check_length(field, getattr(position, field), [seats])
    for seat, left in enumerate(position.line_markers):
        if left is not None:
            _check_number(f"line_markers[{seat}]", left, 0, NO_LIMIT)
    for seat in range(seats):
        _check_ids(f"streets[{seat}]", position.streets[seat], streets)
        ends, arrivals = position.line_ends[seat], position.arrivals[seat]
        _check_list(f"line_ends[{seat}]", ends, [0, 2], 0, intersections - 1)
        _check_list(f"arrivals[{seat}]", arrivals, [0, 2], 0, streets - 1)
        _check_length(f"shared_with[{seat}]", position.shared_with[seat], [0, 2])
        for end, others in enumerate(position.shared_with[seat]):
            _check_ids(f"shared_with[{seat}][{end}]", others, seats)


def _check_markers(position: Position, rules: Rules) -> Checks:
    """Action markers in hand and on spaces, line markers left and on streets."""
    limits = rules.line_markers or [None] * position.num_players
    for seat, hand in enumerate(position.action_markers):
        placed = position.placed[seat]
        unplaced = rules.action_markers - placed
        most = unplaced - max(position.round - 1, 0)
        reason = (
            f"allowed in round {position.round}: at most {most}, with {placed} on spaces and one "
            "or more spent in each earlier round"
        )
        yield hand <= most, f"action_markers[{seat}]", reason
        reason = f"allowed before round 2: {unplaced}, with {placed} on spaces"
        yield position.round > 1 or hand == unplaced, f"action_markers[{seat}]", reason
        used, limit = len(position.streets[seat]), limits[seat]
        left, reason = None, "allowed: None (no limit)"
        if limit is not None:
            left = limit - used
            reason = f"allowed: {left}, with {used} of {limit} on streets"
        yield position.line_markers[seat] == left, f"line_markers[{seat}]", reason


def _check_common_pieces(position: Position, rules: Rules) -> Checks:
    """Passengers, time stones, and the limit of one bus and one time stone per round."""
    in_city, in_bus = sum(position.passengers), int(position.phase == Phase.SET_DOWN)
    reason = f"{in_city} of {rules.passengers} passengers are in the city and {in_bus} in a bus"
    yield in_city + in_bus + position.supply == rules.passengers, "supply", reason
    taken, all_stones = sum(position.time_stones), rules.stones_for(position.num_players)
    reason = f"allowed: {all_stones - taken}, with {taken} of {all_stones} taken"
    yield taken + position.time_stones_left == all_stones, "time_stones_left", reason
    for field, action, phases, count in (
        ("buses", BoardAction.BUSES, AFTER_BUSES, sum(position.buses) - position.num_players),
        ("time_stones", BoardAction.CLOCK, AFTER_CLOCK, taken),
    ):
        this_round = position.phase in phases and len(position.spaces[action])
        most = max(position.round - 1, 0) + this_round
        reason = (
            f"{count} were taken; allowed up to round {position.round}, phase "
            f"{position.phase.name}: {most}, at most one per round"
        )
        yield count <= most, field, reason


def _check_deliveries(position: Position, rules: Rules) -> Checks:
    """Deliveries take markers and buses; last deliveries have an order (R17, R20)."""
    for seat, made in enumerate(position.deliveries):
        markers, buses = rules.action_markers - position.action_markers[seat], position.buses[seat]
        reason = f"allowed: at most {markers * buses}, for {markers} markers used and {buses} buses"
        yield made <= markers * buses, f"deliveries[{seat}]", reason
    order = position.delivery_order
    ranks = [rank for rank, made in zip(order, position.deliveries, strict=True) if made]
    reason = (
        f"but deliveries are {position.deliveries}; allowed: 1, 2, ... once each for the seats "
        "with deliveries, 0 for the others"
    )
    yield (
        sorted(ranks) == list(range(1, len(ranks) + 1)) and sum(order) == sum(ranks),
        "delivery_order",
        reason,
    )


def _check_lines(position: Position, board: Board) -> Checks:
    """Each line is a trail between its ends that begins and ends with its arrivals (R8, R11)."""
    for seat, streets in enumerate(position.streets):
        ends, arrivals = position.line_ends[seat], position.arrivals[seat]
        for field in ("line_ends", "arrivals", "shared_with"):
            reason = f"but streets[{seat}] is {streets}"
            yield bool(getattr(position, field)[seat]) == bool(streets), f"{field}[{seat}]", reason
        for end, street in zip(ends, arrivals, strict=True):
            reason = f"but street {street} is not one of the line's at its end {end}"
            yield street in streets and end in board.streets[street], f"arrivals[{seat}]", reason
        edges = [board.streets[street] for street in streets]
        last = [streets.index(street) for street in arrivals]
        reason = (
            f"these streets form no trail between {ends} that begins and ends with streets "
            f"{arrivals}"
        )
        yield not streets or _is_trail(edges, ends, last), f"streets[{seat}]", reason


def _check_shared(position: Position, rules: Rules) -> Checks:
    """An end remembers seats on the street by which it moved, if the rules need them (R9a)."""
    for seat, (arrivals, ends) in enumerate(
        zip(position.arrivals, position.shared_with, strict=True)
    ):
        remembers = rules.sharing_again != "always" and len(position.streets[seat]) > 1
        for street, others in zip(arrivals, ends, strict=True):
            on_street = [s for s, line in enumerate(position.streets) if street in line]
            allowed = {*on_street} - {seat} if remembers else set()
            reason = f"allowed at its end by street {street}: some of {sorted(allowed)} (R9a)"
            yield allowed >= {*others}, f"shared_with[{seat}]", reason


def _is_trail(edges: list[tuple[int, int]], ends: list[int], last: list[int]) -> bool:
    """Return whether edges form a trail between two ends with the given edges (indices) at them.

    The other edges must form a trail between the far ends of these two: connected, with an even
    number of edges everywhere but at two different ends (Euler).
    """
    if len(edges) == 1:
        return {*ends} == {*edges[0]}
    if last[0] == last[1]:
        return False
    inner = [sum(edges[i]) - end for i, end in zip(last, ends, strict=True)]
    rest = [edge for i, edge in enumerate(edges) if i not in last]
    odd = {i for edge in rest for i in edge if sum(i in other for other in rest) % 2}
    if odd != ({*inner} if inner[0] != inner[1] else set()):
        return False
    reached, left = {inner[0]}, rest
    while more := [edge for edge in left if reached & {*edge}]:
        reached |= {i for edge in more for i in edge}
        left = [edge for edge in left if edge not in more]
    return not left and inner[1] in reached


def _check_zones(position: Position, board: Board) -> Checks:
    """A zone has buildings only when all lower ones are full (R14)."""
    sites = [*zip(board.sites, position.buildings, strict=True)]
    highest = max((site.zone for site, kind in sites if kind >= 0), default=0)
    for i, (site, kind) in enumerate(sites):
        reason = f"free, in zone {site.zone}, but zone {highest} has a building"
        yield kind >= 0 or site.zone >= highest, f"buildings[{i}]", reason


def _check_phase(position: Position) -> Checks:
    """Phase, round, seat to decide, and whether and how the game has ended (R15, R19)."""
    phase, name, full = position.phase, position.phase.name, -1 not in position.buildings
    reason = f"which does not fit phase {name}; the setup is round 0"
    yield (phase in SETUP) == (position.round == 0), "round", reason
    reason = f"but phase is {name}; -1 means over"
    yield (phase == Phase.OVER) == (position.current_player == -1), "current_player", reason
    stones, ending = position.time_stones_left, "running"
    if phase == Phase.OVER:
        ending = "time_stones" if stones == 0 else "sites" if full else "markers"
        holders = [seat for seat, hand in enumerate(position.action_markers) if hand]
        reason = f"but stones lie on the clock, a site is free and seats {holders} hold markers"
        yield ending != "markers" or len(holders) <= 1, "phase", reason
    reason = f"but by phase, stones, sites and markers it is {ending!r}"
    yield position.ending == ending, "ending", reason
    if phase == Phase.OVER:
        return
    yield stones > 0, "time_stones_left", f"the game ends when none is left, but phase is {name}"
    reason = f"all sites are built on, which ended the game before round {position.round}"
    yield not full or phase not in BEFORE_BUILDINGS or position.round <= 1, "buildings", reason
    reason = f"but first_player is {position.first_player} and round is {position.round}"
    yield (
        position.round > 1 or position.starting_player == position.first_player,
        "starting_player",
        reason,
    )


def _setup_buildings(position: Position) -> tuple[int, int]:
    """Number of buildings, and of those that the setup erects (R2)."""
    sites = len(position.buildings)
    return sites - position.buildings.count(-1), min(2 * position.num_players, sites)


def _check_setup(position: Position) -> Checks:
    """Buildings and lines in their order up to the seat to decide (R2, R3)."""
    phase, seats, first = position.phase, position.num_players, position.first_player
    built, due = _setup_buildings(position)
    turn = (position.current_player - first) % seats  # seats before this one
    lines = [len(position.streets[(first + i) % seats]) for i in range(seats)]
    if phase == Phase.SETUP_BUILDINGS:
        fits = built < due and turn == built // 2 and not any(lines)
    elif phase == Phase.SETUP_FIRST_LINE:
        fits = built == due and lines == [1] * turn + [0] * (seats - turn)
    else:
        fits = built == due and lines == [1] * (turn + 1) + [2] * (seats - turn - 1)
    reason = (
        f"in phase {phase.name}, first_player {first}, with {built} buildings and lines of "
        f"{[len(streets) for streets in position.streets]} streets by seat; the setup goes once "
        "round the table with each (R2, R3)"
    )
    yield fits, "current_player", reason
    reason = f"but {built} of {due} first buildings are erected"
    yield (
        position.power == (2 - built % 2 if phase == Phase.SETUP_BUILDINGS else 0),
        "power",
        reason,
    )
    yield not any(position.spaces), "spaces", f"but phase is {phase.name}"


def _check_after_setup(position: Position, board: Board) -> Checks:
    """The setup is complete, and at least two seats had markers for this round (R19)."""
    built, due = _setup_buildings(position)
    yield built >= due, "buildings", f"but {due} were erected in the setup (R2)"
    for seat, streets in enumerate(position.streets):
        reason = "but the setup gave two to every line (R3)"
        yield len(streets) >= min(2, len(board.streets)), f"streets[{seat}]", reason
    able = [s for s, n in enumerate(position.action_markers) if n + position.placed[s]]
    reason = (
        f"only seats {able} had action markers when round {position.round} began; a round requires "
        "two such seats (R19)"
    )
    yield position.phase == Phase.OVER or len(able) >= 2, "action_markers", reason


def _has_open_space(position: Position, rules: Rules) -> bool:
    return any(len(position.spaces[action]) < rules.spaces_of(action) for action in BoardAction)


def _check_selection(position: Position, rules: Rules) -> Checks:
    """Markers were placed one at a time in turn, and passes were allowed (R4)."""
    seats, seat, start = position.num_players, position.current_player, position.starting_player
    yield seat in position.choosing, "choosing", f"but current_player is {seat}"
    yield _has_open_space(position, rules), "spaces", "all are taken, which ends the selection"
    for other, hand in enumerate(position.action_markers):
        placed, still = position.placed[other], other in position.choosing
        earlier = (other - start) % seats < (seat - start) % seats
        turns = position.placed[seat] + earlier
        if still:
            fits = hand > 0 and placed == turns
        elif hand:  # passed, in a turn of its own
            fits = 2 <= placed < turns
        else:
            fits = placed <= turns
        reason = (
            f"with {placed} on spaces and {'still' if still else 'no longer'} choosing; turns so "
            f"far in this round: {turns}"
        )
        yield fits, f"action_markers[{other}]", reason


def _check_selected(position: Position, rules: Rules) -> Checks:
    """No seat selects, and after the setup no seat still had to (R4)."""
    yield not position.choosing, "choosing", f"but phase is {position.phase.name}"
    if position.phase in SETUP or not _has_open_space(position, rules):
        return
    for seat, hand in enumerate(position.action_markers):
        placed = position.placed[seat]
        reason = f"with {placed} on spaces; a seat must place two before it may pass (R4)"
        yield not hand or placed >= 2, f"action_markers[{seat}]", reason


def _check_resolution(position: Position, rules: Rules) -> Checks:
    """The marker that is resolved, and the power left of it (R6, R7)."""
    phase, name, resolving = position.phase, position.phase.name, position.resolving
    action = RESOLVED_IN.get(phase)
    if action is None:
        reason = f"but phase is {name}; -1 means that no marker is resolved"
        yield resolving == -1, "resolving", reason
        powerless = phase in SETUP or not position.power
        yield powerless, "power", f"but phase is {name}; allowed: 0"
        return
    owners = position.spaces[action]
    reason = f"but spaces[{action.value}] is {owners}"
    yield resolving in range(len(owners)), "resolving", reason
    seat = owners[resolving]
    reason = f"but the marker of seat {seat} is resolved"
    yield position.current_player == seat, "current_player", reason
    least, most = _power_limits(position, rules)
    allowed = f"{least} to {most}" if least <= most else "none; such a marker does nothing"
    reason = f"in phase {name} on space {resolving}; allowed: {allowed}"
    yield least <= position.power <= most, "power", reason
    arrivals_left = position.supply > 0 or phase != Phase.PASSENGERS
    yield arrivals_left, "supply", f"no passenger is left, but phase is {name}"
    site_left = -1 in position.buildings or phase != Phase.BUILDINGS
    yield site_left, "buildings", f"no site is free, but phase is {name}"


def _power_limits(position: Position, rules: Rules) -> tuple[int, int]:
    """The least and the most power that the marker being resolved may have left (R7)."""
    phase = position.phase
    if phase == Phase.CLOCK:
        return 0, 0
    if phase in DRIVING:
        return 1, position.buses[position.current_player]
    power = rules.power(
        RESOLVED_IN[phase],
        num_players=position.num_players,
        most_buses=max(position.buses),
        space=position.resolving,
    )
    return max(power, 1) if phase == Phase.PASSENGERS else 1, power


def _check_waiting(position: Position, board: Board) -> Checks:
    """Waiting passengers and free buildings (R16), of which the seat to decide has some (R17)."""
    values = dict(zip(("waiting", "vacant"), waiting_and_vacant(position, board), strict=True))
    for field, value in values.items():
        reason = f"but by phase, clock, passengers and buildings it is {value}"
        yield getattr(position, field) == value, field, reason
    if position.phase not in DRIVING:
        return
    seat = position.current_player
    line = {i for street in position.streets[seat] for i in board.streets[street]}
    for field, value in values.items():
        needed = field == "vacant" or position.phase == Phase.PICK_UP
        reason = f"none is on the line of seat {seat} (R17)"
        yield not needed or bool(line & {*value}), field, reason
