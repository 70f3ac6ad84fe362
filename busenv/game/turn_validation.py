"""Whose turn a position says it is, and why: phase, round, markers chosen and resolved."""

from __future__ import annotations

from typing import NoReturn

from busenv.error_text import quote
from busenv.errors import PositionError
from busenv.game.actions import RESOLVED_IN, BoardAction, Phase
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules

SETUP = (Phase.SETUP_BUILDINGS, Phase.SETUP_FIRST_LINE, Phase.SETUP_SECOND_LINE)
DRIVING = (Phase.PICK_UP, Phase.SET_DOWN)
BEFORE_BUILDINGS = (Phase.SELECT_ACTIONS, Phase.LINE_EXPANSION, Phase.PASSENGERS)


def refuse(field: str, value: object, why: str) -> NoReturn:
    """PositionError for a field that cannot be so."""
    raise PositionError(f"position: {field} is {quote(value)}; {why}")


def check_turn(position: Position, board: Board, rules: Rules) -> None:
    """PositionError when phase, round, seat to decide and markers do not fit together."""
    _check_phase(position)
    if position.phase in SETUP:
        _check_setup(position)
    else:
        _check_after_setup(position, board)
    if position.phase == Phase.SELECT_ACTIONS:
        _check_choosing(position, rules)
    else:
        _check_chosen(position, rules)
    _check_resolving(position)
    _check_waiting(position, board)


def waiting_and_vacant(position: Position, board: Board) -> tuple[list[int], list[int]]:
    """Intersections with a waiting passenger, and with a free building, while Vrrooomm! is resolved
    (R16); none in another phase."""
    if position.phase not in DRIVING:
        return [], []
    spare = list(position.passengers)  # passengers less matching buildings
    for site, kind in zip(board.sites, position.buildings, strict=True):
        spare[site.intersection] -= kind == position.clock
    places = range(len(spare))
    return [i for i in places if spare[i] > 0], [i for i in places if spare[i] < 0]


def _check_phase(position: Position) -> None:
    """Phase, round, whose turn it is, whether the game has ended, and how (R15, R19)."""
    phase, name = position.phase, position.phase.name
    if (phase in SETUP) != (position.round == 0):
        refuse("round", position.round, f"which does not fit phase {name}; the set-up is round 0")
    if (phase == Phase.OVER) != (position.current_player == -1):
        refuse("current_player", position.current_player, f"but phase is {name}; -1 means over")
    ending = _ending(position) if phase == Phase.OVER else "running"
    if position.ending != ending:
        refuse(
            "ending", position.ending, f"but by phase, stones, sites and markers it is {ending!r}"
        )
    if phase != Phase.OVER:
        _check_goes_on(position)


def _ending(position: Position) -> str:
    """How a game that is over ended, by what lies on the table."""
    if position.time_stones_left == 0:
        return "time_stones"
    if -1 not in position.buildings:
        return "sites"
    holders = [seat for seat, hand in enumerate(position.action_markers) if hand]
    if len(holders) > 1:
        refuse(
            "phase",
            position.phase.name,
            f"but stones lie on the clock, a site is free and seats {holders} hold markers",
        )
    return "markers"


def _check_goes_on(position: Position) -> None:
    """Nothing has ended the game, and the first to start starts the first round."""
    phase, name = position.phase, position.phase.name
    if position.time_stones_left == 0:
        refuse("time_stones_left", 0, f"which ends the game, but phase is {name}")
    if phase in BEFORE_BUILDINGS and position.round > 1 and -1 not in position.buildings:
        refuse(
            "buildings",
            position.buildings,
            f"all sites are built on, which ended the game before round {position.round}",
        )
    if position.round <= 1 and position.starting_player != position.first_player:
        refuse(
            "starting_player",
            position.starting_player,
            f"but first_player is {position.first_player} and round is {position.round}",
        )


def _check_setup(position: Position) -> None:
    """Buildings and lines in their order, as far as the seat to decide says (R2, R3)."""
    phase, seats = position.phase, position.num_players
    built, due = _built_and_due(position)
    turn = (position.current_player - position.first_player) % seats  # seats before this one
    lines = [len(position.streets[(position.first_player + i) % seats]) for i in range(seats)]
    if phase == Phase.SETUP_BUILDINGS:
        fits = built < due and turn == built // 2 and not any(lines)
    elif phase == Phase.SETUP_FIRST_LINE:
        fits = built == due and lines == [1] * turn + [0] * (seats - turn)
    else:
        fits = built == due and lines == [1] * (turn + 1) + [2] * (seats - turn - 1)
    if not fits:
        refuse(
            "current_player",
            position.current_player,
            f"in phase {phase.name}, first_player {position.first_player}, with {built} buildings "
            f"and lines of {[len(streets) for streets in position.streets]} streets by seat; "
            "the set-up goes once round the table with each (R2, R3)",
        )
    if position.power != (2 - built % 2 if phase == Phase.SETUP_BUILDINGS else 0):
        refuse("power", position.power, f"but {built} of {due} first buildings stand")
    if any(position.spaces):
        refuse("spaces", position.spaces, f"but phase is {phase.name}")


def _built_and_due(position: Position) -> tuple[int, int]:
    """How many buildings stand, and how many the set-up erects (R2)."""
    sites = len(position.buildings)
    return sites - position.buildings.count(-1), min(2 * position.num_players, sites)


def _check_after_setup(position: Position, board: Board) -> None:
    """The set-up has been played, and at least two can go on."""
    built, due = _built_and_due(position)
    if built < due:
        refuse("buildings", position.buildings, f"but {due} were erected in the set-up (R2)")
    for seat, streets in enumerate(position.streets):
        if len(streets) < min(2, len(board.streets)):
            refuse(f"streets[{seat}]", streets, "but the set-up gave two to every line (R3)")
    able = [s for s, n in enumerate(position.action_markers) if n + position.placed[s]]
    if position.phase != Phase.OVER and len(able) < 2:
        refuse(
            "action_markers",
            position.action_markers,
            f"only seats {able} had one when round {position.round} began, which takes two (R19)",
        )


def _check_choosing(position: Position, rules: Rules) -> None:
    """Markers have been placed one at a time in turn, and passes were allowed (R4)."""
    seats, seat = range(position.num_players), position.current_player
    if seat not in position.choosing:
        refuse("choosing", position.choosing, f"but current_player is {seat}")
    if not _open(position, rules):
        refuse("spaces", position.spaces, "all are taken, so nobody chooses any more")
    cycle = position.placed[seat]
    before = (seat - position.starting_player) % position.num_players
    for other in seats:
        placed, hand = position.placed[other], position.action_markers[other]
        turns = cycle + ((other - position.starting_player) % position.num_players < before)
        if other in position.choosing:
            fits = hand > 0 and placed == turns
        elif hand:  # passed, in a turn of its own
            fits = 2 <= placed < turns
        else:
            fits = placed <= turns
        if not fits:
            refuse(
                f"action_markers[{other}]",
                hand,
                f"and {placed} on spaces, {'still' if other in position.choosing else 'no longer'} "
                f"choosing; its turns in this round: {turns}",
            )


def _check_chosen(position: Position, rules: Rules) -> None:
    """Nobody chooses now, and outside of the set-up nobody had to go on choosing (R4)."""
    if position.choosing:
        refuse("choosing", position.choosing, f"but phase is {position.phase.name}")
    if position.phase in SETUP or not _open(position, rules):
        return
    for seat, hand in enumerate(position.action_markers):
        if hand and position.placed[seat] < 2:
            refuse(
                f"action_markers[{seat}]",
                hand,
                f"and {position.placed[seat]} on spaces, but one places two before passing (R4)",
            )


def _open(position: Position, rules: Rules) -> bool:
    """Whether any action has a space left."""
    return any(len(position.spaces[action]) < rules.spaces_of(action) for action in BoardAction)


def _check_resolving(position: Position) -> None:
    """Whose marker is being resolved, and what is left of it (R6, R7)."""
    phase, name, resolving = position.phase, position.phase.name, position.resolving
    action = RESOLVED_IN.get(phase)
    if action is None:
        if resolving != -1:
            refuse("resolving", resolving, f"but phase is {name}; -1 means no marker is")
        if position.power and phase not in SETUP:
            refuse("power", position.power, f"but phase is {name}; allowed: 0")
        return
    owners = position.spaces[action]
    if resolving not in range(len(owners)):
        refuse("resolving", resolving, f"but spaces[{action.value}] is {owners}")
    seat = owners[resolving]
    if position.current_player != seat:
        refuse("current_player", position.current_player, f"but seat {seat}'s marker is resolved")
    least, most = _power_limits(position)
    if not least <= position.power <= most:
        allowed = f"{least} to {most}" if least <= most else "none; such a marker does nothing"
        refuse("power", position.power, f"in phase {name} on space {resolving}; allowed: {allowed}")
    if phase == Phase.PASSENGERS and not position.supply:
        refuse("supply", 0, f"nobody is left to arrive, but phase is {name}")
    if phase == Phase.BUILDINGS and -1 not in position.buildings:
        refuse("buildings", position.buildings, f"no site is free, but phase is {name}")


def _power_limits(position: Position) -> tuple[int, int]:
    """The least and the most that may be left of the marker that is being resolved (R7)."""
    phase = position.phase
    if phase == Phase.CLOCK:
        return 0, 0
    if phase in DRIVING:
        return 1, position.buses[position.current_player]
    power = max(position.buses) - position.resolving
    if phase == Phase.LINE_EXPANSION and position.num_players == 5:
        power += 1
    return max(power, 1) if phase == Phase.PASSENGERS else 1, power


def _check_waiting(position: Position, board: Board) -> None:
    """Who waits and what is free (R16), and that the seat to decide can carry somebody (R17)."""
    waiting, vacant = waiting_and_vacant(position, board)
    for field, value in (("waiting", waiting), ("vacant", vacant)):
        if getattr(position, field) != value:
            refuse(
                field,
                getattr(position, field),
                f"but by phase, clock, passengers and buildings it is {value}",
            )
    if position.phase not in DRIVING:
        return
    line = {i for s in position.streets[position.current_player] for i in board.streets[s]}
    needed = {"waiting": waiting, "vacant": vacant}
    if position.phase == Phase.SET_DOWN:
        del needed["waiting"]
    for field, value in needed.items():
        if not line & {*value}:
            refuse(field, value, f"none is on the line of seat {position.current_player} (R17)")
