"""Rate agents: play the missing games of a schedule in a run folder, and report."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console

from busenv import Board, Game, Rules
from busenv.agents import AgentError, make_agent
from busenv.agents.base import call_agent
from busenv.agents.dependencies import file_hashes, has_language_model
from busenv.agents.specs import PLUG_IN, parse_spec, runs_code
from busenv.cluster import ClusterError, connected
from busenv.common.console import print_path, progress_bar
from busenv.common.jsonl import append_lines
from busenv.common.runs import RunError, lock_folder, store_settings
from busenv.errors import AgentUnavailableError
from busenv.evaluation.distributed_games import play_on_cluster
from busenv.evaluation.game_log import GAMES, read_games
from busenv.evaluation.rating_report import REPLIES, Report, write_report
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tournament import play_games


def run_rating(
    schedule: Schedule,
    folder: Path,
    workers: int | None = 1,
    console: Console | None = None,
    ray: str = "",
) -> Report:
    """Play the missing games of a schedule, and write the report.

    Writes each game to disk as soon as it ends; a stopped run resumes, also on another machine that
    has the same agents. workers: number of processes; see `play_games`. console: for progress; by
    default there is none. ray: address of a Ray cluster (`busenv.cluster.connected`), "" for none.
    RunError when an agent cannot be built or cannot play on a cluster, or the folder is in use or
    holds another run; `busenv.cluster.ClusterError` when the cluster fails.
    """
    if ray and any(map(runs_code, schedule.specs)):
        raise RunError(
            "programs, Python code and language models play on this machine only; leave out --ray"
        )
    for spec in dict.fromkeys(schedule.specs):
        check_agent(spec, schedule.rules, *schedule.sample_boards, players=schedule.players)
    if console is None:
        console = Console(quiet=True, force_jupyter=False)  # Jupyter's bar needs ipywidgets
    with connected(ray, workers), lock_folder(folder):
        print_path(console, "Run folder", folder)
        settings = schedule.settings() | {"files": file_hashes(schedule.specs)}
        if has_language_model(schedule.specs):
            from busenv.agents.external.llm_agent import request_settings  # requires an extra

            settings["llm"] = request_settings()["options"]  # the time limit may change
        store_settings(folder, settings)
        games = read_games(folder / GAMES) if (folder / GAMES).exists() else []
        if games:
            console.print(f"Resuming after {len(games):,} games.")
        if schedule.total != schedule.games:
            console.print(
                f"Playing {schedule.total:,} games, not {schedule.games:,}: "
                f"whole blocks of {schedule.block:,}. {schedule.balance}"
            )
        games += _play(schedule, folder, games, workers, console, ray)
        with console.status("rating ..."):
            return write_report(games, schedule, folder, workers)


def check_agent(
    spec: str, rules: str | Rules = "capstone-2024", *boards: str | Board, players: int = 4
) -> None:
    """Raise RunError unless the agent can be built and plays on the boards, by default the city.

    A network, a program or an agent of other code decides once on each board: a network may play
    only on the boards that it was trained on, and the others may fail.
    """
    games = [Game(players, rules, board, first_player=0, seed=0) for board in boards or ("city",)]
    try:
        make_agent(spec).close()
        parsed = parse_spec(spec)
        if parsed.model or parsed.kind in ("exec", "py", PLUG_IN):
            # A model's policy alone decides in milliseconds; its search may take minutes.
            with closing(make_agent(f"net:{parsed.model}" if parsed.model else spec)) as agent:
                for game in games:
                    call_agent(agent, "act", game)
    except (AgentError, ValueError, OSError) as error:
        is_named = f"agent {spec!r}" in f"{error}" or f"{error}".startswith(f"{spec}:")
        raise RunError(f"{error}" if is_named else f"agent {spec!r}: {error}") from error


def _play(
    schedule: Schedule,
    folder: Path,
    played: list[dict[str, Any]],
    workers: int | None,
    console: Console,
    ray: str,
) -> list[dict[str, Any]]:
    done = {game["number"] for game in played}
    missing = [number for number in range(schedule.total) if number not in done]
    if not missing:
        return []
    if ray:
        play = play_on_cluster(schedule, missing)
    else:
        replies = folder / REPLIES if has_language_model(schedule.specs) else None
        play = play_games(schedule, missing, workers, replies)
    new: list[dict[str, Any]] = []
    forfeits = sum(game["forfeit"] is not None for game in played)
    try:
        with progress_bar(console, "games") as bar, closing(play):
            task = bar.add_task("", total=schedule.total, completed=len(played), note="")
            for games in play:
                append_lines(folder / GAMES, games)
                new += games
                forfeits += sum(game["forfeit"] is not None for game in games)
                note = f"{forfeits} forfeits" if forfeits else ""
                bar.update(task, advance=len(games), note=note)
    except (BrokenProcessPool, ClusterError, AgentUnavailableError) as error:
        raise RunError(
            f"{error}; the games so far are in {folder}, and the same command with "
            f"--out {folder} resumes"
        ) from error
    return new
