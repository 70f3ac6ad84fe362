"""Train a learner by the protocol in a folder, seed by seed, measure it, and write its card.

Whatever is killed goes on: training from its checkpoint, a curve from its last point, the panel
from its last opponent. What is finished stays.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console

import busenv
from busenv.agents import Agent, make_agent
from busenv.agents.schema import Schema, parse, read_limited
from busenv.experiments.benchmark.learners import LEARNERS, BenchmarkLearner, Learning
from busenv.experiments.benchmark.protocol import (
    BOARD,
    NAME,
    PANEL,
    POINTS,
    RULES,
    SEED,
    TENTHS,
    games,
)
from busenv.experiments.benchmark.results import (
    BenchmarkResult,
    Entry,
    Measured,
    Point,
    Result,
    make_result,
    write_result,
)
from busenv.experiments.common.runs import RunError, lock_folder, store_settings
from busenv.experiments.ratings.dependencies import file_hashes
from busenv.experiments.ratings.rating import check_agent, run_rating
from busenv.experiments.ratings.schedule import Schedule
from busenv.experiments.training.run_folder import changes, keep_config
from busenv.experiments.training.training_run import SAVE_EVERY, against
from busenv.io import write_whole
from busenv.train.config_files import AnyConfig

CARD, PROGRESS = "card.json", "measured.json"


class Progress(Schema):
    """What is measured of a run so far.

    decisions: learned from, once all is learned. tenths: of the budget, up to which the curve goes.
    """

    decisions: int = 0
    tenths: int = 0
    curve: tuple[Point, ...] = ()
    panel: dict[str, Result] = {}  # noqa: RUF012 - pydantic copies it

    def changed(self, place: Path, **changes: Any) -> Progress:
        """With some fields changed, and on disk so."""
        found = self.model_copy(update=changes)
        text = json.dumps(found.model_dump(mode="json"), indent=1) + "\n"
        write_whole(place / PROGRESS, text, follow_links=False)
        return found


def bench_learner(
    entry: Entry, seeds: Sequence[int], folder: Path, console: Console, threads: int = 2
) -> BenchmarkResult:
    """Train and measure the learner of LEARNERS that an entry names; its card, which is in the
    folder too.

    threads: of torch, and of games by search. RunError when the folder is in use or holds other
    runs.
    """
    learner = LEARNERS[entry.name]

    def bench(seed: int, place: Path) -> Measured:
        return _bench_seed(learner, learner.config(entry, seed, threads), place)

    return _bench_all(entry, seeds, bench, {"learner": entry.name}, folder, console)


def bench_agents(
    entry: Entry, specs: Sequence[str], folder: Path, console: Console, workers: int = 1
) -> BenchmarkResult:
    """Measure agents that have learned elsewhere, as runs of one learner; see `bench_learner`.

    specs: as for `busenv.agents.make_agent`. The budget is what each has learned from, by the word
    of who says so. workers: processes, for programs.
    """
    if entry.decisions is None:
        raise RunError("what agents have learned from elsewhere is given in decisions, not hours")
    for spec in specs:
        check_agent(spec, RULES, BOARD)

    def bench(number: int, place: Path) -> Measured:
        spec = specs[number]
        with closing(make_agent(spec)) as agent:
            play = _by_game(spec, place, workers) if spec.startswith("exec") else _in_batch(agent)
            progress = _panel(_read(place), play, entry.players, place)
        return _measured(progress.changed(place, decisions=entry.decisions), number)

    settings = {"agents": [*specs], "files": file_hashes((*specs,))}
    return _bench_all(entry, range(len(specs)), bench, settings, folder, console)


def _bench_all(
    entry: Entry,
    seeds: Sequence[int],
    bench: Callable[[int, Path], Measured],
    settings: dict[str, Any],
    folder: Path,
    console: Console,
) -> BenchmarkResult:
    """Every run of a learner, and the card of those that are done, written anew after each."""
    kept = entry.model_dump(exclude={"about"}) | settings
    kept |= {"protocol": NAME, "busenv": busenv.__version__}
    runs: list[Measured] = []
    with lock_folder(folder):
        store_settings(folder, kept)
        for seed in seeds:
            place = folder / f"seed-{seed}"
            place.mkdir(exist_ok=True)
            runs.append(bench(seed, place))
            card = make_result(entry, runs)
            write_result(card, folder / CARD)
            won = ", ".join(f"{bot} {found.share:.1%}" for bot, found in runs[-1].panel.items())
            console.print(
                f"{entry.name}, {entry.budget}, seed {seed}: won {won}",
                markup=False,
                soft_wrap=True,
            )
    return card


def _bench_seed(learner: BenchmarkLearner, config: AnyConfig, place: Path) -> Measured:
    """Train one seed, with points of its curve, and measure it at the end."""
    progress = _read(place)
    if progress.panel.keys() != PANEL.keys():
        changes(place, config)
        learning = learner.begin(config, place)
        keep_config(place, config)
        progress = _learn(learning, progress, config, place)
        progress = _panel(progress, _in_batch(learning.agent), config.players[0], place)
    return _measured(progress, config.seed)


def _learn(learning: Learning, progress: Progress, config: AnyConfig, place: Path) -> Progress:
    """Train to the end, and play POINTS at every tenth."""
    play, saved = _in_batch(learning.agent), time.monotonic()
    # What was learned after the last checkpoint is lost, and learned again.
    curve = [point for point in progress.curve if point.decisions <= learning.decisions]
    measured = min(progress.tenths, int(learning.progress * TENTHS))
    while True:
        # First: a run that saves by itself may have been killed before its point was played.
        if (tenth := int(learning.progress * TENTHS)) > measured:
            counts = games(POINTS, config.players[0])
            results = {bot: play(bot, config.players[0], n) for bot, n in counts.items()}
            curve.append(Point(decisions=learning.decisions, results=results))
            progress, measured = progress.changed(place, curve=tuple(curve), tenths=tenth), tenth
        # After the curve is written: a checkpoint has all points before it.
        if learning.is_done or time.monotonic() - saved >= SAVE_EVERY:
            learning.save()
            saved = time.monotonic()
        if learning.is_done:
            return progress.changed(place, decisions=learning.decisions)
        learning.step()


Play = Callable[[str, int, int], Result]  # opponent, players, games


def _panel(progress: Progress, play: Play, players: int, place: Path) -> Progress:
    """Play what is left of PANEL."""
    for bot, count in games(PANEL, players).items():
        if bot not in progress.panel:
            panel = progress.panel | {bot: play(bot, players, count)}
            progress = progress.changed(place, panel=panel)
    return progress


def _in_batch(agent: Agent) -> Play:
    """Plays all games of a match side by side."""

    def play(bot: str, players: int, count: int) -> Result:
        own = against(agent, bot, count, SEED, RULES, BOARD, players)[0]
        return Result(games=own.games, wins=own.wins)

    return play


def _by_game(spec: str, place: Path, workers: int) -> Play:
    """Plays game by game, as a program must: a rating in a folder of its own."""

    def play(bot: str, players: int, count: int) -> Result:
        plan = Schedule((spec,), players, count, SEED, RULES, bot, BOARD)
        own = run_rating(plan, place / bot.replace(":", "-"), workers).results.iloc[0]
        return Result(games=int(own["games"]), wins=round(own["won"] * own["games"]))

    return play


def _measured(progress: Progress, seed: int) -> Measured:
    """A run as a card has it."""
    found = {name: value for name, value in progress if name != "tenths"}
    return Measured(seed=seed, **found)


def _read(place: Path) -> Progress:
    """What is measured so far of the run in a folder; ValueError when the file is damaged."""
    path = place / PROGRESS
    if not path.exists():
        return Progress()
    try:
        return parse(Progress, read_limited(path))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
