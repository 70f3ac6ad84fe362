"""Train a learner seed by seed, measure it by the protocol, and write the result.

A killed measurement resumes: training from its checkpoint, the curve from its last point, the panel
from its last opponent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console

import busenv
from busenv.agents import Agent, make_agent
from busenv.agents.specs import parse_spec
from busenv.common.console import print_path
from busenv.common.runs import lock_folder, store_settings
from busenv.evaluation.benchmark.learners import LEARNERS, BenchmarkLearner, LearnerRun
from busenv.evaluation.benchmark.protocol import (
    BOARD,
    CURVE_LENGTH,
    CURVE_PANEL,
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
    make_result,
    write_result,
)
from busenv.evaluation.dependencies import file_hashes
from busenv.evaluation.rating import check_agent, run_rating
from busenv.evaluation.schedule import Schedule
from busenv.io import read_bounded, write_whole
from busenv.schema import Schema, parse
from busenv.train.config_files import AnyConfig
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.training_run import (
    SAVE_EVERY,
    changed_settings,
    evaluate_against,
    store_config,
)

RESULT, PROGRESS = "result.json", "measured.json"

PlayMatch = Callable[[str, int, int], WinCount]  # opponent, players, games


class Progress(Schema):
    """Measurements of an unfinished run.

    decisions: of training in all, once it has ended. core_seconds: processor time of
    training up to the last checkpoint. tenths: tenths of the budget that the curve covers.
    """

    decisions: int = 0
    core_seconds: float = 0.0
    tenths: int = 0
    curve: tuple[CurveEvaluation, ...] = ()
    panel: dict[str, WinCount] = {}  # noqa: RUF012 - pydantic copies it

    def changed(self, folder: Path, **fields: Any) -> Progress:
        """Copy with some fields changed, and write it to the folder."""
        progress = self.model_copy(update=fields)
        text = progress.model_dump_json(indent=1) + "\n"
        write_whole(folder / PROGRESS, text)
        return progress

    def result(self, seed: int) -> RunResult:
        """The run as results store it."""
        return RunResult(seed=seed, decisions=self.decisions, curve=self.curve, panel=self.panel)


def bench_learner(
    entry: Entry, seeds: Sequence[int], folder: Path, console: Console, threads: int = 2
) -> BenchmarkResult:
    """Train and measure the learner of LEARNERS that an entry names.

    threads: of torch and of self-play by search. Returns the result, which is also in the folder.
    RunError when the folder is in use or holds other runs.
    """
    learner = LEARNERS[entry.name]

    def bench(seed: int, run_folder: Path) -> RunResult:
        config = learner.config(entry, seed, threads)
        return _bench_seed(learner, config, entry.decisions, run_folder)

    return _bench_all(entry, seeds, bench, {"learner": entry.name}, folder, console)


def bench_agents(
    entry: Entry, specs: Sequence[str], folder: Path, console: Console, workers: int = 1
) -> BenchmarkResult:
    """Measure agents that were trained elsewhere, as runs of one learner; see `bench_learner`.

    specs: as for `busenv.agents.make_agent`. The budget is the caller's claim. workers: processes,
    for external programs.
    """
    for spec in specs:
        check_agent(spec, RULES, BOARD, players=entry.players)

    def bench(number: int, run_folder: Path) -> RunResult:
        spec = specs[number]
        with closing(make_agent(spec)) as agent:
            by_game = parse_spec(spec).kind in ("exec", "llm")  # several processes, forfeits
            play = _play_by_game(spec, run_folder, workers) if by_game else _play_in_batch(agent)
            progress = _play_panel(_read(run_folder), play, entry.players, run_folder)
        return progress.changed(run_folder, decisions=entry.decisions).result(number)

    settings = {"agents": [*specs], "files": file_hashes((*specs,))}
    return _bench_all(entry, range(len(specs)), bench, settings, folder, console)


def _bench_all(
    entry: Entry,
    seeds: Sequence[int],
    bench: Callable[[int, Path], RunResult],
    settings: dict[str, Any],
    folder: Path,
    console: Console,
) -> BenchmarkResult:
    """Measure every run of a learner; the result is written after each."""
    settings = entry.model_dump(exclude={"about"}) | settings
    settings |= {"protocol": NAME, "busenv": busenv.__version__}
    runs: list[RunResult] = []
    with lock_folder(folder):
        print_path(console, "Run folder", folder)
        store_settings(folder, settings)
        for seed in seeds:
            run_folder = folder / f"seed-{seed}"
            run_folder.mkdir(exist_ok=True)
            runs.append(bench(seed, run_folder))
            result = make_result(entry, runs)
            write_result(result, folder / RESULT)
            won = ", ".join(f"{bot} {result.share:.1%}" for bot, result in runs[-1].panel.items())
            console.print(
                f"{entry.name}, {entry.decisions:,} decisions, seed {seed}: won {won}",
                markup=False,
                soft_wrap=True,
            )
    return result


def _bench_seed(
    learner: BenchmarkLearner, config: AnyConfig, decisions: int, folder: Path
) -> RunResult:
    """Train one seed with points of its curve, and measure it at the end."""
    progress = _read(folder)
    if progress.panel.keys() != PANEL.keys():
        changed_settings(folder, config)
        start = time.process_time()
        run = learner.start(config, decisions, folder)
        if learner.teacher:
            seconds = progress.core_seconds + time.process_time() - start
            progress = progress.changed(folder, core_seconds=seconds)
        store_config(folder, config)
        progress = _train(run, progress, config.players[0], folder)
        progress = _play_panel(progress, _play_in_batch(run.agent), config.players[0], folder)
    return progress.result(config.seed)


def _train(run: LearnerRun, progress: Progress, players: int, folder: Path) -> Progress:
    """Train to the end of the budget, and play CURVE_PANEL at every tenth of it."""
    play, saved = _play_in_batch(run.agent), time.monotonic()
    # Training resumes from the checkpoint, so later points are measured again.
    curve = [point for point in progress.curve if point.decisions <= run.decisions]
    measured = min(progress.tenths, int(run.progress * CURVE_LENGTH))
    core_seconds = progress.core_seconds
    while True:
        # Before the first step: a run that saves by itself may have been killed before this point.
        if (tenth := int(run.progress * CURVE_LENGTH)) > measured:
            games = count_games(CURVE_PANEL, players)
            results = {bot: play(bot, players, count) for bot, count in games.items()}
            point = CurveEvaluation(
                decisions=run.decisions, core_seconds=round(core_seconds, 1), results=results
            )
            curve.append(point)
            progress, measured = progress.changed(folder, curve=tuple(curve), tenths=tenth), tenth
        # After the curve is written, so that a checkpoint has all points before it.
        if run.is_done or time.monotonic() - saved >= SAVE_EVERY:
            run.save()
            progress = progress.changed(folder, core_seconds=round(core_seconds, 1))
            saved = time.monotonic()
        if run.is_done:
            return progress.changed(folder, decisions=run.decisions)
        start = time.process_time()
        run.step()
        core_seconds += time.process_time() - start
        if isinstance(run, ExpertRun):  # the step wrote a checkpoint
            progress = progress.changed(folder, core_seconds=round(core_seconds, 1))


def _play_panel(progress: Progress, play: PlayMatch, players: int, folder: Path) -> Progress:
    """Play the remaining opponents of PANEL."""
    for bot, count in count_games(PANEL, players).items():
        if bot not in progress.panel:
            panel = progress.panel | {bot: play(bot, players, count)}
            progress = progress.changed(folder, panel=panel)
    return progress


def _play_in_batch(agent: Agent) -> PlayMatch:
    """Play all games of a match in one batch."""

    def play(bot: str, players: int, count: int) -> WinCount:
        own, _ = evaluate_against(
            agent, bot, count, SEED, rules=RULES, board=BOARD, players=players
        )
        return WinCount(games=own.games, wins=own.wins)

    return play


def _play_by_game(spec: str, folder: Path, workers: int) -> PlayMatch:
    """Play game by game, for programs and language models: a rating in a subfolder."""

    def play(bot: str, players: int, count: int) -> WinCount:
        schedule = Schedule((spec,), players, count, SEED, RULES, bot, BOARD)
        own = run_rating(schedule, folder / bot.replace(":", "-"), workers).results.iloc[0]
        return WinCount(games=int(own["games"]), wins=round(own["won"] * own["games"]))

    return play


def _read(folder: Path) -> Progress:
    """Read the progress of the run in a folder; ValueError when the file is damaged."""
    path = folder / PROGRESS
    if not path.exists():
        return Progress()
    try:
        return parse(Progress, read_bounded(path))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
