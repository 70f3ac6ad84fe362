"""What can be chosen on the start page, and which agents a page may ask for.

A page's words may be anybody's: from there no program is run and no file is opened. Agents, boards
and rules named on the command line are offered besides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import busenv.agents
from busenv import EDITIONS, Board, Rules, load_board
from busenv.agents.registry import AZ, NET, UCT
from busenv.error_text import did_you_mean
from busenv.experiments.play.messages import Refusal
from busenv.game.board import board_names

PLAYERS = 4  # of a game that nobody says anything about
NETWORKS = find_spec("torch") is not None and find_spec("safetensors") is not None  # can play here
AGENTS = {  # offered by name, the strongest first
    **({"az:city-3:1000": "strongest: a search that a network guides"} if NETWORKS else {}),
    "uct:1000": "strong: looks 1000 games ahead",
    **({"net:city-2": "good: a trained network, answers at once"} if NETWORKS else {}),
    "uct:100": "fair: looks 100 games ahead",
    "planner": "fair: one decision ahead, with a plan",
    "greedy": "weak: takes what is best at once",
    "random": "no plan at all",
}
OPPONENT = next(iter(AGENTS))  # it answers within a second
ANALYSTS = tuple(  # which tell what they make of a position
    spec for spec in AGENTS if spec in ("az:city-3:1000", "uct:1000", "net:city-2")
)
GRAPHIST = "uct:200"  # whose chances the graph shows
EDITION_WORDS = {
    "capstone-2024": "the newest rules",
    "capstone-2019": "sharing a street needs the end of a line only",
    "splotter-1999": "the first edition: more line markers, up to 20 buses",
    "condensed": "up to 20 buses, no limit of line markers",
}
MODELS = Path(busenv.agents.__file__).parent / "networks" / "models"
MODEL_NAME = "[A-Za-z0-9][A-Za-z0-9_-]*"  # no path has such a name
SIMPLE = ("random", "greedy", "planner")
MOST_SIMULATIONS, MOST_SECONDS = 20_000, 20.0


@dataclass
class Offers:
    """Rules and boards by name, the default first, and agents that only the command line allows.

    seats: how the start page seats people and agents at first, as specs, "me" and "friend".
    """

    rules: dict[str, Rules] = field(default_factory=lambda: dict(EDITIONS))
    boards: dict[str, Board] = field(
        default_factory=lambda: {name: load_board(name) for name in board_names()}
    )
    trusted: set[str] = field(default_factory=set)
    seats: tuple[str, ...] = ("me", *[OPPONENT] * (PLAYERS - 1))

    def add(self, more: Offers) -> None:
        """Offer what others offer too, first and by their names, and seat people as they do."""
        self.rules = {**more.rules, **self.rules, **more.rules}
        self.boards = {**more.boards, **self.boards, **more.boards}
        self.trusted |= more.trusted
        self.seats = more.seats

    def check_agent(self, spec: str) -> None:
        """Refusal no_such_agent or agent_refused, unless a page may ask for an agent."""
        if spec in self.trusted or spec in SIMPLE:
            return
        if found := re.fullmatch(UCT, spec):
            _check_search(spec, *found.groups())
        elif found := re.fullmatch(AZ, spec):
            threads, name, *budget = found.groups()
            _check_model(spec, name)
            _check_search(spec, threads, *budget)
        elif found := re.fullmatch(NET, spec):
            _check_model(spec, found[2])
        elif spec.startswith("exec"):
            raise Refusal(
                "agent_refused", "Programs play only when they are named on the command line."
            )
        else:
            hint = did_you_mean(spec, [*AGENTS])
            raise Refusal("no_such_agent", f"There is no agent {spec[:80]!r}{hint}.")

    def board_of(self, fingerprint: str) -> Board | None:
        """The board of a fingerprint, if it is offered."""
        return next((b for b in self.boards.values() if b.fingerprint == fingerprint), None)

    def choices(self) -> dict[str, Any]:
        """What the start page offers, as plain data."""
        agents = {spec: "named on the command line" for spec in sorted(self.trusted)}
        return {
            "players": [3, 4, 5],
            "editions": [
                {"name": name, "words": EDITION_WORDS.get(name, "rules of your own")}
                for name in self.rules
            ],
            "boards": [*self.boards],
            "agents": [
                {"spec": spec, "words": words} for spec, words in {**AGENTS, **agents}.items()
            ],
            "opponent": OPPONENT,
            "seats": [*self.seats],
        }


def helpers_of(specs: Iterable[str | None]) -> list[str]:
    """Agents offered for a hint in a game of agents of these specs, the default first. Those named
    by a path or a program are left out: pages may not ask for them."""
    ours = [spec for spec in specs if spec and spec == short_spec(spec) and "exec" not in spec]
    return [*dict.fromkeys((*ANALYSTS, *ours, "planner", "greedy"))]


def short_spec(spec: str) -> str:
    """A spec as everybody at the table may read it: of a path its last part, of a program its
    name."""
    kind, _, rest = spec.partition(":")
    if kind.startswith("exec"):
        return f"{kind}:{Path(rest.split()[0]).name}" if rest.split() else kind
    parts = [Path(part).stem if "/" in part or "\\" in part else part for part in rest.split(":")]
    return ":".join((kind, *parts)) if rest else kind


def for_analysis(spec: str, seconds: float) -> str:
    """The spec of an agent that thinks for some seconds at a time, where it is a search."""
    return re.sub(r"^((?:uct|az)(?:@\d+)?(?::.+)?):[0-9.]+s?$", rf"\g<1>:{seconds:g}s", spec)


def _check_search(
    spec: str, threads: str | None, simulations: str | None, seconds: str | None
) -> None:
    """Refuse a search that would keep this machine busy for long."""
    long = int(simulations or 0) > MOST_SIMULATIONS or float(seconds or 0) > MOST_SECONDS
    if long or int(threads or 1) > (os.cpu_count() or 1):
        raise Refusal(
            "agent_refused",
            f"{spec[:80]} thinks for too long; allowed: {MOST_SIMULATIONS:,} simulations, "
            f"{MOST_SECONDS:g} seconds, {os.cpu_count() or 1} threads",
        )


def _check_model(spec: str, name: str) -> None:
    if not re.fullmatch(MODEL_NAME, name):
        raise Refusal(
            "agent_refused", "Models by their path play only when named on the command line."
        )
    if not (MODELS / f"{name}.safetensors").is_file():
        raise Refusal("no_such_agent", f"There is no model {name[:80]!r}.")
