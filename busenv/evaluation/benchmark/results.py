"""Benchmark results: JSON files with the runs of one learner.

A result may come from anyone. `read_result` validates that it follows the protocol, has the
protocol's number of games against every opponent, and is consistent. This does not show that the
numbers are true; the run folder does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from busenv.evaluation.benchmark.protocol import CURVE_PANEL, PANEL, RUNS, count_games
from busenv.io import read_bounded, write_whole
from busenv.schema import Schema, parse

BUNDLED = Path(__file__).parent / "measured"
OVERSHOOT = 40_000  # decisions by which the last update may exceed a budget; a rollout of
# self-play has about 30,000

Count = Annotated[int, Field(ge=0, le=10**12)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class WinCount(Schema):
    """Games against copies of one opponent, and how many of them the agent won.

    points: mean of the agent; None where only wins were counted.
    """

    games: Annotated[int, Field(ge=1, le=10**6)]
    wins: Count
    points: Annotated[float, Field(ge=-10, le=100)] | None = None

    @model_validator(mode="after")
    def _check(self) -> WinCount:
        if self.wins > self.games:
            raise ValueError(f"{self.wins} wins of {self.games} games")
        return self

    @property
    def share(self) -> float:
        """Share of games won."""
        return self.wins / self.games


class CurveEvaluation(Schema):
    """Results by opponent after so many training decisions.

    core_seconds: processor time of training so far, over all threads.
    """

    decisions: Count
    core_seconds: Annotated[float, Field(ge=0, le=1e9)]
    results: dict[str, WinCount]


class RunResult(Schema):
    """One run of a learner: training decisions, its curve, and final results by opponent.

    exploiter: its games against copies of the agent; None if none was trained, as for programs.
    """

    seed: Annotated[int, Field(ge=0, lt=2**31)]
    decisions: Count
    curve: tuple[CurveEvaluation, ...]
    panel: dict[str, WinCount]
    exploiter: WinCount | None = None

    @model_validator(mode="after")
    def _check(self) -> RunResult:
        steps = [point.decisions for point in self.curve]
        if steps != sorted(set(steps)) or (steps and steps[-1] > self.decisions):
            raise ValueError(
                f"the curve of seed {self.seed} has decisions {steps}; allowed: ascending, at most "
                f"{self.decisions:,}"
            )
        return self


class Entry(Schema):
    """A learner with its number of players and its budget.

    name: of the learner. about: its training procedure, in one line. players: of each game.
    decisions: the training budget.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]
    about: Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
    players: Literal[3, 4, 5]
    decisions: Count


class BenchmarkResult(Entry):
    """All runs of a learner.

    busenv: version that measured them. machine: its processor and number of cores. opponents:
    their digests.
    """

    protocol: Literal["busenv-agents-v3"]
    busenv: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+-]{1,40}$")]
    machine: Annotated[str, Field(min_length=1, max_length=200)]
    opponents: dict[str, Digest]
    runs: Annotated[tuple[RunResult, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _check_runs(self) -> BenchmarkResult:
        seeds = [run.seed for run in self.runs]
        if len({*seeds}) != len(seeds):
            raise ValueError(f"seeds are {seeds}; allowed: each once")
        if [*self.opponents] != [*PANEL]:
            raise ValueError(f"opponents are {[*self.opponents]}; allowed: {[*PANEL]}")
        for run in self.runs:
            self._check_games(run.panel, PANEL)
            if any(count.points is None for count in run.panel.values()):
                raise ValueError(f"the panel of seed {run.seed} lacks points")
            for point in run.curve:
                self._check_games(point.results, CURVE_PANEL)
            limit = self.decisions
            if not limit <= run.decisions <= limit + OVERSHOOT:
                raise ValueError(
                    f"seed {run.seed} has {run.decisions:,} training decisions; "
                    f"allowed: {limit:,} to {limit + OVERSHOOT:,}"
                )
        return self

    def _check_games(self, results: dict[str, WinCount], panel: dict[str, int]) -> None:
        expected = count_games(panel, self.players)
        games = {name: result.games for name, result in results.items()}
        if games != expected:
            raise ValueError(
                f"games are {games}; {self.protocol} with {self.players} players has {expected}"
            )


def make_entry(name: str, about: str, players: int, decisions: int) -> Entry:
    """Make an entry; ValueError, in one line, names an invalid field."""
    fields = {"name": name, "about": about, "players": players, "decisions": decisions}
    return parse(Entry, json.dumps(fields))


def read_result(path: Path) -> BenchmarkResult:
    """Read and validate a result; ValueError, in one line, names what is wrong."""
    data = read_bounded(path)
    try:
        return parse(BenchmarkResult, data)
    except ValueError as error:
        raise ValueError(f"{path} is not a benchmark result: {error}") from error


def write_result(result: BenchmarkResult, path: Path) -> None:
    """Write a result atomically."""
    write_whole(path, json.dumps(result.model_dump(mode="json")) + "\n")


def result_name(result: BenchmarkResult) -> str:
    """File name of a result: learner, players, budget."""
    return f"{result.name}-{result.players}-{result.decisions}.json"


def all_results(others: Iterable[Path] = (), bundled: Path = BUNDLED) -> list[BenchmarkResult]:
    """Read the bundled results and others; the last one replaces earlier ones of the same name."""
    paths = [*sorted(bundled.glob("*.json")), *others]
    return [*{result_name(result): result for result in map(read_result, paths)}.values()]


def add_results(paths: Iterable[Path], folder: Path = BUNDLED) -> list[Path]:
    """Validate all results, then copy them to the bundled ones; returns their new paths.

    ValueError for a result with too few runs.
    """
    results = [read_result(path) for path in paths]
    for result in results:
        if len(result.runs) < RUNS:
            raise ValueError(
                f"the result of {result.name} has {len(result.runs)} runs; allowed: at least {RUNS}"
            )
    for result in results:
        write_result(result, folder / result_name(result))
    return [folder / result_name(result) for result in results]
