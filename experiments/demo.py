"""The main job in small: train an agent by self-play, rate it against the bots, show the result."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import busenv
from agents import Agent, make_agent
from agents.policy import PolicyAgent, save_policy
from busenv.files import write_whole
from experiments.match import Score, play_match
from train.selfplay import train_selfplay

RATING_EVERY = 15.0  # seconds of training between two points of the learning curve
CURVE_GAMES = 128


@dataclass(frozen=True)
class CurvePoint:
    """How good the agent was after some training: share of wins against three of each bot."""

    seconds: float
    decisions: int
    random: float
    greedy: float
    points: float


def against(agent: Agent, bot: str, games: int, seed: int) -> list[Score]:
    """Play an agent against three of a bot; its own score, then the three's taken together."""
    mine, *others = play_match([agent, *(make_agent(bot, seed + k) for k in range(3))], games)
    together = Score(
        bot,
        sum(s.games for s in others),
        sum(s.wins for s in others),
        sum(s.place for s in others) / 3,
        sum(s.points for s in others) / 3,
        seats=3,
    )
    return [mine, together]


def run_demo(folder: Path, seconds: float = 180.0, games: int = 400, seed: int = 0) -> None:
    """Train for a time, rate, print the table, and leave a report in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    console.print("Compiling (the first time on a machine takes a minute) ...")
    play_match([make_agent(bot) for bot in ("random", "greedy", "random", "greedy")], 1)
    agent, curve = _train(console, folder, seconds, seed)
    save_policy(agent, folder / "policy.pt")
    console.print("Rating ...")
    match_ups = [
        ("ppo against three random", against(agent, "random", games, seed)),
        ("ppo against three greedy", against(agent, "greedy", games, seed)),
        ("greedy against three random", against(make_agent("greedy", seed), "random", games, seed)),
    ]
    table = Table(
        title=f"{games} games each, seats and starting player rotated; par is 25% of wins"
    )
    for column in ("line-up", "agent", "wins", "95% interval", "mean place", "mean points"):
        table.add_column(column, justify="left" if column in ("line-up", "agent") else "right")
    for title, scores in match_ups:
        for row, score in enumerate(scores):
            table.add_row(title if row == 0 else "", *_cells(score))
    console.print(table)
    _draw(folder / "learning_curve.png", curve)
    write_whole(folder / "report.md", _report(match_ups, curve, seconds, games, seed))
    console.print(f"Report: {folder / 'report.md'}, picture: {folder / 'learning_curve.png'}")


def _train(
    console: Console, folder: Path, seconds: float, seed: int
) -> tuple[PolicyAgent, list[CurvePoint]]:
    """Train with a progress bar, rating now and then; what is rated is on disk at once."""
    curve: list[CurvePoint] = []
    bar = Progress(
        TextColumn("training"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )
    with bar:
        task = bar.add_task("training", total=seconds, note="")

        def report(agent: PolicyAgent, elapsed: float, decisions: int) -> None:
            due = not curve or elapsed - curve[-1].seconds >= RATING_EVERY
            if due or elapsed >= seconds:
                curve.append(_rate(agent, elapsed, decisions, seed))
                write_whole(folder / "curve.csv", _csv(curve))
            speed, wins = decisions / max(elapsed, 1e-9), curve[-1].greedy
            note = f"{speed:,.0f} decisions/s, wins against greedy {wins:.0%}"
            bar.update(task, completed=min(elapsed, seconds), note=note)

        agent = train_selfplay(seconds, seed, report=report)
        bar.update(task, completed=seconds)
    return agent, curve


def _rate(agent: PolicyAgent, elapsed: float, decisions: int, seed: int) -> CurvePoint:
    random_bot = against(agent, "random", CURVE_GAMES, seed)[0]
    greedy_bot = against(agent, "greedy", CURVE_GAMES, seed)[0]
    return CurvePoint(
        elapsed,
        decisions,
        random_bot.wins / CURVE_GAMES,
        greedy_bot.wins / CURVE_GAMES,
        greedy_bot.points,
    )


def _cells(score: Score) -> list[str]:
    low, high = score.interval()
    return [
        score.name,
        f"{score.wins / score.games:.1%}",
        f"{low:.1%} to {high:.1%}" if score.seats == 1 else "",
        f"{score.place + 1:.2f}",
        f"{score.points:.2f}",
    ]


def _csv(curve: list[CurvePoint]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow("seconds decisions wins_against_random wins_against_greedy points".split())
    for p in curve:
        shares = [f"{value:.4f}" for value in (p.random, p.greedy, p.points)]
        writer.writerow([f"{p.seconds:.1f}", p.decisions, *shares])
    return out.getvalue()


def _draw(path: Path, curve: list[CurvePoint]) -> None:
    """The learning curve as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import PercentFormatter

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    decisions = [p.decisions / 1000 for p in curve]
    axes.plot(decisions, [p.random for p in curve], "o-", color="#0072b2", label="against 3 random")
    axes.plot(decisions, [p.greedy for p in curve], "s-", color="#d55e00", label="against 3 greedy")
    axes.axhline(0.25, color="0.5", linestyle=":", label="par")
    axes.set(
        title="Self-play PPO, 4 players",
        xlabel="thousand decisions learned from",
        ylabel=f"games won (of {CURVE_GAMES})",
        ylim=(0, 1),
    )
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.3)
    axes.legend(loc="center right")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    plt.close(figure)
    write_whole(path, buffer.getvalue())


def _report(
    match_ups: list[tuple[str, list[Score]]],
    curve: list[CurvePoint],
    seconds: float,
    games: int,
    seed: int,
) -> str:
    lines = [
        "# A small agent, trained and rated",
        "",
        f"busenv {busenv.__version__}, 4 players, rules capstone-2024. Trained {seconds:g} s by "
        f"self-play, {curve[-1].decisions:,} decisions learned from, seed {seed}. "
        f"{games} games a line-up, seats and starting player rotated; par is 25% of wins.",
        "",
        "| line-up | agent | wins | 95% interval | mean place | mean points |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for title, scores in match_ups:
        lines += [f"| {title} | " + " | ".join(_cells(score)) + " |" for score in scores]
    lines += ["", "![learning curve](learning_curve.png)", ""]
    lines += ["`curve.csv` has the curve in numbers, `policy.pt` the agent: build it with"]
    lines += ['`agents.make_agent("ppo:policy.pt")`.', ""]
    return "\n".join(lines)
