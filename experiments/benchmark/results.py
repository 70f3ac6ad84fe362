"""Cards: what was measured of a learner by the protocol, as JSON that may come from anyone.

A card is checked and never believed: it must be of this protocol, name every opponent with as many
games as the protocol has, and be free of contradictions. That its numbers are true it cannot show;
the run folder that it came from can.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from busenv import __version__
from busenv.agents.schema import Schema, parse, read_limited
from busenv.experiments.benchmark.protocol import NAME, PANEL, POINTS, games
from busenv.io import write_whole

SHIPPED = Path(__file__).parent / "cards"
OVERSHOOT = 20_000  # decisions by which the last update may go beyond a budget

Count = Annotated[int, Field(ge=0, le=10**12)]


class Result(Schema):
    """Games against copies of one opponent: how many, how many of them were won."""

    games: Annotated[int, Field(ge=1, le=10**6)]
    wins: Count

    @model_validator(mode="after")
    def _check(self) -> Result:
        if self.wins > self.games:
            raise ValueError(f"{self.wins} wins of {self.games} games")
        return self

    @property
    def share(self) -> float:
        """Of the games that were won."""
        return self.wins / self.games


class Point(Schema):
    """What a learner was worth after so many decisions: results by opponent."""

    decisions: Count
    results: dict[str, Result]


class Measured(Schema):
    """One run of a learner: its curve, and its results at the end, by opponent.

    decisions: learned from in all.
    """

    seed: Annotated[int, Field(ge=0, lt=2**31)]
    decisions: Count
    curve: tuple[Point, ...]
    panel: dict[str, Result]

    @model_validator(mode="after")
    def _check(self) -> Measured:
        steps = [point.decisions for point in self.curve]
        if steps != sorted(set(steps)) or (steps and steps[-1] > self.decisions):
            raise ValueError(f"the curve of seed {self.seed} does not go on to its end")
        return self


class Entry(Schema):
    """What is measured.

    name: of the learner. about: what it is and how it learns, in a line. players: of each game.
    decisions, hours: the budget, in decisions to learn from or hours on two cores; one is None.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]
    about: Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
    players: Literal[3, 4, 5]
    decisions: Count | None
    hours: Annotated[float, Field(gt=0, le=1e6)] | None

    @model_validator(mode="after")
    def _check_budget(self) -> Entry:
        if (self.decisions is None) == (self.hours is None):
            raise ValueError("a budget is in decisions or in hours, and not in both")
        return self

    @property
    def budget(self) -> str:
        """In words."""
        if self.hours is not None:
            return f"{self.hours:g} hours on two cores"
        return f"{self.decisions:,} decisions"


class BenchmarkResult(Entry):
    """All runs of a learner with one budget and number of players. busenv: the version."""

    protocol: Literal["busenv-agents-v1"]
    busenv: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+-]{1,40}$")]
    runs: Annotated[tuple[Measured, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _check_runs(self) -> BenchmarkResult:
        seeds = [run.seed for run in self.runs]
        if len({*seeds}) != len(seeds):
            raise ValueError("a seed is there twice")
        for run in self.runs:
            _check_games(run.panel, PANEL, self.players)
            for point in run.curve:
                _check_games(point.results, POINTS, self.players)
            limit = self.decisions
            if limit is not None and not limit <= run.decisions <= limit + OVERSHOOT:
                raise ValueError(
                    f"seed {run.seed} learned from {run.decisions:,} decisions; "
                    f"the budget is {limit:,}"
                )
        return self


def _check_games(results: dict[str, Result], blocks: dict[str, int], players: int) -> None:
    """ValueError unless every opponent of the protocol was played, as often as it says."""
    wanted, found = games(blocks, players), {name: r.games for name, r in results.items()}
    if found != wanted:
        raise ValueError(f"games {found}; by {NAME} with {players} players they are {wanted}")


def make_entry(
    name: str, about: str, players: int, decisions: int | None = None, hours: float | None = None
) -> Entry:
    """An entry; ValueError, in a sentence, says what is wrong with it."""
    fields = {"name": name, "about": about, "players": players}
    return parse(Entry, json.dumps({**fields, "decisions": decisions, "hours": hours}))


def make_result(entry: Entry, runs: Iterable[Measured]) -> BenchmarkResult:
    """The card of runs that were measured here; ValueError when they are not of the protocol."""
    fields = {"protocol": NAME, "busenv": __version__, **entry.model_dump()}
    return parse(
        BenchmarkResult, json.dumps({**fields, "runs": [run.model_dump() for run in runs]})
    )


def read_result(path: Path) -> BenchmarkResult:
    """A card from a file; ValueError, in a sentence, says what is wrong with it."""
    data = read_limited(path)
    try:
        return parse(BenchmarkResult, data)
    except ValueError as error:
        raise ValueError(f"{path} is no card of {NAME}: {error}") from error


def write_result(card: BenchmarkResult, path: Path) -> None:
    """Write a card whole or not at all."""
    write_whole(path, json.dumps(card.model_dump(mode="json"), indent=1) + "\n", follow_links=False)


def result_name(card: BenchmarkResult) -> str:
    """The name of a card's file: learner, players, budget."""
    budget = f"{card.decisions}" if card.decisions is not None else f"{card.hours:g}h"
    return f"{card.name}-{card.players}-{budget}.json"


def all_results(others: Iterable[Path] = (), shipped: Path = SHIPPED) -> list[BenchmarkResult]:
    """The project's cards and others; of one learner, players and budget the last one counts."""
    paths = [*sorted(shipped.glob("*.json")), *others]
    return [*{result_name(card): card for card in map(read_result, paths)}.values()]


def add_results(paths: Iterable[Path], folder: Path = SHIPPED) -> list[Path]:
    """Put cards among the project's, once all of them are checked; where they are now."""
    cards = [read_result(path) for path in paths]
    for card in cards:
        write_result(card, folder / result_name(card))
    return [folder / result_name(card) for card in cards]
