"""Position: everything on the table, as plain Python values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from busenv.core.state import NO_LIMIT, NOWHERE, RESOLVED_IN, Phase
from busenv.error_text import quote
from busenv.errors import PositionError
from busenv.game.board import Board

ENDINGS = ("running", "time_stones", "sites", "markers")  # by the core's number
# Fields of positions that hold a field of states: one number, or one for each seat.
NUMBERS = {
    "round": "round", "first_player": "first", "power": "power", "starting_player": "start",
    "clock": "clock", "time_stones_left": "clock_stones", "supply": "supply",
}  # fmt: skip
BY_SEAT = {
    "delivery_order": "delivery_order", "action_markers": "markers", "buses": "buses",
    "deliveries": "deliveries", "time_stones": "stones",
}  # fmt: skip
# Phases of actions that are resolved from A on; the state holds the space after the current one.
ASCENDING = (Phase.PASSENGERS, Phase.PICK_UP, Phase.SET_DOWN)


@dataclass(frozen=True)
class Position:
    """A position of the game. Lists "by seat" have one entry per player.

    `dataclasses.replace` changes one, and `Game.from_position` makes a game that begins in it.

    num_players: 3, 4 or 5 (R1).
    phase: kind of the decision. round: 0 during the setup. current_player: -1 when over.
    first_player: starting player of the first round (R1), which may decide ties (R20).
    ending: one of `ENDINGS`: how the game ended (R15, R19), or "running".
    delivery_order: by seat, order of its last delivery among those of all seats; 1 is the earliest,
        0 without one (R20).
    action_markers: markers in hand, by seat.
    line_markers: line markers left, by seat; None without a limit.
    buses: by seat (R12).
    deliveries, time_stones: by seat (R15, R17).
    streets: street ids under each seat's line, ascending.
    line_ends: by seat, the intersections of the end that moved last and of the other end; empty
        before the first marker (R8, R11).
    arrivals: by seat, the streets by which these two ends arrived (R9).
    shared_with: by seat, for each of these two ends the seats with which it may not share again at
        its intersection, ascending (R9a).
    spaces: for each of the seven actions the seats with markers on its spaces, A first; removed at
        the end of a round, but not of the game.
    choosing: seats that still select actions this round (R4); empty in other phases.
    resolving: index of the space whose marker is resolved (R6), A is 0; -1 without one.
    power: power left of that marker: streets, passengers, buildings, or buses including the
        current one (R7, R17); in the setup, first buildings of the seat; else 0.
    starting_player: seat that started this round (R18).
    clock: 0 house, 1 office, 2 pub (R15).
    time_stones_left: stones on the clock.
    supply: passengers not yet in the city.
    passengers: by intersection; one in a bus (phase SET_DOWN) is not included.
    buildings: by site, 0 house, 1 office, 2 pub, or -1.
    waiting: during Vrrooomm!, intersections with a waiting passenger (R16).
    vacant: during Vrrooomm!, intersections with a free building of the clock's type (R16).
    """

    num_players: int
    phase: Phase
    round: int
    current_player: int
    first_player: int
    ending: str
    delivery_order: list[int]
    action_markers: list[int]
    line_markers: list[int | None]
    buses: list[int]
    deliveries: list[int]
    time_stones: list[int]
    streets: list[list[int]]
    line_ends: list[list[int]]
    arrivals: list[list[int]]
    shared_with: list[list[list[int]]]
    spaces: list[list[int]]
    choosing: list[int]
    resolving: int
    power: int
    starting_player: int
    clock: int
    time_stones_left: int
    supply: int
    passengers: list[int]
    buildings: list[int]
    waiting: list[int]
    vacant: list[int]

    @property
    def points(self) -> list[int]:
        """Deliveries minus time stones, by seat (R20)."""
        return [d - s for d, s in zip(self.deliveries, self.time_stones, strict=True)]

    @property
    def ranking(self) -> list[int]:
        """Rank so far by seat, 0 is the lead (R20)."""

        def standing(seat: int) -> tuple[int, int, int, int]:
            after_first = (seat - self.first_player) % self.num_players
            order = self.delivery_order[seat]
            return -self.points[seat], -self.time_stones[seat], order, after_first

        best_first = sorted(range(self.num_players), key=standing)
        return [best_first.index(seat) for seat in range(self.num_players)]

    @property
    def placed(self) -> list[int]:
        """Action markers on the spaces, by seat."""
        return [
            sum(owners.count(seat) for owners in self.spaces) for seat in range(self.num_players)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values, the phase by its name."""
        return dataclasses.asdict(self) | {"phase": self.phase.name}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Position:
        """Make a position from the value of `to_dict`; only the phase is validated.

        Raises PositionError, which names missing or unknown fields or the phase.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(fields, dict) or set(fields) != names:
            wrong = sorted(names ^ set(fields)) if isinstance(fields, dict) else fields
            raise PositionError(f"position with missing or unknown fields: {quote(wrong)}")
        phase = fields["phase"]
        if not isinstance(phase, str) or phase not in Phase.__members__:
            raise PositionError(
                f"position: phase is {quote(phase)}; allowed: {[*Phase.__members__]}"
            )
        return cls(**{**fields, "phase": Phase[phase]})


def read_position(array: np.ndarray, board: Board) -> Position:
    """Read the position of a state (GAME, (1,)); fields outside of their phases are 0 there."""
    state = array[0]
    phase, seats = Phase(state["phase"]), range(int(state["players"]))

    def by_seat(field: str) -> list[int]:
        return state[field][: len(seats)].tolist()

    begun = [head != NOWHERE for head in by_seat("head")]
    ends = list(zip(by_seat("head"), by_seat("tail"), strict=True))
    arrivals = list(zip(by_seat("head_street"), by_seat("tail_street"), strict=True))
    shared = list(zip(by_seat("head_shared"), by_seat("tail_shared"), strict=True))
    buildings = [-1] * len(board.sites)
    for kind in range(3):
        for site in _members(state["type_sites"][kind]):
            buildings[site] = kind
    plain: dict[str, Any] = {name: int(state[field]) for name, field in NUMBERS.items()}
    plain |= {name: by_seat(field) for name, field in BY_SEAT.items()}
    return Position(
        **plain,
        num_players=len(seats),
        phase=phase,
        current_player=-1 if phase == Phase.OVER else int(state["seat"]),
        ending=ENDINGS[state["ending"]],
        line_markers=[None if left == NO_LIMIT else left for left in by_seat("line_markers")],
        streets=[_members(state["line"][s][0]) + _members(state["line"][s][1], 64) for s in seats],
        line_ends=[list(ends[s]) if begun[s] else [] for s in seats],
        arrivals=[list(arrivals[s]) if begun[s] else [] for s in seats],
        shared_with=[[_members(word) for word in shared[s]] if begun[s] else [] for s in seats],
        spaces=[state["spaces"][a][: state["taken"][a]].tolist() for a in range(7)],
        choosing=_members(state["choosing"]),
        resolving=int(state["space"]) - (phase in ASCENDING) if phase in RESOLVED_IN else -1,
        passengers=state["passengers"][: len(board.intersections)].tolist(),
        buildings=buildings,
        waiting=_members(state["waiting"]),
        vacant=_members(state["vacant"]),
    )


def _members(word: int | np.unsignedinteger, offset: int = 0) -> list[int]:
    """Indices of the set bits, ascending."""
    value = int(word)
    return [offset + i for i in range(value.bit_length()) if value >> i & 1]
