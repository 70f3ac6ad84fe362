"""What lies beside the map: clock, action board, players, legend, and the headline."""

from __future__ import annotations

import math

from busenv.actions import ACTION_WORDS, RESOLVED_IN, Action, Building, Phase
from busenv.position import Position
from busenv.render.city import free_site, intersection, people
from busenv.render.pieces import (
    BUILDINGS,
    BUS,
    NO_STONE,
    PAWN,
    STONE,
    disc,
    halo,
    put,
    strand,
    text,
)
from busenv.render.places import Point
from busenv.rules import Rules

X, PANEL_WIDTH = 790, 400  # of the panels
CLOCK_Y, ACTIONS_Y, PLAYERS_Y, LEGEND_Y = 64, 196, 452, 702
ROW, SPACE = 31, 31  # height of an action's row, and width of a space
PLAYER_ROW = 41
ONE_SPACE = (Action.BUSES, Action.CLOCK, Action.STARTING_PLAYER)
RIGHT_TO_LEFT = (
    Action.LINE_EXPANSION,
    Action.BUILDINGS,
)  # actions whose space A is resolved last stand in that order
PHASE_WORDS = {
    Phase.SETUP_BUILDINGS: "Setup: first buildings",
    Phase.SETUP_FIRST_LINE: "Setup: first line markers",
    Phase.SETUP_SECOND_LINE: "Setup: second line markers",
    Phase.SELECT_ACTIONS: "select actions",
    Phase.PICK_UP: "Vrrooomm!, pick up",
    Phase.SET_DOWN: "Vrrooomm!, set down",
}
LEFT_WORDS = {  # what a marker's power is counted in: one, several
    Phase.SETUP_BUILDINGS: ("building", "buildings"),
    Phase.LINE_EXPANSION: ("street", "streets"),
    Phase.PASSENGERS: ("passenger", "passengers"),
    Phase.BUILDINGS: ("building", "buildings"),
    Phase.PICK_UP: ("bus", "buses"),
    Phase.SET_DOWN: ("bus", "buses"),
}
ENDINGS = {
    "time_stones": "the last time stone is taken",
    "sites": "all sites are built on",
    "markers": "at most one player has markers left",
}
COLUMNS = (
    ("points", 104),
    ("deliveries", 158),
    ("stones", 214),
    ("buses", 262),
    ("markers", 312),
    ("line left", 367),
)


def headline(table: Position) -> str:
    """Where the game stands and whose turn it is, in words."""
    if table.phase == Phase.OVER:
        winner = table.ranking.index(0)
        points, end = table.points[winner], ENDINGS[table.ending]
        number = f"{points} point{'' if points == 1 else 's'}"
        return f"Game over in round {table.round}, {end}: seat {winner} wins with {number}"
    words = PHASE_WORDS.get(table.phase) or ACTION_WORDS[RESOLVED_IN[table.phase]]
    if table.round:
        words = f"Round {table.round}: {words}"
    return f"{words}, seat {table.current_player} to move"


def draw_headline(table: Position, last: str) -> str:
    """Title of the drawing: the headline, and the last action in words."""
    seat = table.ranking.index(0) if table.phase == Phase.OVER else table.current_player
    return disc(seat, 30, 28, 14) + text(54, 29, headline(table), 20) + text(54, 50, last, 14)


def _panel(y: float, height: float) -> str:
    return f'<rect x="{X}" y="{y}" width="{PANEL_WIDTH}" height="{height}" rx="8" class="panel"/>'


def _bar(y: float, height: float) -> str:
    """The light behind the row whose turn it is."""
    return f'<rect x="{X + 4}" y="{y}" width="392" height="{height}" rx="5" class="now"/>'


def draw_frames() -> str:
    """What no game changes beside the map: frames, titles and the legend."""
    drawn = [_panel(CLOCK_Y, 124), _panel(ACTIONS_Y, 248), _panel(PLAYERS_Y, 241)]
    drawn.append(text(X + 12, ACTIONS_Y + 20, "Actions"))
    drawn.append(text(X + 72, ACTIONS_Y + 20, "resolved row by row, from the left", 11, "faint"))
    drawn.append(text(X + 12, PLAYERS_Y + 20, "Players"))
    drawn += [text(X + x, PLAYERS_Y + 20, words, 10, "faint", "m") for words, x in COLUMNS]
    return "".join(drawn) + _legend()


def draw_clock(table: Position) -> str:
    """The clock with its hand, the time stones, the passengers in supply."""
    x, y = clock_middle()
    face = [f'<circle cx="{x}" cy="{y}" r="54" class="node"/>']
    for kind in Building:
        angle = math.radians(120 * kind - 90)
        face.append(put(BUILDINGS[kind], x + 37 * math.cos(angle), y + 37 * math.sin(angle)))
    face.append(
        f'<g transform="translate({x} {y}) rotate({120 * table.clock})">'
        '<path d="M-4 8L-2.5-12H-7L0-23 7-12H2.5L4 8Z" fill="#c1121f" class="edge"/></g>'
    )
    word = Building(table.clock).name.lower()
    face.append(text(920, y - 34, f"The clock points to: {word}", 14))
    stones = table.time_stones_left + sum(table.time_stones)
    pitch = min(22, 150 / stones)
    face.append(text(920, y + 5, f"Time stones left: {table.time_stones_left}", 14))
    for k in range(stones):
        piece = STONE if k < table.time_stones_left else NO_STONE
        face.append(put(piece, 928 + k * pitch, y + 24))
    face.append(text(1098, y + 5, "In supply", 14))
    face.append(put(PAWN, 1110, y + 22, 1.2) + text(1123, y + 28, f"×{table.supply}", 16))
    return "".join(face)


def clock_middle() -> Point:
    """Middle of the clock's face."""
    return X + 62, CLOCK_Y + 62


def draw_most(table: Position) -> str:
    """The most buses that anybody has: what action power is counted from (R7)."""
    return text(X + 388, ACTIONS_Y + 20, f"most buses M = {max(table.buses)}", 13, "ink", "e")


def draw_actions(table: Position, rules: Rules) -> list[str]:
    """By action, its spaces in the order in which they are resolved, with markers in them."""
    return [_spaces(table, rules, action) for action in range(len(ACTION_WORDS))]


def _spaces(table: Position, rules: Rules, action: int) -> str:
    y, count = ACTIONS_Y + 28 + ROW * action, _count(rules, action)
    drawn = [_bar(y, ROW)] if action == RESOLVED_IN.get(table.phase) else []
    drawn.append(text(X + 12, y + 20, ACTION_WORDS[action]))
    for space in range(count):
        x, middle = space_middle(rules, action, space)
        if space < len(table.spaces[action]):
            drawn.append(disc(table.spaces[action][space], x, middle, 12))
        else:
            letter = "ABCDEFGH"[space] if count > 1 else ""
            drawn.append(f'<circle cx="{x}" cy="{middle}" r="12" class="space"/>')
            drawn.append(text(x, middle + 4.5, letter, 12, "faint", "m"))
    if action == RESOLVED_IN.get(table.phase):
        x, middle = space_middle(rules, action, table.resolving)
        drawn.append(f'<circle cx="{x}" cy="{middle}" r="13.5" class="acting"/>')
    return "".join(drawn)


def _count(rules: Rules, action: int) -> int:
    """Number of an action's spaces."""
    return 1 if action in ONE_SPACE else rules.spaces


def space_middle(rules: Rules, action: int, space: int) -> Point:
    """Middle of a space on the action board."""
    place = _count(rules, action) - 1 - space if action in RIGHT_TO_LEFT else space
    return X + 152 + SPACE * place, ACTIONS_Y + 28 + ROW * (action + 0.5)


def draw_players(table: Position) -> list[str]:
    """By seat a row with points, deliveries, stones, buses and markers."""
    return [_player(table, seat) for seat in range(table.num_players)]


def _player(table: Position, seat: int) -> str:
    y = PLAYERS_Y + 28 + PLAYER_ROW * seat
    drawn = [_bar(y, PLAYER_ROW)] if seat == table.current_player else []
    drawn.append(disc(seat, X + 22, y + 16, 12))
    drawn.append(strand(seat, f"M{X + 10} {y + 35}h70"))
    if seat == table.starting_player:
        drawn.append(put(BUS, X + 56, y + 11, 0.9) + text(X + 43, y + 28, "start", 10))
    left = table.line_markers[seat]
    values = (
        table.points[seat],
        table.deliveries[seat],
        table.time_stones[seat],
        table.buses[seat],
        table.action_markers[seat],
        "any" if left is None else left,
    )
    for (words, x), value in zip(COLUMNS, values, strict=True):
        drawn.append(text(X + x, y + 23, value, 20 if words == "points" else 16, "ink", "m"))
    drawn.append(text(X + 90, y + 37, _note(table, seat), 11))
    if table.phase == Phase.SET_DOWN and seat == table.current_player:
        drawn.append(put(PAWN, X + 286, y + 17, 0.9))
    return "".join(drawn)


def _note(table: Position, seat: int) -> str:
    """What else is to be said of a player, in a few words."""
    if table.phase == Phase.OVER:
        place = table.ranking[seat]
        return "the winner" if place == 0 else f"place {place + 1}"
    if seat != table.current_player:
        done = table.phase == Phase.SELECT_ACTIONS and seat not in table.choosing
        return "done choosing this round" if done else ""
    if table.phase not in LEFT_WORDS:
        return "to move"
    left = min(table.power, table.supply) if table.phase == Phase.PASSENGERS else table.power
    words = f"to move: {left} {LEFT_WORDS[table.phase][left != 1]} to go"
    return words + (", a passenger on board" if table.phase == Phase.SET_DOWN else "")


def ring_player(seat: int) -> str:
    """Light up a player's row."""
    y = PLAYERS_Y + 28 + PLAYER_ROW * seat
    return halo(
        f'<rect x="{X + 5}" y="{y}" width="390" height="{PLAYER_ROW}" rx="5" class="{{}}"/>'
    )


def _legend() -> str:
    """The signs of the map."""
    signs = (
        (put(BUILDINGS[Building.HOUSE], 0, 0), "house"),
        (put(BUILDINGS[Building.OFFICE], 0, 0), "office"),
        (put(BUILDINGS[Building.PUB], 0, 0), "pub"),
        (put(intersection(0, 0, True, False), 0, 0, 0.7), "roundabout"),
        (people(0, 0, 1), "waiting"),
        (put(BUILDINGS[Building.HOUSE], 0, 0) + put(PAWN, 7, 5, 0.8), "indoors"),
        (put(intersection(0, 0, False, True), 0, 0, 0.7), "station"),
        (strand(0, "M0 0h14") + disc(0, 0, 0, 8), "line's end"),
        (free_site(0, 0, 1, True), "zone 1"),
        (free_site(0, 0, 2, False), "later zone"),
        (put(BUS, 0, 0), "starts"),
        (put(STONE, 0, 0), "time stone"),
    )
    drawn = [_panel(LEGEND_Y, 92)]
    for k, (sign, words) in enumerate(signs):
        row, column = divmod(k, 4)
        x, y = X + 20 + 97 * column, LEGEND_Y + 18 + 28 * row
        drawn.append(put(sign, x, y, 0.85) + text(x + 15, y + 4, words, 11))
    return "".join(drawn)
