"""Phrases about a position, shared by drawings, texts and pages."""

from __future__ import annotations

from collections.abc import Iterable

from busenv.core.state import RESOLVED_IN, Building, Phase
from busenv.game.actions import ACTION_WORDS, decode, describe_action
from busenv.game.board import Board
from busenv.game.position import Position

STEP_WORDS = {  # by phase, the step of a round or of the setup
    Phase.SETUP_BUILDINGS: "first buildings",
    Phase.SETUP_FIRST_LINE: "first line markers",
    Phase.SETUP_SECOND_LINE: "second line markers",
    Phase.SELECT_ACTIONS: "selecting actions",
    **{phase: ACTION_WORDS[action] for phase, action in RESOLVED_IN.items()},
}
DRIVING_WORDS = {Phase.PICK_UP: "pick up", Phase.SET_DOWN: "set down"}
POWER_WORDS = {  # by phase, the unit of power
    Phase.SETUP_BUILDINGS: "building",
    Phase.LINE_EXPANSION: "street",
    Phase.PASSENGERS: "passenger",
    Phase.BUILDINGS: "building",
    Phase.PICK_UP: "bus",
    Phase.SET_DOWN: "bus",
}
SPACE_LETTERS = "ABCDEFGH"
ENDING_WORDS = {
    "time_stones": "the last time stone is taken",
    "sites": "all sites are built on",
    "markers": "at most one player has markers left",
}


def count(number: int, word: str) -> str:
    """Format a number of things: "1 point", "2 points", "3 buses", "4 deliveries"."""
    if abs(number) == 1:
        return f"{number} {word}"
    if word.endswith("y"):
        return f"{number} {word[:-1]}ies"
    return f"{number} {word}{'es' if word.endswith('s') else 's'}"


def headline(position: Position) -> str:
    """Describe the step of the game and the player to move, or the winner."""
    if position.phase == Phase.OVER:
        winner = position.ranking.index(0)
        points = count(position.points[winner], "point")
        return f"Game over in round {position.round}: seat {winner} wins with {points}"
    when = f"Round {position.round}" if position.round else "Setup"
    verb = DRIVING_WORDS.get(position.phase, "move")
    words = f"{when}, {STEP_WORDS[position.phase]}: seat {position.current_player} to {verb}"
    if position.phase in POWER_WORDS:
        words += f", {count(remaining(position), POWER_WORDS[position.phase])} to go"
    return words


def headline_seat(position: Position) -> int:
    """Return the seat that `headline` names: the player to move, or the winner."""
    over = position.phase == Phase.OVER
    return position.ranking.index(0) if over else position.current_player


def remaining(position: Position) -> int:
    """Return how many of the phase's `POWER_WORDS` are left to do."""
    return arriving(position) if position.phase == Phase.PASSENGERS else position.power


def arriving(position: Position) -> int:
    """Return the number of passengers that a decision of Passengers places (R13)."""
    return min(position.power, position.supply)


def describe_move(board: Board, position: Position, action: int) -> str:
    """Describe an action with what a reader sees on the drawing of the position before it.

    Unlike `describe_action` it gives the number of passengers at each station, and no site's id:
    sites of one zone at one intersection are equal.
    """
    kind, subject, detail = decode(board, action)
    if kind == "build":
        site = board.sites[subject]
        name = Building(detail).name.lower()
        return f"erect {name} at intersection {site.intersection}, zone {site.zone}"
    if kind == "split":
        return "passengers: " + split_words(board, position, subject)
    return describe_action(board, action)


def merge_moves(
    board: Board, position: Position, shares: Iterable[tuple[int, float]]
) -> list[tuple[str, int, float]]:
    """Sum the shares of actions that `describe_move` describes in the same words.

    shares: (action, share), best first. Returns (words, first action, share), best first.
    """
    moves: dict[str, tuple[int, float]] = {}
    for action, share in shares:
        words = describe_move(board, position, action)
        first, total = moves.get(words, (action, 0.0))
        moves[words] = first, total + share
    merged = [(words, *move) for words, move in moves.items()]
    return sorted(merged, key=lambda move: -move[2])


def split_words(board: Board, position: Position, to_first: int) -> str:
    """Describe how arriving passengers divide: "2 to station 10, 1 to station 25"."""
    counts = (to_first, arriving(position) - to_first)
    stations = zip(counts, board.stations, strict=True)
    return ", ".join(f"{number} to station {station}" for number, station in stations if number)
