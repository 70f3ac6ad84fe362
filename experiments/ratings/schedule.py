"""Who plays whom, where each sits and who starts: the balanced design of a rating."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement, permutations
from typing import Any

import busenv
from busenv.experiments.common.runs import RunError
from busenv.game.board import Board, load_board
from busenv.game.rules import Rules, as_rules, check_players
from busenv.validation import check_seed

LineUp = tuple[int, ...]  # entrants, by number; one entry a seat


@dataclass(frozen=True)
class Schedule:
    """All that decides the games of a rating; game `number` depends on nothing else.

    agents: specs (`busenv.agents.make_agent`) of the entrants; a spec may be there more than once.
    players: 3, 4 or 5.
    games: as many as were asked for; `total` are played, in whole balanced blocks.
    seed: 0 to 2**64 - 1.
    rules: name of an edition, or a JSON file of rules (`busenv.game.rules.as_rules`).
    against: if given, each of `agents` plays by itself against players - 1 copies of this one;
        otherwise all play all.
    board: name or file of a board. Files of rules and boards are read once, when a schedule is made:
        it takes them along to other processes, and its settings hold what was in them.
    """

    agents: tuple[str, ...]
    players: int = 4
    games: int = 1000
    seed: int = 0
    rules: str = "capstone-2024"
    against: str | None = None
    board: str = "city"

    def __post_init__(self) -> None:
        check_players(self.players)
        check_seed(self.seed)
        if self.games < 1:
            raise RunError(f"games is {self.games!r}; allowed: 1 or more")
        if len(self.specs) < 2:
            raise RunError(
                "a rating needs two agents or more; allowed: a second one, or --against AGENT"
            )
        _ = self.loaded_rules, self.loaded_board  # now, so that they are what is pickled

    @cached_property
    def loaded_rules(self) -> Rules:
        """What `rules` names."""
        return as_rules(self.rules)

    @cached_property
    def loaded_board(self) -> Board:
        """What `board` names."""
        return load_board(self.board)

    @cached_property
    def specs(self) -> tuple[str, ...]:
        """The entrants' specs, by number."""
        return self.agents if self.against is None else (*self.agents, self.against)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The entrants' names in tables: the spec, with #2, #3 ... from its second time on."""
        times = [self.specs[: k + 1].count(spec) for k, spec in enumerate(self.specs)]
        return tuple(
            spec if time == 1 else f"{spec}#{time}"
            for spec, time in zip(self.specs, times, strict=True)
        )

    @cached_property
    def line_ups(self) -> list[LineUp]:
        """The line-ups of a block."""
        if self.against is None:
            return all_play_all(len(self.agents), self.players)
        return all_against(len(self.agents), self.players)

    @property
    def block(self) -> int:
        """Games after which every entrant has sat everywhere and started equally often."""
        return len(self.line_ups) * self.players**2

    @property
    def total(self) -> int:
        """Games to play: `games`, rounded up to whole blocks."""
        return -(-self.games // self.block) * self.block

    def seating(self, number: int) -> tuple[LineUp, int]:
        """Entrant by seat, and the first player, of a game."""
        return seating(self.line_ups, number)

    def settings(self) -> dict[str, Any]:
        """The schedule as plain JSON values, with what else the games depend on."""
        return {
            "busenv": busenv.__version__,
            **asdict(self),
            "agents": list(self.agents),
            "rules": {"from": self.rules, **self.loaded_rules.to_dict()},
            "board": {"from": self.board, "fingerprint": self.loaded_board.fingerprint},
        }


def all_play_all(entrants: int, players: int) -> list[LineUp]:
    """All line-ups of as many different entrants as can sit at one table.

    With fewer entrants than seats everybody sits in every line-up and the other seats are filled
    in every way, so that each line-up has its mirror image: for two entrants and four seats
    1 + 3, 2 + 2 and 3 + 1.
    """
    different = min(entrants, players)
    every = combinations_with_replacement(range(entrants), players)
    return [line_up for line_up in every if len(set(line_up)) == different]


def all_against(entrants: int, players: int) -> list[LineUp]:
    """Each entrant in one seat, and in all others the one whose number comes after the last."""
    return [(k, *[entrants] * (players - 1)) for k in range(entrants)]


def seating(line_ups: list[LineUp], number: int) -> tuple[LineUp, int]:
    """Entrant by seat, and the first player, of a game.

    The line-ups take turns. Over n * n games of a line-up of n, each of its members sits in every
    seat once with every seat starting. The next n * n games seat it in another circular order, its
    mirror image first, so that the neighbours change too.
    """
    turn, index = divmod(number, len(line_ups))
    players = len(line_ups[index])
    orders = circular_orders(line_ups[index])
    order = orders[turn // players**2 % len(orders)]
    seats = tuple(order[(seat - turn) % players] for seat in range(players))
    return seats, turn // players % players


@cache
def circular_orders(line_up: LineUp) -> list[LineUp]:
    """The different ways round a table, each followed by its mirror image."""

    def turned(order: LineUp) -> LineUp:
        return min(order[k:] + order[:k] for k in range(len(order)))

    return list(
        dict.fromkeys(
            turned(order) for ahead in permutations(line_up) for order in (ahead, ahead[::-1])
        )
    )
