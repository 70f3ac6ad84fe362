"""Train runs of a learner, measure them by the protocol, and write the result.

A stopped benchmark keeps the seeds that are finished, and starts the others again.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

import busenv
from busenv.agents import Agent, make_agent
from busenv.agents.dependencies import file_hashes
from busenv.agents.specs import parse_spec
from busenv.common.console import print_path
from busenv.common.cores import available_cores
from busenv.common.runs import RunError, lock_folder, store_settings
from busenv.common.worker_pool import worker_pool
from busenv.evaluation.agent_digest import agent_digest
from busenv.evaluation.benchmark.exploit import exploiter_config
from busenv.evaluation.benchmark.learners import LEARNERS, LearnerRun
from busenv.evaluation.benchmark.protocol import (
    BOARD,
    CURVE_LENGTH,
    CURVE_PANEL,
    EXPLOITER_BLOCKS,
    EXPLOITER_DECISIONS,
    NAME,
    PANEL,
    RULES,
    SEED,
    count_games,
)
from busenv.evaluation.benchmark.results import (
    BenchmarkResult,
    CurveEvaluation,
    Entry,
    RunResult,
    WinCount,
    write_result,
)
from busenv.evaluation.rating import check_agent, run_rating
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tournament import close_agents
from busenv.io import read_bounded, write_whole
from busenv.schema import parse
from busenv.train.run_training import evaluate_against, run_training, store_config

RESULT, MEASURED = "result.json", "measured.json"  # of all runs, of one


def bench_learner(
    entry: Entry, seeds: Sequence[int], folder: Path, console: Console, workers: int = 1
) -> BenchmarkResult:
    """Train and measure the learner of LEARNERS that an entry names.

    workers: number of processes. Each measures one run at a time; with more processes than runs,
    each run has several cores. Returns the result, which is also in the folder. RunError when the
    folder is in use or holds other runs, or when a process dies.
    """
    bench = partial(_bench_learner, entry)
    return _bench_all(entry, seeds, bench, {"learner": entry.name}, folder, console, workers)


def _bench_learner(entry: Entry, seed: int, folder: Path, cores: int) -> RunResult:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    learner = LEARNERS[entry.name]
    config = learner.config(entry, seed, threads=cores)
    start = time.process_time()
    run = learner.start(config, entry.decisions, folder)
    core_seconds = time.process_time() - start if learner.teacher else 0.0
    store_config(folder, config)
    curve = _train(run, entry.players, core_seconds)
    run.save()
    return RunResult(
        seed=seed,
        decisions=run.decisions,
        curve=curve,
        panel=_play(run.agent, PANEL, entry.players),
        exploiter=_exploit(learner.agent.format(folder), entry.players, seed, folder, cores),
    )


def bench_agents(
    entry: Entry, specs: Sequence[str], folder: Path, console: Console, workers: int = 1
) -> BenchmarkResult:
    """Measure agents that were trained elsewhere, as runs of one learner; see `bench_learner`.

    specs: as for `busenv.agents.make_agent`. The budget is the caller's claim. Exploiters are not
    trained against external programs, language models and searches.
    """
    for spec in specs:
        check_agent(spec, RULES, BOARD, players=entry.players)
    bench = partial(_bench_agent, entry, (*specs,))
    settings = {"agents": [*specs], "files": file_hashes((*specs,))}
    return _bench_all(entry, range(len(specs)), bench, settings, folder, console, workers)


def _bench_agent(
    entry: Entry, specs: Sequence[str], number: int, folder: Path, cores: int
) -> RunResult:
    spec, players = specs[number], entry.players
    with closing(make_agent(spec)) as agent:
        kind = parse_spec(spec).kind
        if agent.single_game_only:  # may remember its game
            panel = _play_by_game(spec, players, folder, workers=cores)
        else:
            panel = _play(agent, PANEL, players)
        is_fast = not agent.single_game_only and kind not in ("uct", "az")
    exploiter = _exploit(spec, players, number, folder, cores) if is_fast else None
    return RunResult(
        seed=number, decisions=entry.decisions, curve=(), panel=panel, exploiter=exploiter
    )


def _bench_all(
    entry: Entry,
    seeds: Sequence[int],
    bench: Callable[[int, Path, int], RunResult],
    settings: dict[str, Any],
    folder: Path,
    console: Console,
    workers: int,
) -> BenchmarkResult:
    """Measure every run of a learner; the result is written after each."""
    settings = entry.model_dump(exclude={"about"}) | settings
    measured_by: dict[str, Any] = {
        "protocol": NAME,
        "busenv": busenv.__version__,
        "opponents": {bot: agent_digest(bot) for bot in PANEL},
        "machine": machine_class(),
    }
    runs: list[RunResult] = []
    with lock_folder(folder):
        print_path(console, "Run folder", folder)
        store_settings(folder, settings | measured_by)
        for run in _results(bench, seeds, folder, workers):
            runs.append(run)
            result = BenchmarkResult(**entry.model_dump(), **measured_by, runs=tuple(runs))
            write_result(result, folder / RESULT)
            won = ", ".join(f"{bot} {count.share:.1%}" for bot, count in run.panel.items())
            console.print(
                f"{entry.name}, {entry.decisions:,} decisions, seed {run.seed}: won {won}",
                markup=False,
                soft_wrap=True,
            )
    return result


def _results(
    bench: Callable[[int, Path, int], RunResult], seeds: Sequence[int], folder: Path, workers: int
) -> Iterator[RunResult]:
    """Measure the runs that are not finished, several at once, and yield all in order."""
    at_once = min(workers, len(seeds))
    measure = partial(_measure, bench, folder, cores=workers // at_once)
    if at_once == 1:
        yield from map(measure, seeds)
        return
    try:
        with worker_pool(at_once, close_agents) as pool:
            yield from pool.map(measure, seeds)
    except BrokenProcessPool as error:
        raise RunError(f"{error}; the same command with --out {folder} resumes") from error


def _measure(
    bench: Callable[[int, Path, int], RunResult], folder: Path, seed: int, cores: int
) -> RunResult:
    """Measure a run unless its folder has the result."""
    run_folder = folder / f"seed-{seed}"
    measured = run_folder / MEASURED
    if not measured.exists():
        run_folder.mkdir(exist_ok=True)
        run = bench(seed, run_folder, cores)
        write_whole(measured, run.model_dump_json(indent=1) + "\n")
    return parse(RunResult, read_bounded(measured))


def _train(run: LearnerRun, players: int, core_seconds: float) -> tuple[CurveEvaluation, ...]:
    """Train to the end of the budget; returns the results of CURVE_PANEL at every tenth of it.

    core_seconds: processor time before the first step.
    """
    curve, measured = [], 0
    while not run.is_done:
        start = time.process_time()
        run.step()
        core_seconds += time.process_time() - start
        if (tenth := int(run.progress * CURVE_LENGTH)) > measured:
            results = _play(run.agent, CURVE_PANEL, players)
            point = CurveEvaluation(
                decisions=run.decisions, core_seconds=round(core_seconds, 1), results=results
            )
            curve.append(point)
            measured = tenth
    return tuple(curve)


def _play(agent: Agent, panel: dict[str, int], players: int) -> dict[str, WinCount]:
    """Play the opponents of a panel, all games against each of them in one batch."""
    counts = {}
    for bot, games in count_games(panel, players).items():
        own = evaluate_against(agent, bot, games, SEED, rules=RULES, board=BOARD, players=players)
        counts[bot] = WinCount(games=own.games, wins=own.wins, points=own.points)
    return counts


def _play_by_game(spec: str, players: int, folder: Path, workers: int) -> dict[str, WinCount]:
    """Play PANEL game by game, for agents that remember their game: ratings in subfolders."""
    counts = {}
    for bot, number in count_games(PANEL, players).items():
        schedule = Schedule((spec,), players, number, SEED, RULES, bot, BOARD)
        try:
            own = run_rating(schedule, folder / bot.replace(":", "-"), workers).results.iloc[0]
        except RunError as error:
            resume = f"the same command with --out {folder.parent} resumes"
            raise RunError(f"{error.__cause__ or error}; {resume}") from error
        if own["forfeits"]:
            raise RunError(
                f"{spec} forfeited {own['forfeits']:.0f} games against {bot}; their reasons are in "
                f"{folder}"
            )
        games = int(own["games"])
        counts[bot] = WinCount(games=games, wins=round(own["won"] * games), points=own["points"])
    return counts


def _exploit(spec: str, players: int, seed: int, folder: Path, cores: int) -> WinCount:
    """Train an exploiter of an agent in a subfolder; returns its games against copies."""
    games = EXPLOITER_BLOCKS * players**2
    config = exploiter_config(spec, players=players, decisions=EXPLOITER_DECISIONS, games=games)
    config = config.changed({"seed": seed, "threads": cores})
    shutil.rmtree(folder / "exploiter", ignore_errors=True)  # one that was stopped is repeated
    _, curve = run_training(config, folder / "exploiter", Console(quiet=True))
    return WinCount(games=games, wins=round(curve[-1].wins[spec] * games))


def machine_class() -> str:
    """Describe the machine whose processor time is measured: processor and number of cores."""
    processor = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    for line in cpus.read_text().splitlines() if cpus.exists() else ():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    return f"{processor}, {available_cores()} cores"
