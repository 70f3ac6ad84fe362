"""Agents and the play page, looked up through the entry points of installed packages.

This layer imports neither agents nor the play page. A package registers `make_agent(spec, seed)`
under the entry-point group "busenv.agents", or `play` under "busenv.play"; busenv's own are in
`busenv.agents` and `busenv.experiments.play`.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from busenv.error_text import missing_extra
from busenv.game.board import Board
from busenv.game.rules import Rules


def make_agent(spec: str, seed: int = 0) -> Any:
    """Build the agent that a spec names.

    spec: "random", "greedy", "planner", "uct:SIMULATIONS", "net:NAME", "az:NAME:SIMULATIONS",
        "exec:COMMAND", "llm:MODEL" or a variant (`busenv.agents` lists all), or the spec of an
        agent of another installed package.
    seed: 0 to 2**64 - 1, seeds the agent's random choices.

    Returns an object with `act(game)` and `reset(seed)`; busenv's own are `busenv.agents.Agent`s.
    Raises ValueError if no installed package builds such an agent.
    """
    reasons = []
    for entry_point in sorted(entry_points(group="busenv.agents"), key=lambda entry: entry.name):
        try:
            return entry_point.load()(spec, seed)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError("; ".join(reasons) or f"no installed package builds agents such as {spec!r}")


def play(
    *seats: str,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
    first_player: int | None = None,
    seed: int | None = None,
    folder: str | Path = "runs/play",
    height: int = 900,
) -> Any:
    """Play in a notebook cell: shows the page of `busenv play`, served by this machine, in a frame.

    seats: 3 to 5 of "me", "friend" (joins through a link) and agent specs, as in
        `busenv.play("me", "uct:1000", "greedy")`; without seats the page offers a choice.
    folder: where games are saved and resumed from.
    height: height of the frame, in pixels.

    The other arguments and errors are those of `busenv.Game`. Requires the extras `play` and
    `notebooks`; raises ModuleNotFoundError with the install command if one is missing.
    """
    for entry_point in entry_points(group="busenv.play", name="play"):
        try:
            return entry_point.load()(seats, rules, board, first_player, seed, folder, height)
        except ModuleNotFoundError as error:
            raise missing_extra(error, "play,notebooks", "busenv.play") from error
    raise ModuleNotFoundError("no installed package provides the entry point 'play'")
