"""Play games on generated boards and on the city, and check that the boards are playable.

Prints a table with a row for each size and agent, which plays all seats, one game on each board:
decisions (fewest to most) and deliveries of a game, the share of wins of the starting player with a
95% interval, the share of lines that cannot grow at the end, and how games end. Exits with status 1
if a mean is outside of BOUNDS.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import NamedTuple

import numpy as np

import busenv
from busenv.cli.command import add_count
from busenv.common.intervals import wilson
from busenv.common.keyboard_interrupt import run_command
from busenv.common.worker_pool import worker_pool
from busenv.game.board_generator import SIZES
from busenv.game.board_specs import as_boards
from busenv.game.position import ENDINGS
from experiments.studies import study_parser

AGENTS = ("random", "planner", "uct:100")
PLAYERS = 4
CITY = "the city"


class Outcome(NamedTuple):
    """The result of one game. stuck: number of lines with markers left that cannot grow."""

    decisions: int
    deliveries: int
    stuck: int
    starter_wins: bool
    ending: str


# Lowest and highest means over the games of one agent. Boards without room for lines, with
# buildings out of reach, or on which the first move decides, would be outside.
BOUNDS = {
    "decisions": (80.0, 300.0),
    "deliveries": (0.5, 60.0),
    "stuck share": (0.0, 0.1),
    "starter wins": (0.05, 0.6),
}


def play_game(spec: str, board: str, seed: int) -> Outcome:
    """Play one game of copies of an agent on a board."""
    agent, game = busenv.make_agent(spec, seed=seed), busenv.Game(PLAYERS, board=board, seed=seed)
    while not game.is_over:
        game.step(agent.act(game))
    layout = busenv.ObservationLayout(game.board)
    row = game.observe(0)
    left = layout.part(row, "players.line_markers")[:PLAYERS, 0]
    growth = layout.part(row, "players.growth")[:PLAYERS, 0]
    return Outcome(
        decisions=len(game.history),
        deliveries=sum(game.deliveries),
        stuck=int(((left > 0) & (growth == 0)).sum()),
        starter_wins=game.ranking()[game.first_player] == 0,
        ending=game.ending or "",
    )


def summarize(outcomes: list[Outcome]) -> dict[str, float]:
    """Return the means that BOUNDS limits."""
    return {
        "decisions": float(np.mean([one.decisions for one in outcomes])),
        "deliveries": float(np.mean([one.deliveries for one in outcomes])),
        "stuck share": float(np.mean([one.stuck for one in outcomes])) / PLAYERS,
        "starter wins": float(np.mean([one.starter_wins for one in outcomes])),
    }


def outside_bounds(means: dict[str, float]) -> list[str]:
    """Return the names of means outside of BOUNDS."""
    return [name for name, (low, high) in BOUNDS.items() if not low <= means[name] <= high]


def main() -> None:
    parser = study_parser("generated_boards", __doc__)
    add_count(parser, "--boards", 100, "number of boards of each size")
    add_count(parser, "--workers", 1, "worker processes")
    arguments = parser.parse_args()
    failed = False
    print("| size | agent | decisions | deliveries | starter wins | stuck lines | endings |")
    print("|---|---|---|---:|---|---:|---|", flush=True)
    with worker_pool(arguments.workers) as pool:
        for size in (CITY, *SIZES):
            boards = ["city"] * arguments.boards
            if size != CITY:
                spec = f"generated:{size}:train:{arguments.boards}"
                boards = [board.name for board in as_boards(spec)]
            for agent in AGENTS:
                play = partial(play_game, agent)
                outcomes = [*pool.map(play, boards, range(len(boards)), chunksize=4)]
                failed |= _report(size, agent, outcomes)
    if failed:
        raise SystemExit(1)


def _report(size: str, agent: str, outcomes: list[Outcome]) -> bool:
    """Print one line; return whether a mean is outside of BOUNDS."""
    means, games = summarize(outcomes), len(outcomes)
    decisions = [one.decisions for one in outcomes]
    low, high = wilson(sum(one.starter_wins for one in outcomes), games)
    endings = Counter(one.ending for one in outcomes)
    shares = ", ".join(f"{end} {endings[end] / games:.0%}" for end in ENDINGS if endings[end])
    outside = outside_bounds(means)
    print(
        f"| {size} | `{agent}` | {means['decisions']:.0f} ({min(decisions)} to {max(decisions)}) | "
        f"{means['deliveries']:.1f} | {means['starter wins']:.0%} [{low:.0%}, {high:.0%}] | "
        f"{means['stuck share']:.1%} | {shares} |"
        + "".join(f" {name} outside of the bounds" for name in outside),
        flush=True,
    )
    return bool(outside)


if __name__ == "__main__":
    run_command(main)
