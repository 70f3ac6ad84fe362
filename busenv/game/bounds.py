"""How far a game can go, worked out from the rules: for whoever has to know before it is played."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from busenv.game.board import Board, as_board
from busenv.game.rules import Rules, as_rules, check_players

MULTI, SINGLE = 4, 3  # actions with several spaces, and with one (R5)


def most_rounds(num_players: int = 4, rules: str | Path | Rules = "capstone-2024") -> int:
    """The most rounds that a game can have; every shipped edition: 10.

    A round is begun only while somebody holds markers. Within it each holder places at least two,
    or the last one (R4), when there are spaces for two of everybody: the turns go round, so nobody
    places a third before. With fewer spaces each holder still places one, as there are seven or
    more. Hence before round r nobody holds more than was given at first less 2 (r - 1), or r - 1.
    Arguments and errors as for `busenv.Game`.
    """
    players, rules = check_players(num_players), as_rules(rules)
    two_each = MULTI * rules.spaces + SINGLE >= 2 * players
    return -(-rules.action_markers // 2) if two_each else rules.action_markers


def most_deliveries(num_players: int = 4, rules: str | Path | Rules = "capstone-2024") -> int:
    """A number of deliveries, all seats' together, that no game exceeds.

    Whoever is delivered steps in and does not wait again in that round (R16, R17), so a round
    delivers each passenger once at most; and one for each bus of each space of Vrrooomm!, where
    nobody has more than r + 1 buses in round r (R12). Arguments and errors as for `busenv.Game`.
    """
    rounds, rules = most_rounds(num_players, rules), as_rules(rules)
    buses = [min(rules.bus_limit, number + 1) for number in range(1, rounds + 1)]
    return sum(min(rules.passengers, rules.spaces * count) for count in buses)


def longest_game(
    num_players: int = 4,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
) -> int:
    """A number of decisions that no game exceeds; arguments and errors as for `busenv.Game`.

    It is the sum of what bounds each kind of decision:

    - Placing markers: each marker once (R4).
    - Passing: it takes two markers placed in that round, and one still in hand; so a seat with K
      markers passes at most (K - 1) // 2 times.
    - Buildings: each takes a site for good (R2, R14).
    - Lines: each takes one of the seat's line markers, and a street that bears none of them yet. A
      line is a trail (R8). So the streets that it leaves out meet all but two of the intersections
      of odd degree, two each at most. Besides, Line Expansion adds no more than its power in all
      (R7), where nobody has more buses in round r than r: a bus comes after it, one a round (R12).
    - Passengers: each decision brings one or more of the supply (R13).
    - Clock: once a round (R15).
    - Vrrooomm!: two for each delivery (`most_deliveries`).

    >>> longest_game(4), longest_game(5, "condensed")
    (578, 767)
    """
    players, rules, board = check_players(num_players), as_rules(rules), as_board(board)
    rounds = most_rounds(players, rules)
    select = players * (rules.action_markers + (rules.action_markers - 1) // 2)
    deliveries = most_deliveries(players, rules)
    supply = rules.passengers - rules.start_passengers
    lines = _most_streets(players, rules, board, rounds)
    return select + len(board.sites) + lines + supply + rounds + 2 * deliveries


def _most_streets(players: int, rules: Rules, board: Board, rounds: int) -> int:
    """The most line markers that all seats can lay down."""
    degrees = np.bincount(np.array(board.streets).ravel())
    trail = len(board.streets) - max(int((degrees % 2).sum()) // 2 - 1, 0)
    limits = rules.line_markers or (trail,) * players
    held = sum(min(limit, trail) for limit in limits[:players])
    power = sum(
        max(min(rules.bus_limit, number) + (players == 5) - space, 0)
        for number in range(1, rounds + 1)
        for space in range(rules.spaces)
    )
    return min(held, 2 * players + power)
