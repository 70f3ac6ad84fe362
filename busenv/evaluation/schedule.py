"""The balanced schedule of a rating: line-ups, seats and first players."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from math import comb, lcm
from typing import Any

import numpy as np

import busenv
from busenv.agents.match import circular_orders, seat_line_up
from busenv.common.runs import RunError
from busenv.game.board import Board
from busenv.game.board_specs import GeneratedBoards, load_boards
from busenv.game.rules import Rules, as_rules, check_players
from busenv.validation import check_seed

MAX_LINE_UPS = 10_000
LineUp = tuple[int, ...]  # number of the entrant for each seat


@dataclass(frozen=True)
class Schedule:
    """The settings of a rating, which determine all its games.

    agents: specs of the entrants (`busenv.agents.make_agent`); a spec may occur several times.
    players: 3, 4 or 5.
    games: requested number; `total` games are played, in whole balanced blocks.
    seed: 0 to 2**64 - 1.
    rules: name of an edition, a JSON file of rules, or rules (`busenv.game.rules.as_rules`).
    against: if given, each of `agents` plays against players - 1 copies of this one; otherwise the
        agents play each other.
    board: name or file of a board, spec of a set of generated boards, or a board or such a set.
        The games take the boards of a set in turn.

    Files of rules and board are read when the schedule is made, and are sent with it to other
    processes.
    """

    agents: tuple[str, ...]
    players: int = 4
    games: int = 1000
    seed: int = 0
    rules: str | Rules = "capstone-2024"
    against: str | None = None
    board: str | Board | GeneratedBoards = "city"

    def __post_init__(self) -> None:
        check_players(self.players)
        check_seed(self.seed)
        if self.games < 1:
            raise RunError(f"games is {self.games!r}; allowed: 1 or more")
        if len(self.specs) < 2:
            raise RunError("a rating needs two agents: add a second agent, or --against AGENT")
        line_ups = comb(len(self.agents), self.players) if self.against is None else 0
        if line_ups > MAX_LINE_UPS:
            raise RunError(
                f"{len(self.agents)} agents have {line_ups:,} line-ups of {self.players}, of which "
                f"{MAX_LINE_UPS:,} are allowed; rate fewer agents, or each --against one"
            )
        _ = self.loaded_rules, self.loaded_boards  # reads the files

    @cached_property
    def loaded_rules(self) -> Rules:
        """The rules that `rules` names."""
        return as_rules(self.rules)

    @cached_property
    def loaded_boards(self) -> Board | GeneratedBoards:
        """The board or the set of boards that `board` names."""
        return load_boards(self.board) if isinstance(self.board, str) else self.board

    @property
    def sample_boards(self) -> list[Board]:
        """The board, or the first and the last board of each size in a set."""
        boards = self.loaded_boards
        if isinstance(boards, Board):
            return [boards]
        sizes = min(len(boards.sizes), len(boards))
        return [boards[k] for k in (*range(sizes), *range(-sizes, 0))]

    @cached_property
    def specs(self) -> tuple[str, ...]:
        """The entrants' specs, by number."""
        return self.agents if self.against is None else (*self.agents, self.against)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The entrants' names in tables: the spec, with #2, #3 ... for repeated ones."""
        counts = [self.specs[: k + 1].count(spec) for k, spec in enumerate(self.specs)]
        return tuple(
            spec if count == 1 else f"{spec}#{count}"
            for spec, count in zip(self.specs, counts, strict=True)
        )

    @cached_property
    def line_ups(self) -> list[LineUp]:
        """The line-ups of a block."""
        entrants = len(self.agents)  # also the number of the entrant `against`
        if self.against is None:
            return round_robin(entrants, self.players)
        return [(k, *[entrants] * (self.players - 1)) for k in range(entrants)]

    @property
    def seat_block(self) -> int:
        """Games in which every entrant has every seat and every turn equally often."""
        return len(self.line_ups) * self.players**2

    @cached_property
    def full_block(self) -> int:
        """Games in which the neighbours are balanced too: all circular orders of each line-up."""
        return self.seat_block * lcm(*(len(circular_orders(line_up)) for line_up in self.line_ups))

    @property
    def block(self) -> int:
        """The full block if it adds at most half to the requested games, else the seat block."""
        full = -(-self.games // self.full_block) * self.full_block
        return self.full_block if full <= 1.5 * self.games else self.seat_block

    @property
    def total(self) -> int:
        """Games to play: `games` rounded up to whole blocks."""
        return -(-self.games // self.block) * self.block

    @property
    def balance(self) -> str:
        """A sentence that names what the games balance: seats, turns and neighbours."""
        if self.total % self.full_block:
            return (
                "Seats and turns are balanced, neighbours are not: they would be in a multiple of "
                f"{self.full_block:,} games."
            )
        return "Seats, turns and neighbours are balanced."

    def seating(self, number: int) -> tuple[LineUp, int]:
        """Return the entrant by seat, and the first player, of a game.

        The line-ups alternate. Each is seated by `busenv.agents.match.seat_line_up`.
        """
        turn, index = divmod(number, len(self.line_ups))
        seats, first = seat_line_up(self.line_ups[index], np.array([turn]), shift=index)
        return tuple(seats[0].tolist()), int(first[0])

    def board_of(self, number: int) -> Board:
        """Return the board of a game.

        On each visit to a board of a set, every line-up plays one game with each rotation of its
        seats, all with the same first player. The first player of a board changes from visit to
        visit.
        """
        boards = self.loaded_boards
        if isinstance(boards, Board):
            return boards
        visit = number // (len(self.line_ups) * self.players)
        period = lcm(self.players, len(boards))  # of boards and first players, if neither shifts
        return boards[(visit + visit // period) % len(boards)]

    @property
    def num_boards(self) -> int:
        """The number of boards that the games use: fewer than the set's if there are few games."""
        boards = self.loaded_boards
        visits = self.total // (len(self.line_ups) * self.players)
        return 1 if isinstance(boards, Board) else min(len(boards), visits)

    def settings(self) -> dict[str, Any]:
        """Return the schedule as JSON values, with the version and the content of its files."""
        return {
            "busenv": busenv.__version__,
            **asdict(self),
            "agents": list(self.agents),
            "rules": {"from": source_name(self.rules), **self.loaded_rules.to_dict()},
            "board": {
                "from": source_name(self.board),
                "fingerprint": self.loaded_boards.fingerprint,
            },
        }


def source_name(source: str | Rules | Board | GeneratedBoards) -> str:
    """Return what names rules or a board: their spec, or their own name."""
    return source if isinstance(source, str) else source.name


def round_robin(entrants: int, players: int) -> list[LineUp]:
    """Return all line-ups with as many different entrants as possible.

    With fewer entrants than seats, every entrant is in every line-up and the other seats are filled
    in all ways: with two entrants and four seats 1 + 3, 2 + 2 and 3 + 1.
    """
    if entrants >= players:
        return list(combinations(range(entrants), players))
    line_ups = combinations_with_replacement(range(entrants), players)
    return [line_up for line_up in line_ups if len(set(line_up)) == entrants]
