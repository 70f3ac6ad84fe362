"""Phrases about a position, shared by drawings, texts and pages."""

from __future__ import annotations

from busenv.game.actions import ACTION_WORDS, RESOLVED_IN, Phase
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
        left = position.power
        if position.phase == Phase.PASSENGERS:
            left = min(left, position.supply)
        words += f", {count(left, POWER_WORDS[position.phase])} to go"
    return words
