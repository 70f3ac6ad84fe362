"""A position as plain text, for the render mode "ansi" and `Game.text`."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from busenv.error_text import printable
from busenv.game.actions import ACTION_WORDS, Building
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render.phrases import count, headline

IN_WORDS = (  # fields of a position that have words of their own; the others follow by name
    "num_players phase round current_player starting_player clock time_stones_left supply "
    "deliveries time_stones buses action_markers line_markers streets line_ends spaces passengers "
    "buildings"
).split()


def draw_text(board: Board, position: Position, rules: Rules) -> str:
    """Describe the position, each player and each intersection in use, and the other fields.

    Two positions on a board have the same text only if they are equal.
    """
    clock, summary = Building(position.clock).name.lower(), headline(position)
    lines = [
        f"Bus, {position.num_players} players, {rules.name}, {printable(board.name)}: "
        f"{summary[0].lower()}{summary[1:]}",
        f"clock {clock}, time stones on it {position.time_stones_left}, "
        f"passengers in supply {position.supply}",
    ]
    for seat in range(position.num_players):
        lines += _player(board, position, seat)
    for action, seats in enumerate(position.spaces):
        if seats:
            lines.append(f"{ACTION_WORDS[action]}: seats {' '.join(map(str, seats))}")
    buildings = defaultdict[int, list[str]](list)
    for site, kind in enumerate(position.buildings):
        if kind >= 0:
            words = f"{Building(kind).name.lower()} on site {site}"
            buildings[board.sites[site].intersection].append(words)
    for i, people in enumerate(position.passengers):
        if people or i in buildings:
            words = ", ".join([count(people, "passenger"), *buildings[i]])
            lines.append(f"intersection {i}: {words}")
    for field in dataclasses.fields(position):
        if field.name not in IN_WORDS:
            lines.append(f"{field.name.replace('_', ' ')}: {getattr(position, field.name)}")
    return "\n".join(lines) + "\n"


def _player(board: Board, position: Position, seat: int) -> list[str]:
    """Describe a player, the starting player with a star, and the player's line."""
    left = position.line_markers[seat]
    lines = [
        f"seat {seat}{'*' if seat == position.starting_player else ' '} "
        f"points {position.points[seat]} (deliveries {position.deliveries[seat]}, "
        f"stones {position.time_stones[seat]}), buses {position.buses[seat]}, "
        f"markers {position.action_markers[seat]}, "
        f"line markers {'unlimited' if left is None else left}"
    ]
    if position.streets[seat] or position.line_ends[seat]:
        ends = " and ".join(map(str, position.line_ends[seat]))
        streets = " ".join("{}-{}".format(*board.streets[s]) for s in position.streets[seat])
        lines.append(f"        ends at {ends}; streets {streets}")
    return lines
