"""Train in a folder, with progress bar, ratings, learning curve, TensorBoard and model."""

from __future__ import annotations

import json
import shlex
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from torch.utils.tensorboard import SummaryWriter

from busenv import Board, Rules
from busenv.agents import Agent, make_agent
from busenv.agents.match import Score, play_match
from busenv.cluster import connected
from busenv.common.runs import SETTINGS, RunError, lock_folder
from busenv.error_text import quote
from busenv.game.board_specs import GeneratedBoards, board_names, load_board, load_boards
from busenv.game.rules import EDITIONS, as_rules
from busenv.io import read_json, write_whole
from busenv.train.checkpoint import CHECKPOINT_FILE
from busenv.train.config import PPOConfig
from busenv.train.config_files import AnyConfig, programs, read_config, resume_command
from busenv.train.expert_iteration.expert_config import ExpertConfig, FitConfig
from busenv.train.expert_iteration.expert_run import ExpertRun, FitRun
from busenv.train.learning_curve import CURVE, CurvePoint, draw_curve, read_curve, write_curve
from busenv.train.ppo_run import PPORun

AnyRun = PPORun | ExpertRun | FitRun

BOARD, RULES, PICTURE = "board.json", "rules.json", "learning_curve.png"
# Settings that may change when a run resumes: its length and its ratings.
CHANGEABLE = ("seconds", "decisions", "rate_every", "rate_decisions", "rate_games", "rated")
MAX_BOARDS = 100  # of a rating on a set of boards
SAVE_EVERY = 10.0  # seconds between checkpoints
RATING_SHARE = 0.1  # largest share of a run's time for ratings other than the first and the last


def evaluate_against(
    agent: Agent,
    bot: str,
    games: int,
    seed: int,
    *,
    rules: str | Rules = "capstone-2024",
    board: str | Board | GeneratedBoards = "city",
    players: int = 4,
) -> Score:
    """Play an agent against copies of a bot; returns its score.

    board: as for `play_match`. players: per game, copies included. All agents are reset, so games
    depend on the agents and the seed alone.
    """
    agent.reset(seed + max(3, players - 1))  # no bot has this seed
    with ExitStack() as stack:
        bots = (closing(make_agent(bot, seed + k)) for k in range(players - 1))
        line_up = [agent, *map(stack.enter_context, bots)]
        own, *_ = play_match(line_up, games, rules, board, seed=None)
    return own


def rating_boards(run: AnyRun, games: int) -> Board | GeneratedBoards:
    """Return the board of a run's ratings, or the set of boards.

    Of a run on a set of boards: a set of boards for validation, equally many of each of the run's
    sizes. If there are enough games, each board has n² games of n players or a few more, so that
    all agents have every seat, and start, almost equally often.
    """
    if isinstance(run.boards, Board):
        return run.boards
    count, sizes = min(games // run.config.rating_players**2, MAX_BOARDS), len(run.boards.sizes)
    return load_boards(f"generated:{run.boards.size}:validation:{max(count // sizes, 1) * sizes}")


def evaluate(run: AnyRun, agent: Agent, bot: str, games: int) -> Score:
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


def describe_training(config: AnyConfig) -> str:
    """Describe the training procedure: `PPO among greedy, planner and past selves`."""
    if isinstance(config, ExpertConfig):
        return "expert iteration"
    if isinstance(config, FitConfig):
        return f"fitting to samples of {', '.join(config.data)}"
    bots = ", ".join(config.bots)
    return f"PPO among {bots} and past selves" if config.opponent_share else "PPO by self-play"


def changed_settings(folder: Path, config: AnyConfig) -> list[str]:
    """Describe the settings that change when the run in a folder resumes; empty without a run.

    RunError when a setting differs that is not one of CHANGEABLE.
    """
    path = folder / SETTINGS
    if not (folder / CHECKPOINT_FILE).exists():
        return []
    # An agent that rated the run may be gone, and programs are settings of this config only.
    replaced = {n: getattr(config, n) for n in ("rated", *programs(config.to_dict()))}
    before = _contents(read_config(str(path), replaced=replaced))
    stored, after = read_json(path), _contents(config)
    before |= {n: tuple(stored[n]) for n in replaced if isinstance(stored.get(n), list)}
    names = [name for name in before | after if before.get(name) != after.get(name)]
    for name in names:
        if name not in CHANGEABLE:
            raise RunError(
                f"{folder} holds a run with {name} {quote(before.get(name))}, not "
                f"{quote(after.get(name))}; give the same settings to resume it (except "
                f"{', '.join(CHANGEABLE)}), or another folder"
            )
    return [f"{name} {before[name]} → {after[name]}" for name in names]


def _contents(config: AnyConfig) -> dict[str, Any]:
    """Return the settings with the contents of files, which may have been copied."""
    rules, board = as_rules(config.rules).to_dict(), load_boards(config.board).fingerprint
    return config.model_dump() | {"rules": rules, "board": board}


def store_config(folder: Path, config: AnyConfig) -> None:
    """Write the settings of a run to its folder, after `changed_settings`.

    The folder gets copies of board and rules files, so that it can be moved.
    """
    path, settings = folder / SETTINGS, config.to_dict()
    if (folder / CHECKPOINT_FILE).exists():
        changeable = {name: settings[name] for name in CHANGEABLE if name in settings}
        settings = json.loads(path.read_bytes()) | changeable
    else:
        if config.board not in board_names() and not load_boards(config.board).generator:
            board = json.loads(Path(config.board).read_bytes())
            board["name"] = load_board(config.board).name  # may be that of the file
            write_whole(folder / BOARD, json.dumps(board))
            settings["board"] = BOARD
        if config.rules not in EDITIONS:
            rules = as_rules(config.rules).to_dict()
            write_whole(folder / RULES, json.dumps(rules, indent=1))
            settings["rules"] = RULES
    write_whole(path, json.dumps(settings, indent=1) + "\n")


def run_training(
    config: AnyConfig, folder: str | Path, console: Console | None = None, ray: str = ""
) -> tuple[AnyRun, list[CurvePoint]]:
    """Start or resume a run in a folder and train to its end; writes model, card and curve.

    console: of the progress; None for standard output. ray: the cluster on which expert iteration
    plays (`busenv.cluster.connected`); "" for none.

    RunError when the folder is in use or holds a run with other settings, ValueError for another
    method on a cluster; other errors are those of `busenv.train.ppo_run.PPORun`.
    """
    folder, console = Path(folder), console or Console()
    if ray and not isinstance(config, ExpertConfig):
        raise ValueError(
            "PPO and fitting run on one machine: remove --ray, or train by expert iteration "
            "(method expert)"
        )
    threads = torch.get_num_threads()
    with connected(ray), lock_folder(folder):
        curve = read_curve(folder / CURVE) if (folder / CHECKPOINT_FILE).exists() else []
        changed = changed_settings(folder, config)
        console.print(f"Training: {escape(describe_training(config))}.")
        try:
            with console.status("Compiling (the first time on a machine takes a minute) ..."):
                run = _make_run(config, folder, bool(ray))
            store_config(folder, config)
            if run.iteration:
                changes = f", with {', '.join(changed)}" if changed else ""
                console.print(f"Resuming after {run.decisions:,} decisions{escape(changes)}.")
            _train(run, curve, console)
        except KeyboardInterrupt:
            if (folder / SETTINGS).exists():
                command = shlex.join(["busenv", *resume_command(config, folder)])
                console.print(f"Stopped. To resume: {escape(command)}", soft_wrap=True)
            raise
        finally:
            torch.set_num_threads(threads)
    return run, curve


def _make_run(config: AnyConfig, folder: Path, on_cluster: bool) -> AnyRun:
    if isinstance(config, ExpertConfig):
        return ExpertRun(config, folder, on_cluster)
    return PPORun(config, folder) if isinstance(config, PPOConfig) else FitRun(config, folder)


def _train(run: AnyRun, curve: list[CurvePoint], console: Console) -> None:
    """Iterate until the run is done, and extend its curve; each rating is on disk at once."""
    # Training resumes from the checkpoint, so later ratings are played again.
    curve[:] = [point for point in curve if point.decisions <= run.decisions]
    saved, rating_seconds = run.seconds, 0.0
    if run.is_done and _is_rated(run, curve):
        return
    events = str(run.folder / "tensorboard")
    # TensorBoard hides what a run that was killed has logged after its checkpoint.
    log = SummaryWriter(events, purge_step=run.decisions + 1, flush_secs=10)
    with log, training_bar(console) as bar:
        task = bar.add_task("", total=1.0, note="")
        while True:
            if run.is_done or not curve or _is_due(run, curve[-1], rating_seconds):
                bar.update(task, completed=min(run.progress, 1.0), note="rating ...")
                began = run.seconds
                _rate(run, curve, log)
                rating_seconds = run.seconds - began
                bar.update(task, note=_wins(curve) or "first iteration ...")
            if run.is_done or run.seconds - saved >= SAVE_EVERY:
                run.save()
                saved = run.seconds
            if run.is_done:
                return
            scalars = run.step()
            speed = run.decisions / run.seconds  # mean of the run so far, ratings included
            scalars["time/decisions_per_second"] = speed
            for name, value in scalars.items():
                log.add_scalar(name, value, run.decisions)
            note = "; ".join(filter(None, [_wins(curve), f"{speed:,.0f} decisions/s"]))
            bar.update(task, completed=min(run.progress, 1.0), note=note)


def _is_due(run: AnyRun, last: CurvePoint, rating_seconds: float) -> bool:
    if every := run.config.rate_decisions:
        return run.decisions // every > last.decisions // every
    seconds = rating_interval(run.config, rating_seconds)
    return run.seconds - last.seconds >= seconds and run.decisions > last.decisions


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
    return same_games and last.wins.keys() >= {*config.rated}


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
    """Rate the agent, add a point to the curve and draw it.

    Keeps the ratings of the last point if it rates this agent with the same number of games.
    """
    config = run.config
    last = curve.pop() if curve and curve[-1].decisions == run.decisions else None
    wins = dict(last.wins) if last and last.games == config.rate_games else {}
    for bot in [name for name in config.rated if name not in wins]:
        score = evaluate(run, run.agent, bot, config.rate_games)
        wins[bot] = score.wins / score.games
        name = f"rating/wins_against_{config.rating_players - 1}_{bot}"
        log.add_scalar(name, wins[bot], run.decisions)
    curve.append(CurvePoint(run.seconds, run.decisions, config.rate_games, wins))
    title = describe_training(config)
    draw_curve(
        run.folder / PICTURE, curve, title[0].upper() + title[1:], players=config.rating_players
    )
    write_curve(run.folder / CURVE, curve)  # last, because it ends the rating of a finished run


def _wins(curve: list[CurvePoint]) -> str:
    """Win rates of the last rating; empty before the first one of a trained network."""
    if not curve[-1].decisions:
        return ""
    return "won " + ", ".join(f"{bot} {share:.0%}" for bot, share in curve[-1].wins.items())
