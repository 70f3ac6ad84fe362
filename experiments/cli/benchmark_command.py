"""`busenv bench agents`: how much learners learn, by the protocol."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from busenv.experiments.cli.command import new_folder, positive, seed

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = (
    "Train a learner by the protocol busenv-agents-v1 and measure it against greedy, planner and "
    "the search, run by run with different seeds, or measure agents of your own; then print the "
    "tables of all cards. What is stopped goes on in its folder."
)
EXAMPLES = (
    "busenv bench agents                      (the tables so far)",
    "busenv bench agents ppo --seeds 0-4 --decisions 100000 --out runs/ppo",
    "busenv bench agents net:my.safetensors --name mine --decisions 1000000",
    "busenv bench agents --add runs/ppo/card.json --page docs/baselines.md",
)


def add_agents(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "learners",
        nargs="*",
        metavar="LEARNER|AGENT",
        help="ppo, one-seat, every-seat, imitation, expert-iteration, imitation-ppo: one is trained and measured; or "
        "agents that have learned, such as net:PATH or exec:COMMAND: measured as runs of a learner",
    )
    parser.add_argument(
        "--seeds", type=_seeds, metavar="N-M", default=range(5), help="runs of a learner (0-4)"
    )
    parser.add_argument(
        "--players", type=int, choices=(3, 4, 5), default=4, help="of each game (4)"
    )
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        "--decisions", type=int, metavar="N", default=100_000, help="to learn from (100000)"
    )
    budget.add_argument("--hours", type=positive(float), metavar="H", help="of training instead")
    parser.add_argument("--name", metavar="NAME", help="of agents of your own, in the table")
    parser.add_argument(
        "--about", metavar="WORDS", help="what they are and how they learned, in a line"
    )
    parser.add_argument(
        "--threads", type=positive(int), metavar="N", default=2, help="of torch (2)"
    )
    parser.add_argument(
        "--workers",
        type=positive(int),
        metavar="N",
        default=os.cpu_count() or 1,
        help="processes that measure a program (all cores)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="run folder (runs/bench-...); goes on there"
    )
    parser.add_argument(
        "--add", type=Path, nargs="+", default=[], metavar="CARD", help="to the project's cards"
    )
    parser.add_argument(
        "--page", type=Path, nargs="+", default=[], metavar="FILE", help="to put the tables into"
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE.png", help="of the curves of this budget"
    )


def run_agents(chosen: argparse.Namespace) -> None:
    from rich.console import Console

    from busenv.experiments.benchmark.benchmark_report import draw_curves, put_tables, tables
    from busenv.experiments.benchmark.results import add_results, all_results

    console = Console()
    if chosen.hours:
        chosen.decisions = None
    own = [_measure(chosen, console)] if chosen.learners else []
    for path in add_results(chosen.add):
        console.print(f"Added: {path}", markup=False, soft_wrap=True)
    cards = all_results(own)
    for sheet in tables(cards):
        sheet.show(console)
    for page in chosen.page:
        put_tables(page, cards)
    if chosen.picture:
        wanted = chosen.players, chosen.decisions, chosen.hours
        alike = [card for card in cards if (card.players, card.decisions, card.hours) == wanted]
        draw_curves(chosen.picture, alike)


def _measure(chosen: argparse.Namespace, console: Console) -> Path:
    """Train and measure a learner, or measure agents; where the card is."""
    from busenv.experiments.benchmark.learners import LEARNERS
    from busenv.experiments.benchmark.measure import CARD, bench_agents, bench_learner
    from busenv.experiments.benchmark.results import make_entry

    first, *others = chosen.learners
    folder = chosen.out or new_folder("bench")
    limits = chosen.players, chosen.decisions, chosen.hours
    if first in LEARNERS:
        if others or chosen.name or chosen.about:
            raise ValueError(f"{first} is one learner, and has its name: nothing goes with it")
        entry = make_entry(first, LEARNERS[first].about, *limits)
        bench_learner(entry, chosen.seeds, folder, console, chosen.threads)
    else:
        name = chosen.name or first
        entry = make_entry(name, chosen.about or ", ".join(chosen.learners), *limits)
        bench_agents(entry, chosen.learners, folder, console, chosen.workers)
    console.print(f"Card: {folder / CARD}", markup=False, soft_wrap=True)
    return folder / CARD


def _seeds(text: str) -> range:
    """Seeds from the command line: 3, or 0-4."""
    found = re.fullmatch("([0-9]+)(?:-([0-9]+))?", text)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise argparse.ArgumentTypeError(f"{text} is not N or N-M")
    return range(seed(found[1]), seed(found[2] or found[1]) + 1)
