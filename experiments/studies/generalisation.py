"""What a network of kind `board` carries over to boards that it has not seen.

Run `python -m busenv.experiments.studies.generalisation FOLDER`. For each number of training boards
and each seed, a network imitates games of TEACHER on that many generated boards of the city's size,
for the same number of decisions. It then plays without search, one seat against copies of each
opponent, on its training boards (at most TEST_BOARDS of them), on TEST_BOARDS boards of the split
`test`, and on the city. FOLDER receives the runs, `results.json`, the table in Markdown and the
picture; a stopped study resumes.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

from busenv.experiments.benchmark.aggregates import bootstrap_interval, interquartile_mean
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.common.plot_style import default_style, save_png
from busenv.experiments.training.run_folder import changed_settings, store_config
from busenv.experiments.training.training_run import against
from busenv.io import write_whole
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_run import ExpertRun

TEACHER = "uct:50"
TRAINING_BOARDS = {"1": 1, "10": 10, "100": 100, "1,000": 1_000, "unlimited": 1_000_000}
TEST_BOARDS = 100
OPPONENTS = {"greedy": 400, "planner": 400, "uct:100": 100}  # and games
PLACES = ("training boards", "unseen boards", "the city")

Shares = dict[str, dict[str, float]]  # of wins, by place and opponent
Results = dict[str, Shares]  # by run, "boards/seed"


def config_of(boards: int, seed: int, decisions: int) -> ExpertConfig:
    """Return the settings of a run."""
    return ExpertConfig(
        network="board",
        width=64,
        board=f"generated:city:train:{boards}",
        players=(4,),
        decisions=decisions,
        seconds=None,
        learning_rate=1.5e-3,
        teacher=TEACHER,
        teacher_games=1_000_000,
        teacher_share=1.0,
        teacher_sample_share=1.0,
        teacher_reuse=2.0,
        replay_size=decisions,
        seed=seed,
    )


def measure_run(boards: int, config: ExpertConfig, folder: Path) -> Shares:
    """Train, or resume a run, and return its shares of wins."""
    run = ExpertRun(config, folder)
    store_config(folder, config)
    while not run.is_done:
        run.step()
    seen = f"generated:city:train:{min(boards, TEST_BOARDS)}"
    specs = dict(zip(PLACES, (seen, f"generated:city:test:{TEST_BOARDS}", "city"), strict=True))
    shares: Shares = {place: {} for place in PLACES}
    for (place, board), (bot, games) in product(specs.items(), OPPONENTS.items()):
        own = against(run.agent, bot, games, config.seed, board=board)[0]
        shares[place][bot] = own.wins / own.games
    return shares


def study(folder: Path, decisions: int, seeds: int) -> Results:
    """Measure all runs that the folder's results lack; return all results."""
    path = folder / "results.json"
    results: Results = json.loads(path.read_text()) if path.exists() else {}
    for seed, (name, boards) in product(range(seeds), TRAINING_BOARDS.items()):
        run = f"{boards}/{seed}"
        config = config_of(boards, seed, decisions)
        (folder / run).mkdir(parents=True, exist_ok=True)
        changed_settings(folder / run, config)  # RunError for a run of other settings
        if run in results:
            continue
        results[run] = measure_run(boards, config, folder / run)
        write_whole(path, json.dumps(results, indent=1) + "\n", follow_links=False)
        shares = ", ".join(f"{place} {won['planner']:.1%}" for place, won in results[run].items())
        print(f"{name} training boards, seed {seed}, against planner: {shares}", flush=True)
    return results


def scores(results: Results, boards: int, place: str, bot: str) -> np.ndarray:
    """Return the shares of wins of all seeds."""
    runs = (run for run in results if run.startswith(f"{boards}/"))
    return np.array([results[run][place][bot] for run in runs])


def table(results: Results) -> str:
    """Return interquartile means over the seeds with 95% bootstrap intervals, in Markdown."""
    lines = [
        f"| training boards | {' | '.join(f'{p}, {b}' for p, b in product(PLACES, OPPONENTS))} |",
        "|---" * (1 + len(PLACES) * len(OPPONENTS)) + "|",
    ]
    for name, boards in TRAINING_BOARDS.items():
        cells = []
        for place, bot in product(PLACES, OPPONENTS):
            shares = scores(results, boards, place, bot)
            low, high = bootstrap_interval(shares[:, None])
            cells.append(f"{interquartile_mean(shares):.1%} [{100 * low:.1f}, {100 * high:.1f}]")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@default_style()
def draw(results: Results, path: Path) -> None:
    """Draw the shares of wins against each opponent by the number of training boards."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    axes = figure.subplots(1, len(OPPONENTS), sharey=True)
    for axis, bot in zip(axes, OPPONENTS, strict=True):
        for place in PLACES:
            shares = [scores(results, boards, place, bot) for boards in TRAINING_BOARDS.values()]
            means = np.array([interquartile_mean(one) for one in shares])
            bounds = np.array([bootstrap_interval(one[:, None]) for one in shares])
            line = axis.plot(range(len(means)), 100 * means, marker="o", label=place)[0]
            axis.fill_between(
                range(len(means)), *(100 * bounds.T), alpha=0.2, color=line.get_color()
            )
        axis.axhline(25, color="gray", linewidth=0.8, linestyle=":")
        axis.set_title(f"against three {bot}")
        axis.set_xticks(range(len(TRAINING_BOARDS)), [*TRAINING_BOARDS])
        axis.set_xlabel("training boards")
    axes[0].set_ylabel("games won (%)")
    axes[0].set_ylim(0, 100)
    axes[0].legend(loc="upper left")
    save_png(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="busenv.experiments.studies.generalisation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--decisions", type=int, default=1_000_000, help="of each run (1000000)")
    parser.add_argument("--seeds", type=int, default=3, help="runs for each number of boards (3)")
    arguments = parser.parse_args()
    results = study(arguments.folder, arguments.decisions, arguments.seeds)
    text = table(results)
    write_whole(arguments.folder / "table.md", text, follow_links=False)
    draw(results, arguments.folder / "generalisation.png")
    print(text)


if __name__ == "__main__":
    run_command(main)
