"""A position as plain text, for the render mode "ansi" and `Game.text`."""

from __future__ import annotations

from busenv.error_text import printable
from busenv.game.actions import ACTION_WORDS, Building
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render.phrases import count, headline


def draw_text(board: Board, position: Position, rules: Rules) -> str:
    """Describe the position, each player and each intersection in use."""
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
    buildings: dict[int, str] = {}
    for site, kind in enumerate(position.buildings):
        if kind >= 0:
            intersection = board.sites[site].intersection
            buildings[intersection] = buildings.get(intersection, "") + "HOP"[kind]
    for i, waiting in enumerate(position.passengers):
        if waiting or i in buildings:
            lines.append(
                f"intersection {i}: {count(waiting, 'passenger')}, {buildings.get(i, '-')}"
            )
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
    if position.streets[seat]:
        ends = " and ".join(map(str, position.line_ends[seat]))
        streets = " ".join("{}-{}".format(*board.streets[s]) for s in position.streets[seat])
        lines.append(f"        ends at {ends}; streets {streets}")
    return lines
