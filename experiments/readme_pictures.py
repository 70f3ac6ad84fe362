"""Draw the pictures of README.md and busenv/RULES.md: `python -m experiments.readme_pictures`.

busenv/pictures has positions of one recorded game, docs/assets an animation of it. docs/assets also
has strength.csv, from the benchmark's results and the claims, and a picture of its numbers.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from pathlib import Path

import numpy as np

import busenv
from busenv.common.plot_style import default_style, save_png
from busenv.evaluation.benchmark.results import BUNDLED, read_result
from busenv.evaluation.curves import mean_interval
from busenv.evaluation.replay_files import draw_record, write_animation
from busenv.io import write_whole
from experiments.claims import read_claims

FOLDER = Path(busenv.__file__).parent / "pictures"
RECORD = "game.json"
POSITIONS = {  # ply by name of the picture
    "setup": 16,  # every player has two buildings and two streets
    "selected": 163,  # round 6: all actions are selected, none is resolved
    "delivery": 184,  # round 6: a passenger is in a bus
    "end": 277,  # three players with the same points
}

ASSETS = Path(__file__).parents[1] / "docs/assets"
PAR = 0.25  # share of games that equal players win: four players
OPPONENTS = (  # in order of strength
    *("greedy", "planner", "uct:100", "net:city-2", "net:city-3"),
    *("uct:300", "uct:1000", "net:city-4", "az:city-4:300"),
)
LEARNERS = {  # line by the name of the benchmark's result
    "one-seat-4-1000000": "Stable-Baselines3's usual setup, 1 million decisions",
    "ppo-4-1000000": "PPO among bots, 1 million",
    "ppo-4-10000000": "PPO among bots, 10 million",
    "imitation-4-1000000": "imitation of a search, 1 million",
}
NETWORKS = {
    "net:city-2": "bundled network city-2",
    "net:city-4": "bundled network city-4",
    "net:city-5": "bundled network city-5",
}
COLOURS = ("#b04a3a", "#8fb8de", "#2a6f97", "#c9a227", "#9a9a9a", "#222222", "#5a9367")

Share = tuple[float, float, float]  # share of games won, and its interval


def draw_pictures(folder: Path = FOLDER) -> None:
    """Write NAME.svg for each of `POSITIONS` of the recorded game."""
    for name, ply in POSITIONS.items():
        draw_record(FOLDER / RECORD, ply, folder / f"{name}.svg")


def read_shares() -> dict[str, dict[str, Share]]:
    """Return the share of games won by line and opponent, without those that were not measured."""
    lines: dict[str, dict[str, Share]] = {}
    for name, line in LEARNERS.items():
        runs = read_result(BUNDLED / f"{name}.json").runs
        lines[line] = {}
        for opponent in runs[0].panel:
            shares = np.array([run.panel[opponent].share for run in runs])
            lines[line][opponent] = (float(shares.mean()), *mean_interval(shares))
    claims = read_claims()
    for agent, line in NETWORKS.items():
        matches = {o: claims.get(f"{agent}/{o}/4") for o in OPPONENTS}
        lines[line] = {o: _share(claim.figures[0]) for o, claim in matches.items() if claim}
    return lines


def _share(figure: str) -> Share:
    """Return the numbers of a figure such as 88.5% [85.0, 91.3]."""
    value, low, high = (float(number) / 100 for number in re.findall(r"[\d.]+", figure))
    return value, low, high


def share_table(lines: dict[str, dict[str, Share]]) -> str:
    """Return a CSV table with a row for each share of games won, in percent."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("agent", "opponent", "won", "low", "high"))
    for line, shares in lines.items():
        for opponent in filter(shares.__contains__, OPPONENTS):
            writer.writerow((line, opponent, *(f"{100 * x:.1f}" for x in shares[opponent])))
    return file.getvalue()


@default_style()
def draw_shares(lines: dict[str, dict[str, Share]], path: Path) -> None:
    """Draw one line for each agent over the opponents, with intervals."""
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots()
    for (line, shares), colour in zip(lines.items(), COLOURS, strict=True):
        places = [k for k, opponent in enumerate(OPPONENTS) if opponent in shares]
        won, low, high = np.array([shares[OPPONENTS[k]] for k in places]).T
        errors = (won - low, high - won)
        axes.errorbar(places, won, errors, fmt="o-", ms=4, capsize=2, color=colour, label=line)
    axes.axhline(PAR, color="0.3", linestyle=":", label="par, 25%")
    axes.set_xticks(range(len(OPPONENTS)), OPPONENTS)
    axes.set(
        xlim=(-0.3, len(OPPONENTS) - 0.7),
        ylim=(0, 1),
        xlabel="three copies of the opponent",
        ylabel="games won",
    )
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.tick_params(axis="x", labelsize="small")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    save_png(figure, path)


def main() -> None:
    """Write all pictures."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    draw_pictures()
    write_animation(FOLDER / RECORD, ASSETS / "game.gif")
    lines = read_shares()
    write_whole(ASSETS / "strength.csv", share_table(lines))
    draw_shares(lines, ASSETS / "strength.png")


if __name__ == "__main__":
    main()
