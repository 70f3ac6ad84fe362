"""Train in a folder, with progress bar, ratings, learning curve, TensorBoard and model."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from torch.utils.tensorboard import SummaryWriter

from busenv import Board, Rules
from busenv.agents import Agent, make_agent
from busenv.agents.match import Score, play_match
from busenv.cluster import connected
from busenv.common.runs import lock_folder
from busenv.game.board_specs import load_boards
from busenv.train.config import PPOConfig
from busenv.train.config_files import AnyConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.learning_curve import (
    CurvePoint,
    draw_curve,
    read_curve,
    write_curve,
)
from busenv.train.ppo_run import PPORun
from busenv.train.run import MODEL, Iteration
from busenv.train.run_folder import changed_settings, store_config

AnyRun = PPORun | ExpertRun

CURVE, PICTURE = "curve.csv", "learning_curve.png"
MAX_BOARDS = 100  # of a rating on a set of boards
SAVE_EVERY = 30.0  # seconds between checkpoints
RATING_SHARE = 0.1  # largest share of a run's time for the ratings before the last
LOW_ENTROPY = 0.1  # entropy of the policy, in nats per decision, below which a warning is printed


def evaluate_against(
    agent: Agent,
    bot: str,
    games: int,
    seed: int,
    *,
    rules: str | Rules = "capstone-2024",
    board: str | Board = "city",
    players: int = 4,
) -> list[Score]:
    """Play an agent against copies of a bot; returns its score and the copies' combined score.

    board: the games, numbered as in `play_match`, are shared out evenly among the boards of a set,
    in order. players: per game, copies included. All agents are reset, so games depend on the
    agents and the seed alone.
    """
    agent.reset(seed + max(3, players - 1))  # no bot has this seed
    line_up = [agent, *(make_agent(bot, seed + k) for k in range(players - 1))]
    loaded = load_boards(board) if isinstance(board, str) else board
    boards = [loaded] if isinstance(loaded, Board) else loaded
    shares = np.array_split(np.arange(games), len(boards))
    scores = [
        play_match(line_up, len(share), rules, boards[k], first_game=int(share[0]), seed=None)
        for k, share in enumerate(shares)
        if len(share)
    ]
    own = [score for score, *_ in scores]
    others = [score for _, *rest in scores for score in rest]
    return [_combined(agent.name, own), _combined(bot, others)]


def _combined(name: str, scores: list[Score]) -> Score:
    """Return the result of several matches or agents as one."""
    games = sum(s.games for s in scores)
    return Score(
        name,
        games,
        sum(s.wins for s in scores),
        sum(s.rank * s.games for s in scores) / games,
        sum(s.points * s.games for s in scores) / games,
    )


def rating_boards(run: AnyRun, games: int) -> str | Board:
    """Return the board of a run's ratings.

    Of a run on a set of boards: a set of boards for validation, equally many of each of the run's
    sizes. If there are enough games, each board has n² games of n players or a few more, so that
    all agents have every seat, and start, almost equally often.
    """
    if isinstance(run.boards, Board):
        return run.boards
    count, sizes = min(games // run.config.rating_players**2, MAX_BOARDS), len(run.boards.sizes)
    return f"generated:{run.boards.size}:validation:{max(count // sizes, 1) * sizes}"


def evaluate(run: AnyRun, agent: Agent, bot: str, games: int) -> list[Score]:
    """Play `evaluate_against` with the rules, boards and number of players of a run's ratings."""
    return evaluate_against(
        agent,
        bot,
        games,
        run.config.seed,
        rules=run.rules,
        board=rating_boards(run, games),
        players=run.config.rating_players,
    )


def _main_phase(config: AnyConfig) -> str:
    """Name of the training phase after imitation."""
    return "PPO" if isinstance(config, PPOConfig) else "expert iteration"


def describe_training(config: AnyConfig) -> str:
    """Describe the training procedure: `imitation of planner, then expert iteration`."""
    if isinstance(config, PPOConfig):
        bots = ", ".join(config.bots)
        return f"PPO among {bots} and past selves" if config.opponent_share else "PPO by self-play"
    phases = [_main_phase(config)]
    if config.offline_data:
        phases.insert(0, "offline data of earlier runs")
    elif config.teacher:
        phases.insert(0, f"imitation of {config.teacher}")
    return ", then ".join(phases)


def describe_run(run: AnyRun) -> str:
    """Describe the training of a run so far, with the share of decisions that imitated."""
    first, then, second = describe_training(run.config).partition(", then ")
    if not (then and run.imitated):
        return f"{first}{then}{second}"
    share = f"{run.imitated / run.decisions:.1%}"
    return first if share == "100.0%" else f"{first} ({share} of the decisions){then}{second}"


def run_training(
    config: AnyConfig, folder: str | Path, console: Console | None = None, ray: str = ""
) -> tuple[AnyRun, list[CurvePoint]]:
    """Start or resume a run in a folder and train to its end; writes model, card and curve.

    console: of the progress; None for standard output. ray: the cluster on which expert iteration
    plays (`busenv.cluster.connected`); "" for none.

    Ctrl-C saves a checkpoint, the model and its card. RunError when the folder is in use or holds a
    run with other settings, ValueError for PPO on a cluster; other errors are those of
    `busenv.train.ppo_run.PPORun`.
    """
    folder, console = Path(folder), console or Console()
    if ray and isinstance(config, PPOConfig):
        raise ValueError(
            "PPO runs on one machine: remove --ray, or train by expert iteration (method expert)"
        )
    with connected(ray), lock_folder(folder):
        changed = changed_settings(folder, config)
        read_curve(folder / CURVE)  # raises, if the file is damaged, before anything is written
        procedure = describe_training(config)
        if isinstance(config, ExpertConfig) and ", then " in procedure:
            procedure += " if the budget lasts"
        console.print(f"Training: {escape(procedure)}.")
        with console.status("Compiling (the first time on a machine takes a minute) ..."):
            if isinstance(config, ExpertConfig):
                run: AnyRun = ExpertRun(config, folder, bool(ray))
            else:
                run = PPORun(config, folder)
        store_config(folder, config)
        run.save()  # after the settings, without which a checkpoint cannot be resumed
        if run.iteration:
            changes = f", with {', '.join(changed)}" if changed else ""
            console.print(f"Resuming after {run.decisions:,} decisions{escape(changes)}.")
        try:
            curve = _train(run, console)
        except KeyboardInterrupt:
            _save_at_once(run)
            command = f"busenv train {shlex.quote(str(folder))}"
            console.print(
                f"Stopped after {run.decisions:,} decisions; checkpoint and {MODEL} are in "
                f"{escape(str(folder))}. To resume: {escape(command)}",
                soft_wrap=True,
            )
            raise
    return run, curve


def _save_at_once(run: AnyRun) -> None:
    """Save on Ctrl-C; the command's last line reports a failure."""
    try:
        run.save()
    except OSError as error:
        raise KeyboardInterrupt(f"nothing saved since the last checkpoint: {error}") from error


def _train(run: AnyRun, console: Console) -> list[CurvePoint]:
    """Iterate until the run is done; each rating is on disk at once."""
    config, folder = run.config, run.folder
    curve = [p for p in read_curve(folder / CURVE) if p.decisions <= run.decisions]
    saved, warned, rating_seconds = run.seconds, False, 0.0
    if run.is_done and _is_rated(run, curve):
        return curve
    bar = training_bar(console)
    events = str(folder / "tensorboard")
    # TensorBoard hides what a run that was killed has logged after its checkpoint.
    with bar, SummaryWriter(events, purge_step=run.decisions + 1, flush_secs=10) as log:
        pretrains = isinstance(config, ExpertConfig) and config.offline_data and not run.iteration
        task = bar.add_task("", total=1.0, note="")
        while True:
            is_due = not curve or (
                run.seconds - curve[-1].seconds >= rating_interval(config, rating_seconds)
                and run.decisions > curve[-1].decisions
            )
            if run.is_done or is_due:
                bar.update(task, completed=min(run.progress, 1.0), note="rating ...")
                began = run.seconds
                _rate(run, curve, log)
                rating_seconds = run.seconds - began
                first = "learning from offline data ..." if pretrains else "first games ..."
                bar.update(task, note=_wins(curve) or first)
            if run.is_done or run.seconds - saved >= SAVE_EVERY:
                run.save()
                saved = run.seconds
            if run.is_done:
                break
            iteration = run.step()
            speed = {"time/decisions_per_second": iteration.decisions_per_second}
            for name, value in (iteration.scalars | speed).items():
                log.add_scalar(name, value, iteration.decisions)
            entropy = iteration.scalars.get("train/entropy", 1.0)
            if isinstance(config, PPOConfig) and not warned and entropy < LOW_ENTROPY:
                warned = True
                console.print(
                    f"[yellow]Policy entropy is below {LOW_ENTROPY} nats per decision; increase "
                    "entropy_coef to keep exploration."
                )
            bar.update(task, completed=min(run.progress, 1.0), note=_note(iteration, curve))
    return curve


def rating_interval(config: AnyConfig, rating_seconds: float) -> float:
    """Return the minimum time between two ratings, in seconds.

    It is `rate_every`, or longer if ratings would take more than RATING_SHARE of the run.
    rating_seconds: duration of the last rating.
    """
    return max(config.rate_every, rating_seconds * (1 / RATING_SHARE - 1))


def _is_rated(run: AnyRun, curve: list[CurvePoint]) -> bool:
    """Return whether the last point of the curve is a rating of the run's agent as it is."""
    if not curve:
        return False
    last, config = curve[-1], run.config
    same_games = (last.decisions, last.games) == (run.decisions, config.rate_games)
    return same_games and last.wins.keys() == {*config.rated}


def training_bar(console: Console) -> Progress:
    """A short bar and a note in the rest of the line, truncated if it is too long.

    Win rates against three bots and a speed fit into 80 columns.
    """
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Progress(
        BarColumn(bar_width=8),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", table_column=rest),
        console=console,
        expand=True,
    )


def _rate(run: AnyRun, curve: list[CurvePoint], log: SummaryWriter) -> None:
    """Rate the agent, add a point to the curve and draw it."""
    config, wins = run.config, {}
    for bot in config.rated:
        score = evaluate(run, run.agent, bot, config.rate_games)[0]
        wins[bot] = score.wins / score.games
        name = f"rating/wins_against_{config.rating_players - 1}_{bot}"
        log.add_scalar(name, wins[bot], run.decisions)
    if curve and curve[-1].decisions == run.decisions:
        curve.pop()
    curve.append(CurvePoint(run.seconds, run.decisions, config.rate_games, wins))
    description = describe_run(run)
    draw_curve(
        run.folder / PICTURE,
        curve,
        description[0].upper() + description[1:],
        players=config.rating_players,
        imitated=run.imitated,
        main_phase=_main_phase(config),
    )
    write_curve(run.folder / CURVE, curve)  # last, because it ends the rating of a finished run


def _note(iteration: Iteration, curve: list[CurvePoint]) -> str:
    """The progress bar's note: win rates, speed, staleness."""
    if samples := iteration.scalars.get("games/teacher_samples"):
        return f"{samples:,.0f} teacher samples"
    parts = [_wins(curve), f"{iteration.decisions_per_second:,.0f} decisions/s"]
    if staleness := iteration.scalars.get("games/staleness"):
        parts.append(f"{staleness:.0f} iterations stale")
    return "; ".join(filter(None, parts))


def _wins(curve: list[CurvePoint]) -> str:
    """Win rates of the last rating; empty before the first one of a trained network."""
    if not curve[-1].decisions:
        return ""
    return "won " + ", ".join(f"{bot} {share:.0%}" for bot, share in curve[-1].wins.items())
