"""Which network learns more, in the same time and from the same number of decisions.

`python -m busenv.experiments.studies.network_comparison` trains each of them twice and prints the table.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console

from busenv.agents.networks.mlp import SEAT_VALUE_NETWORKS
from busenv.experiments.common.console import TextTable
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.training.training_run import rate
from busenv.train.config import PRESETS, PPOConfig
from busenv.train.ppo_run import PPORun

WIDTHS = {"mlp": 256, "board": 32}
BOTS = ("greedy", "planner")


def study(config: PPOConfig, games: int) -> list[str]:
    """Train, rate; decisions, seconds, and wins against three of each bot."""
    with tempfile.TemporaryDirectory() as folder:
        run = PPORun(config, Path(folder))
        while not run.is_done:
            seconds = run.step().seconds
        cells = [f"{run.decisions:,}", f"{seconds:.0f}"]
        for bot in BOTS:
            score = rate(run, run.agent, bot, games)[0]
            low, high = score.interval()
            cells.append(f"{score.wins / games:.1%}\n({low:.0%} to {high:.0%})")
        return cells


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.studies.network_comparison", description=__doc__
    )
    parser.add_argument("--seconds", type=float, default=180.0, help="equal time (180)")
    parser.add_argument("--decisions", type=int, default=500_000, help="equal data (500000)")
    parser.add_argument("--games", type=int, default=400, help="of each rating (400)")
    parser.add_argument("--threads", type=int, default=2, help="of torch (2)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    header = ["network", "width", "equal", "decisions", "seconds", *(f"3 {bot}" for bot in BOTS)]
    rows = []
    for limit in ("seconds", "decisions"):
        for network in SEAT_VALUE_NETWORKS:
            width = WIDTHS[network]
            changes = {
                limit: getattr(chosen, limit),
                "network": network,
                "width": width,
                "threads": chosen.threads,
                "seed": chosen.seed,
            }
            cells = study(PRESETS["quick"].changed(changes), chosen.games)
            rows.append([network, str(width), limit, *cells])
    title = f"wins of {chosen.games} games, 4 players; par is 25%"
    TextTable(title, header, rows).show(Console())


if __name__ == "__main__":
    run_command(main)
