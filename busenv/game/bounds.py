"""Upper bounds of rounds, deliveries and decisions of a game, from its rules."""

from __future__ import annotations

from pathlib import Path

from busenv.game.board import Board
from busenv.game.board_specs import as_board
from busenv.game.rules import Rules, as_rules, check_players

MULTI, SINGLE = 4, 3  # actions with several spaces, and with one (R5)


def most_rounds(num_players: int = 4, rules: str | Path | Rules = "capstone-2024") -> int:
    """Return the most rounds that a game can have; 10 in every edition.

    A round begins only while a player holds markers. In a round every player with markers places at
    least two, or the last one (R4). If the spaces do not suffice for two each, every player places
    at least one, because there are always seven spaces or more. Arguments and errors as for
    `busenv.Game`.
    """
    players, rules = check_players(num_players), as_rules(rules)
    two_each = MULTI * rules.spaces + SINGLE >= 2 * players
    return -(-rules.action_markers // 2) if two_each else rules.action_markers


def most_deliveries(num_players: int = 4, rules: str | Path | Rules = "capstone-2024") -> int:
    """Return a number of deliveries, of all seats together, that no game exceeds.

    A round delivers each passenger at most once, because a delivered one no longer waits (R16,
    R17), and at most one passenger for each bus of each space of Vrrooomm!; in round r a player has
    at most r + 1 buses (R12). Arguments and errors as for `busenv.Game`.
    """
    rounds, rules = most_rounds(num_players, rules), as_rules(rules)
    buses = [min(rules.bus_limit, number + 1) for number in range(1, rounds + 1)]
    return sum(min(rules.passengers, rules.spaces * count) for count in buses)


def longest_game(
    num_players: int = 4,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
) -> int:
    """Return a number of decisions that no game exceeds.

    Arguments and errors as for `busenv.Game`. It is the sum of bounds of each kind of decision:

    - Placing markers: each marker once (R4).
    - Passing: requires two markers placed in the round and one in hand, so a seat with K markers
      passes at most (K - 1) // 2 times.
    - Buildings: each uses a site (R2, R14).
    - Lines: each uses a line marker and a street without one of the seat's (R8).
    - Passengers: each decision uses at least one of the supply (R13).
    - Clock: once a round (R15).
    - Vrrooomm!: two for each delivery (`most_deliveries`).

    >>> longest_game(4), longest_game(5, "condensed")
    (578, 857)
    """
    players, rules, board = check_players(num_players), as_rules(rules), as_board(board)
    rounds = most_rounds(players, rules)
    select = players * (rules.action_markers + (rules.action_markers - 1) // 2)
    deliveries = most_deliveries(players, rules)
    supply = rules.passengers - rules.start_passengers
    streets = len(board.streets)
    limits = rules.line_markers or (streets,) * players
    lines = sum(min(limit, streets) for limit in limits[:players])
    return select + len(board.sites) + lines + supply + rounds + 2 * deliveries
