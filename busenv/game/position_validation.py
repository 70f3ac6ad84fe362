"""Whether a position can be: nothing in it contradicts the rest, the board or the rules.

What is judged is what lies on the table, not whether play could have brought it there: the clock
may point anywhere, and lines may lie beside others however they got there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from busenv.core.state import NO_LIMIT
from busenv.errors import PositionError
from busenv.game.actions import BoardAction, Phase
from busenv.game.board import Board
from busenv.game.position import ENDINGS, Position
from busenv.game.rules import Rules, check_players
from busenv.game.turn_validation import check_turn, refuse

MAX_DELIVERIES = 10_000  # by a seat; far beyond any game, and all seats' together fit the state


def check_position(position: Position, board: Board, rules: Rules) -> None:
    """PositionError, naming the field and what contradicts it, when a position cannot be."""
    _check_values(position, board, rules)
    _check_markers(position, rules)
    _check_common_pieces(position, rules)
    _check_deliveries(position, rules)
    _check_lines(position, board)
    _check_zones(position, board)
    check_turn(position, board, rules)


def _check_values(position: Position, board: Board, rules: Rules) -> None:
    """Every field is of its kind and within the range that board and rules allow."""
    try:
        seats = check_players(position.num_players)
    except ValueError as error:
        raise PositionError(f"position: {error}") from error
    stones, places = rules.stones_for(seats), len(board.intersections)
    if not isinstance(position.phase, Phase):
        refuse("phase", position.phase, "allowed: a busenv.Phase")
    if position.ending not in ENDINGS:
        refuse("ending", position.ending, f"allowed: {ENDINGS}")
    for field, low, high in (
        # A round takes a marker of everybody who has one, and needs two who have.
        ("round", 0, rules.action_markers),
        ("current_player", -1, seats - 1),
        ("first_player", 0, seats - 1),
        ("starting_player", 0, seats - 1),
        ("resolving", -1, rules.spaces - 1),
        ("power", 0, rules.bus_limit + 1),
        ("clock", 0, 2),
        ("time_stones_left", 0, stones),
        ("supply", 0, rules.passengers),
    ):
        _check_number(field, getattr(position, field), low, high)
    for field, length, low, high in (
        ("action_markers", seats, 0, rules.action_markers),
        ("buses", seats, 1, rules.bus_limit),
        ("deliveries", seats, 0, MAX_DELIVERIES),
        ("time_stones", seats, 0, stones),
        ("delivery_order", seats, 0, seats),
        ("passengers", places, 0, rules.passengers),
        ("buildings", len(board.sites), -1, 2),
    ):
        _check_list(field, getattr(position, field), [length])
        for i, value in enumerate(getattr(position, field)):
            _check_number(f"{field}[{i}]", value, low, high)
    _check_list("line_markers", position.line_markers, [seats])
    for seat, left in enumerate(position.line_markers):
        if left is not None:
            _check_number(f"line_markers[{seat}]", left, 0, NO_LIMIT)
    for field, high in (("choosing", seats), ("waiting", places), ("vacant", places)):
        _check_set(field, getattr(position, field), high)
    for field, check in (
        ("streets", lambda name, ids: _check_set(name, ids, len(board.streets))),
        ("line_ends", lambda name, ids: _check_pair(name, ids, places)),
        ("arrivals", lambda name, ids: _check_pair(name, ids, len(board.streets))),
    ):
        _check_each(field, getattr(position, field), seats, check)
    _check_list("spaces", position.spaces, [len(BoardAction)])
    for action in BoardAction:
        owners, name = position.spaces[action], f"spaces[{action.value}]"
        _check_list(name, owners, range(rules.spaces_of(action) + 1))
        for seat in owners:
            _check_number(f"an entry of {name}", seat, 0, seats - 1)


def _check_number(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        refuse(name, value, f"allowed: a whole number {low} to {high}")


def _check_list(name: str, value: object, lengths: Iterable[int]) -> None:
    if not isinstance(value, list) or len(value) not in lengths:
        allowed = " or ".join(map(str, lengths))
        refuse(name, value, f"allowed: a list of {allowed} entries")


def _check_set(name: str, value: Any, count: int) -> None:
    _check_list(name, value, range(count + 1))
    for entry in value:
        _check_number(f"an entry of {name}", entry, 0, count - 1)
    if value != sorted(set(value)):
        refuse(name, value, "allowed: each entry once, ascending")


def _check_pair(name: str, value: Any, count: int) -> None:
    _check_list(name, value, [0, 2])
    for entry in value:
        _check_number(f"an entry of {name}", entry, 0, count - 1)


def _check_each(field: str, value: Any, length: int, check: Callable[[str, Any], None]) -> None:
    _check_list(field, value, [length])
    for i, entry in enumerate(value):
        check(f"{field}[{i}]", entry)


def _check_markers(position: Position, rules: Rules) -> None:
    """Action markers in hand and on spaces, line markers left and on streets."""
    for seat, hand in enumerate(position.action_markers):
        placed = position.placed[seat]
        spent = rules.action_markers - hand - placed  # in earlier rounds
        if spent < position.round - 1 or spent < 0:
            refuse(
                f"action_markers[{seat}]",
                hand,
                f"and {placed} on spaces, of {rules.action_markers}; whoever has one places one a "
                f"round, and this is round {position.round}",
            )
        if position.round <= 1 and spent:
            refuse(
                f"action_markers[{seat}]",
                hand,
                f"and {placed} lie on spaces; before round 2 these are all {rules.action_markers}",
            )
    given = rules.line_markers or [None] * position.num_players
    for seat, left in enumerate(position.line_markers):
        used, markers = len(position.streets[seat]), given[seat]
        expected = None if markers is None else markers - used
        if left != expected:
            refuse(
                f"line_markers[{seat}]",
                left,
                f"but {used} of {'unlimited' if markers is None else markers} lie on streets",
            )


# Phases in which this round's bus, or time stone, may have been taken already (R6).
CLOCK_DONE = (Phase.PICK_UP, Phase.SET_DOWN, Phase.OVER)
BUSES_DONE = (Phase.PASSENGERS, Phase.BUILDINGS, Phase.CLOCK, *CLOCK_DONE)


def _check_common_pieces(position: Position, rules: Rules) -> None:
    """Passengers, time stones, and what there is one of a round: a bus, a stone."""
    in_city, in_bus = sum(position.passengers), int(position.phase == Phase.SET_DOWN)
    if in_city + in_bus + position.supply != rules.passengers:
        refuse(
            "supply",
            position.supply,
            f"with {in_city} passengers in the city and {in_bus} in a bus; "
            f"{rules.passengers} in all",
        )
    taken, all_stones = sum(position.time_stones), rules.stones_for(position.num_players)
    if taken + position.time_stones_left != all_stones:
        refuse(
            "time_stones_left",
            position.time_stones_left,
            f"and {taken} are taken; {all_stones} in all",
        )
    before = max(position.round - 1, 0)
    for field, action, phases, count in (
        ("buses", BoardAction.BUSES, BUSES_DONE, sum(position.buses) - position.num_players),
        ("time_stones", BoardAction.CLOCK, CLOCK_DONE, taken),
    ):
        this_round = position.phase in phases and len(position.spaces[action])
        if count > before + this_round:
            refuse(
                field,
                getattr(position, field),
                f"{count} were taken, one a round at most, but {before + this_round} could be so "
                f"far: round is {position.round}, phase {position.phase.name}",
            )


def _check_deliveries(position: Position, rules: Rules) -> None:
    """Deliveries take markers and buses; the last ones were made in some order (R17, R20)."""
    for seat, made in enumerate(position.deliveries):
        markers = rules.action_markers - position.action_markers[seat]
        if made > markers * position.buses[seat]:
            refuse(
                f"deliveries[{seat}]",
                made,
                f"more than {markers} markers and {position.buses[seat]} buses can make",
            )
    order = position.delivery_order
    given = [place for place, made in zip(order, position.deliveries, strict=True) if made]
    if sorted(given) != list(range(1, len(given) + 1)) or sum(order) != sum(given):
        refuse(
            "delivery_order",
            order,
            f"but deliveries are {position.deliveries}; allowed: 1, 2, ... once each for the seats "
            "with deliveries, 0 for the others",
        )


def _check_lines(position: Position, board: Board) -> None:
    """Each line is a trail between its ends that begins and ends by its arrivals (R8, R11)."""
    for seat, streets in enumerate(position.streets):
        ends, arrivals = position.line_ends[seat], position.arrivals[seat]
        for field, value in (("line_ends", ends), ("arrivals", arrivals)):
            if bool(value) != bool(streets):
                refuse(f"{field}[{seat}]", value, f"but streets[{seat}] is {streets}")
        for end, street in zip(ends, arrivals, strict=True):
            if street not in streets or end not in board.streets[street]:
                refuse(
                    f"arrivals[{seat}]",
                    arrivals,
                    f"but street {street} is none of the line's that touches its end {end}",
                )
        if streets and not _is_trail(
            [board.streets[s] for s in streets],
            ends,
            [streets.index(street) for street in arrivals],
        ):
            refuse(
                f"streets[{seat}]",
                streets,
                f"no trail over each of them once that runs between {ends} by streets {arrivals}",
            )


def _is_trail(edges: list[tuple[int, int]], ends: list[int], last: list[int]) -> bool:
    """Whether edges make a trail from one end to the other that has the given edges at its ends.

    What is left without these two must be a trail between where they lead: connected, with an even
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


def _check_zones(position: Position, board: Board) -> None:
    """Nothing is built in a zone before all lower ones are full (R14)."""
    built = [
        site.zone for site, kind in zip(board.sites, position.buildings, strict=True) if kind >= 0
    ]
    for i, (site, kind) in enumerate(zip(board.sites, position.buildings, strict=True)):
        if kind < 0 and site.zone < max(built, default=0):
            refuse(
                f"buildings[{i}]",
                kind,
                f"free, in zone {site.zone}, but zone {max(built)} is already built in",
            )
