"""What the start page offers, and which agents a page may request.

Pages can only request the agents of a list, and those that the command line names. Boards and
rules of the command line are offered as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from busenv import EDITIONS, Board, Rules, load_board
from busenv.agents.specs import short_spec
from busenv.game.board_specs import board_names
from busenv.play.messages import RequestError

DEFAULT_PLAYERS = 4
HAS_NETWORKS = find_spec("torch") is not None and find_spec("safetensors") is not None
AGENTS = {  # name and description by spec, strongest first
    "az:city-4:1000": ("Expert", "search guided by a network"),
    "az:generated-4:1000": ("Expert, any board", "search guided by a network"),
    "uct:1000": ("Strong", "tree search, 1,000 simulations"),
    "net:city-5": ("Advanced", "a trained network, answers at once"),
    "uct:100": ("Medium", "tree search, 100 simulations"),
    "planner": ("Casual", "plans one decision ahead"),
    "greedy": ("Beginner", "takes the best immediate gain"),
    "random": ("Random", "chooses at random"),
}
if not HAS_NETWORKS:
    AGENTS = {spec: level for spec, level in AGENTS.items() if not spec.startswith(("az:", "net:"))}
CITY_AGENTS = ("az:city-4:1000", "net:city-5", "net:city-2")  # their networks play no other board
DEFAULT_OPPONENT = "uct:100"
CHART_SIMULATIONS = 200  # for each position of the chart of a game
PREPARED = ("random", "greedy", "planner", "uct:2") + ("az:city-4:2",) * HAS_NETWORKS
EDITION_DESCRIPTIONS = {
    "capstone-2024": "the newest rules",
    "capstone-2019": "you may share any street of a line that ends where yours does, but not two "
    "streets in a row",
    "splotter-1999": "the first edition: 28 line markers for seats 0 to 2, 18 for seats 3 and 4; "
    "up to 20 buses; lines are shared as in capstone-2019",
    "condensed": "up to 20 buses, unlimited line markers",
}


@dataclass
class Catalogue:
    """Rules and boards by name, the default first.

    trusted: agents that pages may request because the command line names them. seats: the start
    page's first choice of players, as specs, "me" or "friend".
    """

    rules: dict[str, Rules] = field(default_factory=lambda: dict(EDITIONS))
    boards: dict[str, Board] = field(
        default_factory=lambda: {name: load_board(name) for name in board_names()}
    )
    trusted: set[str] = field(default_factory=set)
    seats: tuple[str, ...] = ("me", *[DEFAULT_OPPONENT] * (DEFAULT_PLAYERS - 1))

    def check_agent(self, spec: str, board: Board) -> None:
        """Check that a page may let an agent play on a board.

        RequestError: agent_refused.
        """
        if spec not in (*AGENTS, *CITY_AGENTS, *self.trusted):
            text = f"The page does not offer {spec[:80]!r}; name it on the command line."
            raise RequestError("agent_refused", text)
        if spec in CITY_AGENTS and not is_city(board):
            raise RequestError("agent_refused", f"{spec} plays the city only.")

    def to_dict(self) -> dict[str, Any]:
        """The options of the start page as plain data."""
        trusted = dict.fromkeys(sorted(self.trusted - {*AGENTS}), ("", "named on the command line"))
        return {
            "players": [3, 4, 5],
            "editions": [
                {"name": name, "description": EDITION_DESCRIPTIONS.get(rules.name, "custom rules")}
                for name, rules in self.rules.items()
            ],
            "boards": [*self.boards],
            "city_boards": [name for name, board in self.boards.items() if is_city(board)],
            "agents": [
                {"spec": spec, "name": name, "description": text, "city_only": spec in CITY_AGENTS}
                for spec, (name, text) in {**AGENTS, **trusted}.items()
            ],
            "default_opponent": DEFAULT_OPPONENT,
            "seats": [*self.seats],
        }


def is_city(board: Board) -> bool:
    """Return whether a board is the city, under any name."""
    return board.fingerprint == load_board("city").fingerprint


def analyst_of(board: Board) -> str:
    """Return the spec without its budget of the strongest search that plays on a board."""
    if not HAS_NETWORKS:
        return "uct"
    return "az:city-4" if is_city(board) else "az:generated-4"


def agent_name(spec: str) -> str:
    """The displayed name of an agent: its level if it has one, else its spec."""
    return AGENTS[spec][0] if spec in AGENTS else short_spec(spec)
