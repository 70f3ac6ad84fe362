"""Games of a rating: worker processes, forfeits, times, agents as objects."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busenv import Game, Record, rate
from busenv.agents import Agent, AgentError, make_agent
from busenv.common.runs import RunError
from busenv.errors import AgentUnavailableError
from busenv.evaluation import tournament
from busenv.evaluation.rating import run_rating
from busenv.evaluation.rating_report import forfeit_tables
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tables import result_table, seat_rows
from busenv.evaluation.tournament import play_game, play_games
from tests.support.ratings import (
    THREE_AGENTS,
    TWO_AGENTS,
    games_of,
    rated_game,
    stored_games,
    without_times,
)

pytestmark = pytest.mark.usefixtures("few_resamples")


def test_games_do_not_depend_on_the_workers() -> None:
    numbers, expected = range(THREE_AGENTS.total), without_times(games_of(THREE_AGENTS))
    together = [game for some in play_games(THREE_AGENTS, numbers, 2) for game in some]
    assert without_times(together) == expected
    other_seed = Schedule(THREE_AGENTS.agents, 3, 9, seed=1)
    assert without_times(games_of(other_seed)) != expected[:9]


def test_finished_games_are_kept_when_another_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(schedule: Schedule, number: int, **_: Any) -> dict[str, Any]:
        if number == 2:
            raise AgentUnavailableError("the server is gone")
        return rated_game(number, schedule)

    monkeypatch.setattr(tournament, "play_game", play)
    with pytest.raises(RunError, match=f"the server is gone; .* in {tmp_path}, and the same"):
        run_rating(THREE_AGENTS, tmp_path)
    assert [game["number"] for game in stored_games(tmp_path)] == [0, 1]


def test_few_games_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default games are played in this process first; then no more workers start than games."""
    started, numbers = [], range(3)

    def pool(workers: int, _: object) -> ThreadPoolExecutor:
        started.append(workers)
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(tournament, "worker_pool", pool)
    monkeypatch.setattr(tournament, "available_cores", lambda: 48)
    for workers, seconds in ((1, 0.0), (None, 100.0), (None, 0.0), (2, 0.0), (100, 0.0)):
        monkeypatch.setattr(tournament, "SECONDS_ALONE", seconds)
        assert len([*play_games(TWO_AGENTS, numbers, workers)])
    tournament.close_agents()
    assert started == [3, 2, 3]


SCRIPT = """
from pathlib import Path
from busenv.evaluation.rating import run_rating
from busenv.evaluation.schedule import Schedule
run_rating(Schedule(("greedy", "random"), 3, 18), Path({folder!r}), 2)
"""


def test_a_script_with_workers_needs_a_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path / "run")))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240)
    assert done.returncode != 0
    assert 'under if __name__ == "__main__":' in done.stderr


class Faulty(Agent):
    """Plays at random, then fails in the way of its name."""

    closed = 0

    def __init__(self, name: str) -> None:
        self.name = name
        self.inner = make_agent("random")
        self.left = 0

    def reset(self, seed: int) -> None:
        self.left = 7
        self.inner.reset(seed)

    def choose(self, games: np.ndarray, board: Any) -> np.ndarray:
        self.left -= 1
        if self.left:
            return self.inner.choose(games, board)
        if self.name == "silent":
            raise AgentError("no answer")
        if self.name == "broken":
            raise ZeroDivisionError("no visits")
        if self.name == "no memory":
            raise MemoryError
        if self.name == "exit":
            sys.exit(0)
        if self.name == "long":
            raise ValueError("x" * 2_000_000 + "\udc80")
        return np.array([374])

    def _act(self, game: Game) -> Any:
        action = super()._act(game)
        if action == 374 and self.name == "stepping":
            game.step(game.legal_actions()[0])
        return None if action == 374 and self.name == "none" else action

    def close(self) -> None:
        Faulty.closed += 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("silent", "no answer"),
        ("wrong", "action 374"),
        ("none", "action is None"),
        ("broken", "ZeroDivisionError: no visits"),
        ("exit", "SystemExit: 0"),
        ("long", "ValueError: xxx"),
        ("stepping", "stepping changed the game; step game.clone() instead"),
    ],
)
def test_agents_that_fail_forfeit(fault: str, why: str) -> None:
    def build(spec: str) -> Agent:
        return Faulty(spec) if spec == fault else make_agent(spec)

    before = Faulty.closed
    schedule = Schedule((fault,), players=4, games=16, against="random")
    games = [play_game(schedule, number, build) for number in range(schedule.total)]
    assert Faulty.closed == before + 16
    for game in games:
        forfeit, record = game["forfeit"], Record.from_dict(game["record"])
        seat, standing = forfeit["seat"], Game.from_record(record)
        assert game["agents"][seat] == fault
        assert why in forfeit["why"]
        assert len(forfeit["why"].encode()) < 1100
        assert forfeit["ply"] == len(record.actions)
        assert game["decisions"][seat] in (6, 7)
        assert game["ranking"][seat] == 3
        assert game["points"] == standing.points
        others = [other for other in range(4) if other != seat]
        assert sorted(others, key=game["ranking"].__getitem__) == sorted(
            others, key=standing.ranking().__getitem__
        )
    table = result_table(seat_rows(games), schedule)
    assert table["forfeits"].to_dict() == {fault: 16, "random": 0}
    assert table.loc[fault, "won"] == 0
    rows = forfeit_tables(games)[0].rows
    assert {agent for agent, _, _ in rows} == {fault}
    assert all(why in reason for _, reason, _ in rows)


def test_faults_of_this_machine_and_of_own_agents_are_no_forfeits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(MemoryError):
        play_game(Schedule(("no memory",) * 3, players=3), 0, Faulty)
    monkeypatch.setattr(Faulty, "__module__", "busenv.agents.faulty")
    with pytest.raises(ZeroDivisionError):
        play_game(Schedule(("broken",) * 3, players=3), 0, Faulty)
    tournament.close_agents()


def test_specs_and_objects_are_rated_in_one_call() -> None:
    mine = Faulty("silent")
    closed = Faulty.closed
    with pytest.warns(UserWarning, match="18 of 36 games are forfeits"):
        table = rate([mine, "random"], 20, against="greedy", players=3, seed=1)
    assert Faulty.closed == closed
    assert [*table.index] == ["silent", "random", "greedy"]
    assert table["games"].to_dict() == {"silent": 18, "random": 18, "greedy": 36}
    assert table["forfeits"].to_dict() == {"silent": 18, "random": 0, "greedy": 0}
    assert [*rate([make_agent("random"), make_agent("random")], 1).index] == [
        "random",
        "random (1)",
    ]
    with pytest.raises(ValueError, match="was trained on"):
        rate([make_agent("net:city-2"), "greedy"], 1, players=3, board="generated:small:1")
    with pytest.warns(UserWarning, match="9 of 9 games are forfeits"):
        table = rate([Faulty("greedy")], 1, against="greedy", players=3)
    assert [*table.index] == ["greedy (1)", "greedy"]
    with pytest.raises(TypeError, match="allowed: a sequence of specs and objects"):
        rate("greedy", against="random")


class Named:
    """An object that plays as another agent; its resets fail without one."""

    name = "mine"

    def __init__(self, spec: str) -> None:
        self.inner = make_agent(spec) if spec else None

    def reset(self, seed: int) -> None:
        assert self.inner, "no agent"
        self.inner.reset(seed)

    def act(self, game: Game) -> int:
        assert self.inner
        return self.inner.act(game)


def test_an_agent_that_cannot_be_reset_forfeits() -> None:
    with pytest.warns(UserWarning, match="16 of 16 games are forfeits"):
        table = rate([Named("")], 16, against="random")
    assert table["forfeits"].to_dict() == {"mine": 16, "random": 0}


def test_an_agent_forfeits_with_all_of_its_seats() -> None:
    with pytest.warns(UserWarning, match="16 of 16 games are forfeits; the first: "):
        table = rate(["random"], 16, against=Faulty("silent"))
    assert table["won"].to_dict() == {"random": 1, "silent": 0}


class First:
    """Plays the first legal action."""

    def act(self, game: Game) -> int:
        return game.legal_actions()[0]


def test_repeated_games_are_reported() -> None:
    with pytest.warns(UserWarning, match="Only 12 of the 48 games are different"):
        rate([First(), First()], 48)


def test_ratings_in_several_threads_do_not_share_agents() -> None:
    def won(spec: str) -> float:
        return float(rate([Named(spec)], 16, against="random")["won"]["mine"])

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(won, ("greedy", "random"))] == [won("greedy"), won("random")]


class SlowToBegin(Faulty):
    """Plays at random; takes 1000 s over each of its first decisions and 1 s over the others."""

    clock = 0.0

    def choose(self, games: np.ndarray, board: Any) -> np.ndarray:
        SlowToBegin.clock += 1 if SlowToBegin.clock >= 1000 * tournament.WARM_UP else 1000
        return self.inner.choose(games, board)


def test_first_decisions_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tournament.time, "perf_counter", lambda: SlowToBegin.clock)
    game = play_game(Schedule(("slow to begin",) * 3, players=3, games=16), 0, SlowToBegin)
    assert sum(game["seconds"]) == sum(game["timed"])
    assert sum(game["timed"]) == sum(game["decisions"]) - tournament.WARM_UP
    assert sum(game["decisions"]) == len(game["record"]["actions"])
