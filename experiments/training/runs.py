"""A training run with all that is shown and kept of it: bar, ratings, curve, TensorBoard, model."""

from __future__ import annotations

from pathlib import Path

from busenv.agents import Agent, make_agent
from busenv.agents.neural.files import save_model
from busenv.experiments.ratings.match import Score, play_match
from busenv.experiments.ratings.store import keep_settings, locked
from busenv.experiments.training.curve import CurvePoint, draw_curve, read_curve, write_curve
from busenv.train.config import Config
from busenv.train.trainer import Iteration, Run
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

MODEL, CURVE, PICTURE = "model.safetensors", "curve.csv", "learning_curve.png"
SAVE_EVERY = 30.0  # seconds between checkpoints
COLLAPSED = 0.1  # nats of entropy a decision below which there is a warning


def against(
    agent: Agent, bot: str, games: int, seed: int, rules: str = "capstone-2024"
) -> list[Score]:
    """Play an agent against three of a bot; its own score, then the three's taken together.

    All are reset, so that the games depend on the agents and the seed alone.
    """
    agent.reset(seed + 3)
    line_up = [agent, *(make_agent(bot, seed + k) for k in range(3))]
    mine, *others = play_match(line_up, games, rules)
    together = Score(
        bot,
        sum(s.games for s in others),
        sum(s.wins for s in others),
        sum(s.place for s in others) / 3,
        sum(s.points for s in others) / 3,
        seats=3,
    )
    return [mine, together]


def run_training(config: Config, folder: Path, console: Console) -> tuple[Run, list[CurvePoint]]:
    """Train in a folder, or go on there, until the run is done; leave model, card and curve.

    RunError when the folder is in use or holds a run with other settings; see `train.trainer.Run`.
    """
    with locked(folder):
        keep_settings(folder, config.to_dict())
        console.print("Compiling (the first time on a machine takes a minute) ...")
        run = Run(config, folder)
        if run.iteration:
            console.print(f"Going on after {run.decisions:,} decisions.")
        curve = _train(run, console)
        save_model(run.network, run.board, folder / MODEL, run.card())
        draw_curve(folder / PICTURE, curve, "Self-play PPO, 4 players", f"(of {config.rate_games})")
    return run, curve


def _train(run: Run, console: Console) -> list[CurvePoint]:
    """Iterate until the run is done; what is rated is on disk at once."""
    config, folder = run.config, run.folder
    curve = [p for p in read_curve(folder / CURVE) if p.decisions <= run.decisions]
    saved, warned = run.seconds, False
    bar = Progress(
        TextColumn("training"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )
    with bar, SummaryWriter(folder / "tensorboard", purge_step=run.decisions + 1) as board:
        task = bar.add_task("", total=1.0, note="")
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


def _rate(run: Run, curve: list[CurvePoint], board: SummaryWriter) -> None:
    """Add a point to the curve."""
    config = run.config
    wins = {}
    for bot in config.rated:
        score = against(run.agent, bot, config.rate_games, config.seed, config.rules)[0]
        wins[bot] = score.wins / config.rate_games
        board.add_scalar(f"rating/wins_against_3_{bot}", wins[bot], run.decisions)
    if curve and curve[-1].decisions == run.decisions:
        curve.pop()
    curve.append(CurvePoint(run.seconds, run.decisions, wins))
    write_curve(run.folder / CURVE, curve)


def _collapsed(found: Iteration) -> bool:
    return -found.scalars["train/entropy_loss"] < COLLAPSED


def _note(found: Iteration, curve: list[CurvePoint]) -> str:
    speed = found.decisions / found.seconds
    wins = ", ".join(f"{bot} {share:.0%}" for bot, share in curve[-1].wins.items())
    return f"{speed:,.0f} decisions/s, wins against {wins}"
