"""A game as plain text."""

from __future__ import annotations

from busenv.actions import ACTION_WORDS, Building
from busenv.board import Board
from busenv.position import Position
from busenv.render.panels import headline
from busenv.rules import Rules


def draw_text(board: Board, position: Position, rules: Rules) -> str:
    """The table in words: where the game stands, each player, each intersection in use."""
    table = position
    clock = Building(table.clock).name.lower()
    lines = [
        f"Bus, {table.num_players} players, {rules.name}, {board.name}: {headline(table)}",
        f"clock {clock}, {table.time_stones_left} stones on it, supply {table.supply} passengers",
    ]
    for seat in range(table.num_players):
        line_markers = "unlimited" if table.line_markers[seat] is None else table.line_markers[seat]
        streets = " ".join("{}-{}".format(*board.streets[s]) for s in table.streets[seat])
        lines.append(
            f"seat {seat}{'*' if seat == table.starting_player else ' '} "
            f"points {table.points[seat]} (deliveries {table.deliveries[seat]}, stones "
            f"{table.time_stones[seat]}), buses {table.buses[seat]}, markers "
            f"{table.action_markers[seat]}, line markers {line_markers}"
        )
        if streets:
            ends = " and ".join(map(str, table.line_ends[seat]))
            lines.append(f"        ends at {ends}; streets {streets}")
    for action, seats in enumerate(table.spaces):
        if seats:
            lines.append(f"{ACTION_WORDS[action]}: seats {' '.join(map(str, seats))}")
    buildings: dict[int, str] = {}
    for site, kind in enumerate(table.buildings):
        if kind >= 0:
            place = board.sites[site].intersection
            buildings[place] = buildings.get(place, "") + "HOP"[kind]
    for place, people in enumerate(table.passengers):
        if people or place in buildings:
            lines.append(f"intersection {place}: {people} passengers, {buildings.get(place, '-')}")
    return "\n".join(lines) + "\n"
