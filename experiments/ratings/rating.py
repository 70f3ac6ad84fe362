"""Rate agents: play a plan in a run folder, as far as it is not played yet, and report."""

from __future__ import annotations

import hashlib
import shlex
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from busenv import Game
from busenv.agents import AgentError, make_agent
from busenv.experiments.console import progress_bar
from busenv.experiments.ratings.report import Report, write_report
from busenv.experiments.ratings.schedule import Plan, RunError
from busenv.experiments.ratings.store import (
    GAMES,
    append_games,
    keep_settings,
    locked,
    recover_games,
)
from busenv.experiments.ratings.tournament import play_games
from busenv.files import open_plain


def run_rating(
    plan: Plan, folder: Path, workers: int = 1, console: Console | None = None
) -> Report:
    """Play what is left of a plan, each game on disk as soon as it ends, and write its report.

    workers: processes. console: where to tell how it goes; by default nowhere.
    Raises RunError when the agents cannot be built or the folder is in use or holds another run.
    """
    for spec in dict.fromkeys(plan.specs):
        check_agent(spec, plan.rules, plan.board)
    if console is None:
        console = Console(quiet=True, force_jupyter=False)  # in Jupyter a bar needs ipywidgets
    console.print(f"Run folder: {escape(str(folder))}")
    with locked(folder):
        keep_settings(folder, {**plan.settings(), "files": file_hashes(plan.specs)})
        games, cut = recover_games(folder, plan)
        if cut:
            console.print(f"Dropped a half-written game ({cut} bytes) at the end of {GAMES}.")
        if games:
            console.print(f"Going on after {len(games):,} games.")
        if plan.total != plan.games:
            console.print(
                f"Playing {plan.total:,} games, not {plan.games:,}: whole blocks of {plan.block:,}."
            )
        games += _play(plan, folder, games, workers, console)
        with console.status("rating ..."):
            return write_report(games, plan, folder, workers)


def check_agent(spec: str, rules: str = "capstone-2024", board: str = "city") -> None:
    """RunError unless the agent can be built and, where it might not know the board, plays on it: a
    network knows only the board that it was trained on."""
    try:
        with closing(make_agent(spec)) as agent:
            if board != "city" or spec.startswith(("net", "ppo")):
                agent.act(Game(3, rules, board, first_player=0, seed=0))
    except (AgentError, ValueError, OSError) as error:
        raise RunError(f"agent {spec!r}: {error}") from error


def file_hashes(specs: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of the files that specs name: another file of the same name is another agent."""
    found = {}
    for spec in specs:
        if paths := _files(spec):
            contents = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
            found[spec] = hashlib.sha256(contents).hexdigest()
    return found


def _files(spec: str) -> list[Path]:
    """A model and its card, or each word of a program's command that is a file."""
    kind, _, rest = spec.partition(":")
    if kind.startswith("exec"):
        return [path for word in shlex.split(rest) if (path := _program_file(word))]
    if kind.startswith(("net", "ppo")):
        from busenv.agents.neural.files import CARD, model_path  # needs torch, as no other does

        return [model_path(rest), model_path(rest).with_suffix(CARD)]
    return []


def _program_file(word: str) -> Path | None:
    """The file that a word of a command names, if it is one."""
    try:
        return Path(word) if Path(word).is_file() else None
    except OSError:  # too long for a name
        return None


def _play(
    plan: Plan, folder: Path, played: list[dict[str, Any]], workers: int, console: Console
) -> list[dict[str, Any]]:
    """Play the games that are missing; returns them."""
    done = {game["number"] for game in played}
    missing = [number for number in range(plan.total) if number not in done]
    if not missing:
        return []
    bar = progress_bar(console, "games")
    fresh: list[dict[str, Any]] = []
    forfeits = sum(game["forfeit"] is not None for game in played)
    try:
        with open_plain(folder / GAMES, "ab") as file, bar:
            task = bar.add_task("", total=plan.total, completed=len(played), note="")
            for games in play_games(plan, missing, min(workers, len(missing))):
                append_games(file, games)
                fresh += games
                forfeits += sum(game["forfeit"] is not None for game in games)
                note = f"{forfeits} forfeits" if forfeits else ""
                bar.update(task, advance=len(games), note=note)
    except BrokenProcessPool as error:
        raise RunError(
            f"a worker process died; {folder} keeps the games so far, and the same command with "
            f"--out {folder} goes on"
        ) from error
    return fresh
