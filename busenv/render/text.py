"""A position as plain text."""

from __future__ import annotations

from busenv.actions import ACTION_WORDS, Building
from busenv.board import Board
from busenv.position import Position
from busenv.render.phrases import count, headline
from busenv.rules import Rules


def draw_text(board: Board, position: Position, rules: Rules) -> str:
    """The position in words: where the game stands, each player, each intersection in use."""
    clock = Building(position.clock).name.lower()
    lines = [
        f"Bus, {position.num_players} players, {rules.name}, {board.name}: {headline(position)}",
        f"clock {clock}, {count(position.time_stones_left, 'time stone')} on it, "
        f"{count(position.supply, 'passenger')} in supply",
    ]
    for seat in range(position.num_players):
        lines += _player(board, position, seat)
    for action, seats in enumerate(position.spaces):
        if seats:
            lines.append(f"{ACTION_WORDS[action]}: seats {' '.join(map(str, seats))}")
    buildings: dict[int, str] = {}
    for site, kind in enumerate(position.buildings):
        if kind >= 0:
            place = board.sites[site].intersection
            buildings[place] = buildings.get(place, "") + "HOP"[kind]
    for place, people in enumerate(position.passengers):
        if people or place in buildings:
            passengers = count(people, "passenger")
            lines.append(f"intersection {place}: {passengers}, {buildings.get(place, '-')}")
    return "\n".join(lines) + "\n"


def _player(board: Board, position: Position, seat: int) -> list[str]:
    """A line of what a seat has, the starting player's with a star; a line of where it drives."""
    left = position.line_markers[seat]
    lines = [
        f"seat {seat}{'*' if seat == position.starting_player else ' '} "
        f"{count(position.points[seat], 'point')} "
        f"({count(position.deliveries[seat], 'delivery')}, "
        f"{count(position.time_stones[seat], 'time stone')}), "
        f"{count(position.buses[seat], 'bus')}, "
        f"{count(position.action_markers[seat], 'action marker')}, "
        + ("line markers without limit" if left is None else count(left, "line marker"))
    ]
    if position.streets[seat]:
        ends = " and ".join(map(str, position.line_ends[seat]))
        streets = " ".join("{}-{}".format(*board.streets[s]) for s in position.streets[seat])
        lines.append(f"        ends at {ends}; streets {streets}")
    return lines
