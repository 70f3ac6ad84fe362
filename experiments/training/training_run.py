"""A training run with all that is shown and kept of it: bar, ratings, curve, TensorBoard, model."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from torch.utils.tensorboard import SummaryWriter

from busenv import Board, Rules
from busenv.agents import Agent, make_agent
from busenv.cluster import connected
from busenv.experiments.common.runs import lock_folder
from busenv.experiments.ratings.match import Score, play_match
from busenv.experiments.training.learning_curve import (
    CurvePoint,
    draw_curve,
    read_curve,
    write_curve,
)
from busenv.experiments.training.run_folder import changes, keep_config
from busenv.train.config_files import AnyConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.ppo_run import PPORun
from busenv.train.run import MODEL, Iteration

AnyRun = PPORun | ExpertRun

CURVE, PICTURE = "curve.csv", "learning_curve.png"
SAVE_EVERY = 30.0  # seconds between checkpoints
COLLAPSED = 0.1  # nats of entropy a decision below which there is a warning


def against(
    agent: Agent,
    bot: str,
    games: int,
    seed: int,
    rules: str | Rules = "capstone-2024",
    board: str | Board = "city",
    players: int = 4,
) -> list[Score]:
    """Play an agent against copies of a bot; its own score, then theirs taken together.

    players: in a game, copies included. All are reset, so that the games depend on the agents and
    the seed alone.
    """
    agent.reset(seed + 3)
    line_up = [agent, *(make_agent(bot, seed + k) for k in range(players - 1))]
    own, *others = play_match(line_up, games, rules, board)
    together = Score(
        bot,
        sum(s.games for s in others),
        sum(s.wins for s in others),
        sum(s.place for s in others) / len(others),
        sum(s.points for s in others) / len(others),
        seats=len(others),
    )
    return [own, together]


def rate(run: AnyRun, agent: Agent, bot: str, games: int) -> list[Score]:
    """`against`, in the games that a run is rated in."""
    return against(
        agent, bot, games, run.config.seed, run.rules, run.board, run.config.rating_players
    )


def _own_games(config: ExpertConfig) -> str:
    return "self-play without search" if config.policy_only else "self-play by search"


def describe_training(config: AnyConfig) -> str:
    """How an agent is trained, in words: `imitation of planner, then PPO by self-play`."""
    if isinstance(config, ExpertConfig):
        begin = f"games of {config.teacher}, then " if config.teacher_games else ""
        if config.offline_data:
            begin = "decisions of earlier runs, then "
        return f"{begin}expert iteration by {_own_games(config)}"
    phases = []
    if config.warm_start and config.imitation_share:
        phases.append(f"imitation of {config.warm_start}")
    if not phases or config.imitation_share < 1:
        bots = ", ".join(config.bots)
        phases.append(
            f"PPO among {bots} and past selves" if config.opponent_share else "PPO by self-play"
        )
    return ", then ".join(phases)


def run_training(
    config: AnyConfig, folder: Path, console: Console, ray: str = ""
) -> tuple[AnyRun, list[CurvePoint]]:
    """Train in a folder, or go on there, until the run is done; leave model, card and curve.

    ray: the cluster to play on (`busenv.cluster.connected`); "" for none.

    On Ctrl-C they are left too, with a checkpoint to go on from.
    RunError when the folder is in use or holds a run that these settings do not go on with; see
    `busenv.train.ppo_run.PPORun`.
    """
    with connected(ray), lock_folder(folder):
        changed = changes(folder, config)
        read_curve(folder / CURVE)  # a damaged one is told before anything is changed
        console.print(f"Training: {escape(describe_training(config))}.")
        console.print("Compiling (the first time on a machine takes a minute) ...")
        if isinstance(config, ExpertConfig):
            run: AnyRun = ExpertRun(config, folder, bool(ray))
        else:
            run = PPORun(config, folder, bool(ray))
        keep_config(folder, config)
        run.save()  # after the settings, which it is of no use without
        if run.iteration:
            words = f", with {', '.join(changed)}" if changed else ""
            console.print(f"Going on after {run.decisions:,} decisions{escape(words)}.")
        try:
            curve = _train(run, console)
        except KeyboardInterrupt:
            _save_at_once(run)
            console.print(
                f"Stopped after {run.decisions:,} decisions; checkpoint and {MODEL} are in "
                f"{escape(str(folder))}. To go on: busenv train {escape(shlex.quote(str(folder)))}",
                soft_wrap=True,
            )
            raise
    return run, curve


def _save_at_once(run: AnyRun) -> None:
    """Save on Ctrl-C; what cannot be saved is told in the line that the command ends with."""
    try:
        run.save()
    except OSError as error:
        raise KeyboardInterrupt(f"nothing saved since the last checkpoint: {error}") from error


def _train(run: AnyRun, console: Console) -> list[CurvePoint]:
    """Iterate until the run is done; what is rated is on disk at once."""
    config, folder = run.config, run.folder
    curve = [p for p in read_curve(folder / CURVE) if p.decisions <= run.decisions]
    saved, warned = run.seconds, False
    bar = training_bar(console)
    with bar, SummaryWriter(folder / "tensorboard", purge_step=run.decisions + 1) as board:
        studies = isinstance(config, ExpertConfig) and config.offline_data and not run.iteration
        first = "learning from decisions of earlier runs" if studies else ""
        task = bar.add_task("", total=1.0, note=first)
        while True:
            if run.is_done or not curve or run.seconds - curve[-1].seconds >= config.rate_every:
                _rate(run, curve, board)
            if run.is_done or run.seconds - saved >= SAVE_EVERY:
                run.save()
                saved = run.seconds
            if run.is_done:
                break
            found = run.step()
            for name, value in found.scalars.items():
                board.add_scalar(name, value, found.decisions)
            if not warned and _collapsed(found):
                warned = True
                console.print("[yellow]The policy has nearly stopped exploring: its entropy is low")
            bar.update(task, completed=min(run.progress, 1.0), note=_note(found, curve))
    return curve


def training_bar(console: Console) -> Progress:
    """A short bar, and a note that takes what is left of the line: what three bots and a speed take
    fits into 80 columns, and more is cut there."""
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Progress(
        BarColumn(bar_width=8),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", table_column=rest),
        console=console,
        expand=True,
    )


def _rate(run: AnyRun, curve: list[CurvePoint], board: SummaryWriter) -> None:
    """Add a point to the curve, and draw it: on Ctrl-C there is no time to."""
    config = run.config
    wins = {}
    for bot in config.rated:
        score = rate(run, run.agent, bot, config.rate_games)[0]
        wins[bot] = score.wins / score.games
        name = f"rating/wins_against_{config.rating_players - 1}_{bot}"
        board.add_scalar(name, wins[bot], run.decisions)
    if curve and curve[-1].decisions == run.decisions:
        curve.pop()
    curve.append(CurvePoint(run.seconds, run.decisions, config.rate_games, wins))
    write_curve(run.folder / CURVE, curve)
    words = describe_training(config)
    title = words[0].upper() + words[1:]
    after = _own_games(config) if isinstance(config, ExpertConfig) else "PPO"
    draw_curve(run.folder / PICTURE, curve, title, config.rating_players, run.imitated, after)


def _collapsed(found: Iteration) -> bool:
    return -found.scalars.get("train/entropy_loss", -1.0) < COLLAPSED


def _note(found: Iteration, curve: list[CurvePoint]) -> str:
    if lessons := found.scalars.get("games/teacher_samples"):
        return f"{lessons:,.0f} decisions of a teacher, to be learned from"
    wins = ", ".join(f"{bot} {share:.0%}" for bot, share in curve[-1].wins.items())
    stale = found.scalars.get("games/staleness")
    age = f"; games {stale:.0f} old" if stale else ""
    return f"won {wins}; {found.decisions / found.seconds:,.0f} decisions/s{age}"
