"""A position and a board as plain text, for the render mode "ansi", `game_text` and prompts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from busenv.core.state import Building
from busenv.error_text import printable
from busenv.game.actions import ACTION_WORDS
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render.phrases import SPACE_LETTERS, count, headline


def draw_text(board: Board, position: Position, rules: Rules) -> str:
    """Describe the position, each player and each intersection in use.

    Two positions on a board have the same text only if they are equal.
    """
    title = f"Bus, {position.num_players} players, {rules.name}, {printable(board.name)}: "
    summary, body = headline(position), describe_position(board, position)
    return f"{title}{summary[0].lower()}{summary[1:]}\n{body}\n"


def describe_position(board: Board, position: Position) -> str:
    """Describe all of a position but its headline (`busenv.render.phrases.headline`)."""
    lines = [
        f"clock {Building(position.clock).name.lower()}, time stones on it "
        f"{position.time_stones_left}, passengers in supply {position.supply}",
        f"starting player: seat {position.starting_player}, in the first round seat "
        f"{position.first_player}; order of last deliveries by seat: "
        f"{_joined(position.delivery_order)}",
    ]
    for seat in range(position.num_players):
        lines.append(_player(board, position, seat))
    for action, seats in enumerate(position.spaces):
        if seats:
            lines.append(f"{ACTION_WORDS[action]}: markers of seats {_joined(seats)}")
    if position.choosing:
        lines.append(f"still selecting: seats {_joined(position.choosing)}")
    if position.resolving >= 0 or position.power:
        space = f"space {SPACE_LETTERS[position.resolving]}" if position.resolving >= 0 else "setup"
        lines.append(f"resolving: {space}, power {position.power}")
    buildings = defaultdict[int, list[str]](list)
    for site, kind in enumerate(position.buildings):
        if kind >= 0:
            words = f"{Building(kind).name.lower()} {site}"
            buildings[board.sites[site].intersection].append(words)
    lines.append("at intersections (buildings with their sites):")
    for i, people in enumerate(position.passengers):
        if people or i in buildings:
            passengers = [count(people, "passenger")] if people else []
            lines.append(f"{i}: {', '.join(passengers + buildings[i])}")
    if position.waiting:
        lines.append(f"passengers wait at {_joined(position.waiting)}")
    if position.vacant:
        lines.append(f"buildings of the clock's type are free at {_joined(position.vacant)}")
    if position.ending != "running":
        lines.append(f"ended by {position.ending.replace('_', ' ')}")
    return "\n".join(lines)


def describe_board(board: Board) -> str:
    """Describe a board: stations, roundabouts, streets and the sites of each zone.

    Streets with the same first-listed intersection are in one group.
    """
    roundabouts = (i for i, entry in enumerate(board.intersections) if entry.roundabout)
    streets, sites = defaultdict[int, list[int]](list), defaultdict[int, list[str]](list)
    for first, second in board.streets:
        streets[first].append(second)
    for number, site in enumerate(board.sites):
        sites[site.zone].append(f"{number}@{site.intersection}")
    groups = (f"{first}-{','.join(map(str, others))}" for first, others in streets.items())
    return "\n".join(
        [
            f"stations at {board.stations[0]} and {board.stations[1]}",
            f"roundabouts at {_joined(roundabouts)}",
            f"streets (0-1,2 is 0-1 and 0-2): {' '.join(groups)}",
            "sites (SITE@INTERSECTION):",
            *(f"zone {zone}: {' '.join(sites[zone])}" for zone in sorted(sites)),
        ]
    )


def _player(board: Board, position: Position, seat: int) -> str:
    """Describe a player and the player's line."""
    left = position.line_markers[seat]
    words = (
        f"seat {seat}: points {position.points[seat]} (deliveries {position.deliveries[seat]}, "
        f"stones {position.time_stones[seat]}), buses {position.buses[seat]}, "
        f"markers {position.action_markers[seat]}, "
        f"line markers {'unlimited' if left is None else left}"
    )
    ends = position.line_ends[seat]
    if streets := position.streets[seat]:
        words += f", line {_chains(board, streets, ends)}"
    if ends:
        words += f", ends at {' and '.join(map(str, ends))}"
    if arrivals := position.arrivals[seat]:
        words += f", arrival streets {_streets(board, arrivals)}"
    for end, others in zip(("first", "second"), position.shared_with[seat], strict=False):
        if others:
            words += f", {end} end must not share again with seats {_joined(others)}"
    return words


def _chains(board: Board, streets: Iterable[int], starts: Iterable[int]) -> str:
    """Write streets as few chains such as "3-4-5", the first one from one of `starts`."""
    remaining = {board.streets[street]: None for street in streets}  # in order
    chains = []
    while remaining:
        corners = [end for ends in remaining for end in ends]
        chain = [next((i for i in starts if i in corners), corners[0])]
        while street := next((ends for ends in remaining if chain[-1] in ends), None):
            del remaining[street]
            chain.append(sum(street) - chain[-1])
        chains.append("-".join(map(str, chain)))
    return " ".join(chains)


def _streets(board: Board, streets: Iterable[int]) -> str:
    return " ".join("{}-{}".format(*board.streets[street]) for street in streets)


def _joined(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))
