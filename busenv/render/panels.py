"""The panels next to the map as SVG: clock, action board, players, legend; and the headline."""

from __future__ import annotations

import math

from busenv.core.state import RESOLVED_IN, BoardAction, Building, Phase
from busenv.game.actions import ACTION_WORDS
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render.layout import Point
from busenv.render.map_drawing import free_site, intersection, passengers
from busenv.render.phrases import SPACE_LETTERS, headline, headline_seat
from busenv.render.pieces import (
    BUILDINGS,
    BUS,
    NO_STONE,
    PAWN,
    STONE,
    disc,
    highlighted,
    line_segment,
    placed,
    text,
)

X, PANEL_WIDTH = 790, 402  # of the panels
CLOCK_Y, ACTIONS_Y, PLAYERS_Y, LEGEND_Y = 64, 180, 425, 667
CLOCK_HEIGHT, ACTIONS_HEIGHT, PLAYERS_HEIGHT, LEGEND_HEIGHT = 108, 237, 234, 125
TITLE = 28  # height of a panel's first row
ROW = 29  # height of an action's row
SPACES_X, SPACES_WIDTH = X + 174, 220  # of an action's spaces
PLAYER_ROWS = 202  # height of all players' rows
MAX_STONES = 6  # drawn stones; more are only counted
RIGHT_TO_LEFT = (BoardAction.LINE_EXPANSION, BoardAction.BUILDINGS)  # space A is resolved last
COLUMNS = (("points", 120), ("stones", 184), ("buses", 247), ("markers", 318), ("line", 378))
RANKS = ("1st", "2nd", "3rd", "4th", "5th")
LEGEND_COLUMNS = (14, 116, 262)


def draw_headline(position: Position, last: str) -> str:
    """Draw the headline and the last action in words."""
    piece = disc(headline_seat(position), 30, 30, 17, 24)
    return piece + text(58, 28, headline(position), 24) + text(58, 53, last)


def _panel(y: float, height: float) -> str:
    return f'<rect x="{X}" y="{y}" width="{PANEL_WIDTH}" height="{height}" rx="8" class="panel"/>'


def _bar(y: float, height: float) -> str:
    """Draw the background of the current row."""
    width = PANEL_WIDTH - 8
    return f'<rect x="{X + 4}" y="{y:g}" width="{width}" height="{height:g}" rx="5" class="now"/>'


def draw_frames() -> str:
    """Draw the frames and titles of the panels."""
    drawn = [
        _panel(CLOCK_Y, CLOCK_HEIGHT),
        _panel(ACTIONS_Y, ACTIONS_HEIGHT),
        _panel(PLAYERS_Y, PLAYERS_HEIGHT),
        _panel(LEGEND_Y, LEGEND_HEIGHT),
        text(X + 12, ACTIONS_Y + 21, "Actions"),
    ]
    drawn += [text(X + x, PLAYERS_Y + 21, words, kind="faint", anchor="m") for words, x in COLUMNS]
    return "".join(drawn)


def draw_clock(position: Position) -> str:
    """Draw the clock with its hand, the time stones and the passengers in supply."""
    x, y = clock_centre()
    face = [f'<circle cx="{x}" cy="{y}" r="49" class="node"/>']
    for kind in Building:
        angle = math.radians(120 * kind - 90)
        face.append(
            placed(BUILDINGS[kind], x + 33 * math.cos(angle), y + 33 * math.sin(angle), 1.1)
        )
    face.append(
        f'<g transform="translate({x} {y}) rotate({120 * position.clock})">'
        '<path d="M-4 8L-2.5-10H-7L0-20 7-10H2.5L4 8Z" fill="#c1121f" class="edge"/></g>'
    )
    left = X + 122
    face.append(text(left, y - 25, f"Clock: {Building(position.clock).name.lower()}"))
    face.append(text(left, y + 7, f"Time stones: {position.time_stones_left}"))
    stones = position.time_stones_left + sum(position.time_stones)
    for k in range(stones if stones <= MAX_STONES else 0):
        piece = STONE if k < position.time_stones_left else NO_STONE
        face.append(placed(piece, left + 166 + 21 * k, y + 1))
    face.append(text(left, y + 39, f"Passengers in supply: {position.supply}"))
    return "".join(face)


def clock_centre() -> Point:
    """Return the centre of the clock's face."""
    return X + 60, CLOCK_Y + CLOCK_HEIGHT / 2


def draw_most_buses(position: Position) -> str:
    """Draw M, the most buses of any player, from which action power is counted (R7)."""
    words = f"most buses M = {max(position.buses)}"
    return text(X + PANEL_WIDTH - 12, ACTIONS_Y + 21, words, anchor="e")


def draw_actions(position: Position, rules: Rules) -> list[str]:
    """Draw, for each action, its spaces in the order of resolution, with their markers."""
    return [_spaces(position, rules, action) for action in range(len(ACTION_WORDS))]


def _spaces(position: Position, rules: Rules, action: int) -> str:
    y, count = ACTIONS_Y + TITLE + ROW * action, rules.spaces_of(action)
    radius = min(13.0, _pitch(rules) / 2 - 1)
    is_resolving = action == RESOLVED_IN.get(position.phase)
    drawn = [_bar(y, ROW)] if is_resolving else []
    drawn.append(text(X + 12, y + 21, ACTION_WORDS[action]))
    for space in range(count):
        x, middle = space_centre(rules, action, space)
        if space < len(position.spaces[action]):
            drawn.append(disc(position.spaces[action][space], x, middle, radius))
        else:
            letter = SPACE_LETTERS[space] if count > 1 else ""
            drawn.append(f'<circle cx="{x:g}" cy="{middle:g}" r="{radius:g}" class="space"/>')
            drawn.append(text(x, middle + 6.5, letter, kind="faint", anchor="m"))
    if is_resolving:
        x, middle = space_centre(rules, action, position.resolving)
        drawn.append(f'<circle cx="{x:g}" cy="{middle:g}" r="{radius:g}" class="acting"/>')
    return "".join(drawn)


def _pitch(rules: Rules) -> float:
    """Return the distance between two spaces."""
    return min(35, SPACES_WIDTH / rules.spaces)


def space_centre(rules: Rules, action: int, space: int) -> Point:
    """Return the centre of a space on the action board."""
    column = rules.spaces_of(action) - 1 - space if action in RIGHT_TO_LEFT else space
    return SPACES_X + _pitch(rules) * (column + 0.5), ACTIONS_Y + TITLE + ROW * (action + 0.5)


def draw_players(position: Position) -> list[str]:
    """Draw, for each player, points, time stones, buses, action markers and line markers."""
    return [_player(position, seat) for seat in range(position.num_players)]


def _player_row(players: int, seat: int) -> tuple[float, float]:
    """Return the top and height of a player's row."""
    height = PLAYER_ROWS / players
    return PLAYERS_Y + TITLE + height * seat, height


def _player(position: Position, seat: int) -> str:
    y, height = _player_row(position.num_players, seat)
    middle = y + height / 2
    drawn = [_bar(y, height)] if seat == position.current_player else []
    drawn.append(line_segment(seat, f"M{X + 10} {middle + 16:.1f}h88"))
    drawn.append(disc(seat, X + 23, middle - 7, 12))
    drawn.append(text(X + 39, middle - 3, _status(position, seat), kind="faint"))
    if seat == position.starting_player and position.phase != Phase.OVER:
        drawn.append(placed(BUS, X + 88, middle + 13, 0.85))  # on the line, below the status
    left = position.line_markers[seat]
    values = (
        position.points[seat],
        position.time_stones[seat],
        position.buses[seat],
        position.action_markers[seat],
        "any" if left is None else left,
    )
    for (words, x), value in zip(COLUMNS, values, strict=True):
        size = 24 if words == "points" else 20
        drawn.append(text(X + x, round(middle + 7, 1), value, size, anchor="m"))
    if position.phase == Phase.SET_DOWN and seat == position.current_player:
        drawn.append(placed(PAWN, X + 272, middle + 1, 1.2))
    return "".join(drawn)


def _status(position: Position, seat: int) -> str:
    """Return a player's rank at the end, or why the player selects no more actions."""
    if position.phase == Phase.OVER:
        return RANKS[position.ranking[seat]]
    if position.phase != Phase.SELECT_ACTIONS or seat in position.choosing:
        return ""
    return "passed" if position.action_markers[seat] else "out"


def highlight_player(players: int, seat: int) -> str:
    """Draw a highlight around a player's row."""
    y, height = _player_row(players, seat)
    return highlighted(
        f'<rect x="{X + 5}" y="{y:g}" width="{PANEL_WIDTH - 10}" height="{height:g}" rx="5" '
        'class="{}"/>'
    )


def draw_legend(board: Board, position: Position) -> str:
    """Draw the legend; sites are listed while some are free."""
    free = [s.zone for s, kind in zip(board.sites, position.buildings, strict=True) if kind < 0]
    zones = sorted({*free})
    columns = (
        (
            *((placed(BUILDINGS[kind], 0, 0), kind.name.lower()) for kind in Building),
            *([(placed(BUS, 0, 0), "starts")] if position.phase != Phase.OVER else []),
        ),
        (
            (placed(intersection(0, 0, False, True), 0, 0, 0.6), "station"),
            (placed(intersection(0, 0, True, False), 0, 0, 0.6), "roundabout"),
            (line_segment(0, "M0 0h14") + disc(0, -2, 0), "line end"),
        ),
        (
            (passengers(0, 0, 1), "waiting"),
            (placed(BUILDINGS[Building.HOUSE], 0, 0) + placed(PAWN, 7, 5, 0.8), "indoors"),
            *((free_site(0, 0, zone, True), "open zone") for zone in zones[:1]),
            *((free_site(0, 0, zone, False), "later zone") for zone in zones[1:2]),
        ),
    )
    drawn = []
    for left, entries in zip(LEGEND_COLUMNS, columns, strict=True):
        for row, (symbol, words) in enumerate(entries):
            x, y = X + left + 10, LEGEND_Y + 20 + 29 * row
            drawn.append(placed(symbol, x, y, 0.9) + text(x + 19, y + 6, words, kind="faint"))
    return "".join(drawn)
