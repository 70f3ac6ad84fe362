"""The benchmark of learners: aggregates, results, resuming, the pages."""

import copy
import io
import json
import pickle
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from rich.console import Console

from busenv import Game, cli, load_board
from busenv.agents import make_agent
from busenv.common.runs import RunError
from busenv.evaluation.agent_digest import agent_digest
from busenv.evaluation.benchmark import benchmark_report, learners, measure, protocol, results
from busenv.evaluation.benchmark import exploit as exploiters
from busenv.evaluation.benchmark.benchmark_report import (
    challenge_tables,
    draw_results,
    put_tables,
    tables,
)
from busenv.evaluation.benchmark.learners import LEARNERS, BenchmarkLearner, OneSeatRun
from busenv.evaluation.benchmark.results import (
    BenchmarkResult,
    add_results,
    all_results,
    make_entry,
    read_result,
)
from busenv.evaluation.curves import format_mean, mean_interval
from busenv.evaluation.rating_report import Report
from busenv.observation import observe_games
from busenv.train.ppo_run import PPORun
from busenv.train.run_training import describe_training
from experiments.claims import find_figures, read_claims
from tests.support.commands import refusal
from tests.support.pages import ROOT, blocks

PPO_SETTINGS = {
    "width": 8, "games": 4, "steps": 50, "batch_size": 256, "opponent_share": 0.0,
}  # fmt: skip
ONE_SEAT_SETTINGS = {**PPO_SETTINGS, "games": 8, "bots": ("greedy",)}
TINY = 800  # decisions: a rollout of four games is a little less


class PicklingPool(ThreadPoolExecutor):
    """Threads that receive functions as processes do."""

    def map(self, function: Callable[..., Any], *items: Any, **more: Any) -> Iterator[Any]:
        return super().map(pickle.loads(pickle.dumps(function)), *items, **more)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A small panel, small learners, and runs in threads; without the bundled results, which have
    the full panel."""
    monkeypatch.setattr(measure, "worker_pool", lambda workers, _: PicklingPool(workers))
    monkeypatch.setattr(benchmark_report, "SHOWN", ("random",))
    monkeypatch.setattr(measure, "EXPLOITER_DECISIONS", 500)
    monkeypatch.setattr(measure, "EXPLOITER_BLOCKS", 1)
    quick = exploiters.PRESETS["quick"].changed(PPO_SETTINGS)
    monkeypatch.setitem(exploiters.PRESETS, "quick", quick)
    monkeypatch.setattr(all_results, "__defaults__", ((), tmp_path / "no results"))
    monkeypatch.setitem(LEARNERS, "ppo", BenchmarkLearner("a small one", PPO_SETTINGS))
    one_seat = BenchmarkLearner("a small one", ONE_SEAT_SETTINGS, OneSeatRun)
    monkeypatch.setitem(LEARNERS, "one-seat", one_seat)
    panels = [(panel, dict(panel)) for panel in (protocol.PANEL, protocol.CURVE_PANEL)]
    for panel, _ in panels:
        panel.clear()
        panel |= {"random": 1, "greedy": 1}
    yield
    for panel, full in panels:  # clear first: the order of keys is that of the tables
        panel.clear()
        panel |= full


def result_of(name: str, share: float, budget: int = 100_000) -> dict[str, Any]:
    """A result in which each of five runs wins the same share of its games."""

    def results(panel: dict[str, int]) -> dict[str, Any]:
        counts = protocol.count_games(panel, 4)
        return {
            bot: {"games": n, "wins": int(share * n), "points": 2.5} for bot, n in counts.items()
        }

    points = [
        {
            "decisions": budget * k // 10,
            "core_seconds": 1.0 * k,
            "results": results(protocol.CURVE_PANEL),
        }
        for k in range(1, 11)
    ]
    measured = {"decisions": budget, "curve": points, "panel": results(protocol.PANEL)}
    measured["exploiter"] = {"games": 400, "wins": int(400 * (1 - share))}
    return {
        "protocol": protocol.NAME, "busenv": "0.1.0", "name": name, "about": "made up",
        "players": 4, "decisions": budget, "machine": "a machine",
        "opponents": {bot: agent_digest(bot) for bot in protocol.PANEL},
        "runs": [{"seed": seed, **copy.deepcopy(measured)} for seed in range(5)],
    }  # fmt: skip


def write(path: Path, made: dict[str, Any]) -> Path:
    path.write_text(json.dumps(made))
    return path


def test_intervals_contain_the_mean_in_95_percent_of_few_runs() -> None:
    runs = np.random.default_rng(0).normal(0.5, 0.05, size=(4000, 5))
    low, high = np.transpose([mean_interval(scores) for scores in runs])
    assert ((low < 0.5) & (high > 0.5)).mean() == pytest.approx(0.95, abs=0.01)
    assert mean_interval(np.full(5, 0.45)) == (0.45, 0.45)
    assert mean_interval(np.array([0.0, 0.0, 0.02]))[0] == 0
    assert mean_interval(np.array([1.0, 1.0, 0.98]))[1] == 1
    assert format_mean(runs[0, :1]) == f"{runs[0, 0]:.1%}"  # a single run has no interval


GAMES = "busenv-agents-v3 with 4 players has"
CURVE = "the curve of seed 0 has decisions"
INVALID: list[tuple[Callable[[dict], Any], str]] = [
    (lambda made: made["runs"][1]["panel"]["planner"].update(wins=401), "401 wins of 400 games"),
    (lambda made: made["runs"][0]["panel"]["uct:1000"].update(games=63, wins=0), GAMES),
    (lambda made: made.update(players=3), "with 3 players has"),
    (lambda made: made.update(protocol="busenv-agents-v1"), "protocol is"),
    (
        lambda made: made["runs"][2].update(decisions=100_000 - 1, curve=[]),
        "seed 2 has 99,999 training decisions; allowed: 100,000 to 140,000",
    ),
    (lambda made: made["runs"][1].update(seed=0), r"seeds are \[0, 0, .*allowed: each once"),
    (lambda made: made["runs"][0]["curve"][-1].update(decisions=10**6), CURVE),
    (lambda made: made.update(name="../ppo"), "name is '../ppo'"),
    (lambda made: made["opponents"].pop("uct:100"), r"opponents are \['greedy', .*; allowed: "),
    (lambda made: made.update(machine=""), "machine is ''"),
    (lambda made: made["runs"][1]["panel"]["planner"].pop("points"), "lacks points"),
]


@pytest.mark.parametrize(("edit", "words"), INVALID)
def test_invalid_results_are_refused(
    edit: Callable[[dict], Any], words: str, tmp_path: Path
) -> None:
    made = result_of("ppo", 0.4)
    valid = write(tmp_path / "valid.json", made)
    assert read_result(valid).name == "ppo"
    edit(made)
    path = write(tmp_path / "invalid.json", made)
    with pytest.raises(ValueError, match=f"json is not a benchmark result: .*{words}"):
        add_results([valid, path], tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["invalid.json", "valid.json"]


def test_results_of_too_few_runs_are_marked_and_not_added(tmp_path: Path) -> None:
    made = result_of("ppo", 0.4)
    path = write(tmp_path / "result.json", made | {"runs": made["runs"][:4]})
    result = [read_result(path)]
    assert tables(result)[0].rows[0][0] == "ppo (4 runs)"
    assert challenge_tables(result)[0].rows[0][0] == "ppo, 100,000 (4 runs)"
    with pytest.raises(ValueError, match="ppo has 4 runs; allowed: at least 5"):
        add_results([path], tmp_path / "bundled")


def test_results_against_different_opponents_are_not_compared(tmp_path: Path) -> None:
    old, new = result_of("ppo", 0.4), result_of("mine", 0.5)
    new["opponents"]["uct:100"] = "0123456789abcdef"
    results = [read_result(write(tmp_path / f"{made['name']}.json", made)) for made in (old, new)]
    with pytest.raises(ValueError, match="ppo and mine cannot be compared: uct:100 played"):
        tables(results)
    assert len(tables([*results[:1], *all_results()])) == len(tables(all_results())) + 1


def test_results_that_cannot_be_compared_are_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = result_of("mine", 0.5)
    made["opponents"]["uct:100"] = "0123456789abcdef"
    others = [write(tmp_path / f"{name}.json", result_of(name, 0.4)) for name in ("ppo", "best")]
    paths = [str(path) for path in (*others, write(tmp_path / "mine.json", made))]
    monkeypatch.setattr(results, "add_results", lambda _: pytest.fail("added"))
    assert "mine cannot be compared" in refusal(capsys, "benchmark", "--add", *paths)


def test_forfeits_stop_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = pd.DataFrame([{"games": 16, "won": 0.0, "points": 0.0, "forfeits": 3}])
    monkeypatch.setattr(measure, "run_rating", lambda *_: Report(row, [], ""))
    with pytest.raises(RunError, match="exec:mine forfeited 3 games against"):
        measure._play_by_game("exec:mine", 4, tmp_path, 1)


def test_tables_of_bundled_and_own_results(tmp_path: Path) -> None:
    """Later results of a learner replace earlier ones; tables begin with the best learner."""
    bundled = tmp_path / "bundled"
    bundled.mkdir()
    old = write(tmp_path / "old.json", result_of("ppo", 0.1))
    long = write(tmp_path / "long.json", result_of("ppo", 0.6, 300_000))
    added = add_results([old, long], bundled)
    assert [path.name for path in added] == ["ppo-4-100000.json", "ppo-4-300000.json"]
    own = [result_of("ppo", 0.4), result_of("best", 0.5), result_of("last", 0.2)]
    paths = [write(tmp_path / f"{k}.json", one) for k, one in enumerate(own)]
    results = all_results(paths, bundled)
    short, longer = tables(results)
    title = "4 players (par 25%), 100,000 training decisions, protocol busenv-agents-v3"
    assert short.title == title
    assert [row[0] for row in short.rows] == ["best", "ppo", "last"]
    assert [row[1] for row in short.rows][:2] == ["50.0%\n[50.0, 50.0]", "40.0%\n[40.0, 40.0]"]
    assert longer.header == ["learner", "planner", "uct:100", "panel", "points", "exploiters"]
    panel, points, exploited = longer.rows[0][-3:]
    assert panel == "59.9%\n[59.9, 59.9]"  # with games of uct:1000
    assert (points, exploited) == ("2.50", "40.0%\n[40.0, 40.0]")

    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- baselines -->\nold\n<!-- end of baselines -->\nafter\n")
    put_tables(page, results)
    text = page.read_text()
    assert "old" not in text
    assert "| best | 50.0% [50.0, 50.0] |" in text
    assert "training decisions, protocol busenv-agents-v3:" in text
    assert text.startswith("Before\n")
    assert text.endswith("after\n")
    page.write_text("<!-- challenge -->\n<!-- end of challenge -->\n")
    put_tables(page, results)
    assert "| ppo, 300,000 | 60.0% [60.0, 60.0] |" in page.read_text()
    page.write_text("no place")
    with pytest.raises(RunError, match="has no lines"):
        put_tables(page, results)

    pictures = []
    for shown in (results[:1], results[:2]):
        draw_results(tmp_path / "curves.png", shown)
        pictures.append(plt.imread(tmp_path / "curves.png"))
    assert not np.array_equal(*pictures)  # the second result has a curve, too
    flat = tuple(run.model_copy(update={"curve": ()}) for run in results[0].runs)
    with pytest.raises(ValueError, match="no result of these players"):
        draw_results(tmp_path / "none.png", [results[0].model_copy(update={"runs": flat})])


@pytest.mark.usefixtures("quick")
def test_a_stopped_benchmark_keeps_the_finished_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make_entry("ppo", "a small one", 3, 3 * TINY)
    ticks = count()  # a step takes one second of processor time
    monkeypatch.setattr(measure.time, "process_time", lambda: float(next(ticks)))

    def bench(seeds: Sequence[int]) -> BenchmarkResult:
        return measure.bench_learner(entry, seeds, tmp_path, Console(quiet=True))

    first = bench([1])
    assert first == read_result(tmp_path / "result.json")
    [run] = first.runs
    assert len(run.curve) >= 2
    assert run.curve[-1].decisions == run.decisions >= 3 * TINY
    times = [point.core_seconds for point in run.curve]
    assert times == sorted({*times})
    assert run.panel["greedy"].games == run.exploiter.games == 9
    assert first.opponents == {bot: agent_digest(bot) for bot in ("random", "greedy")}
    assert first.machine == measure.machine_class()

    def interrupted(run: PPORun) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PPORun, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bench([1, 2])
    both = bench([1, 2])
    assert both.runs[0] == run
    assert [one.seed for one in both.runs] == [1, 2]
    monkeypatch.setattr(PPORun, "__init__", None)
    assert bench([1, 2]) == both  # finished: neither trained nor played
    other = make_entry("ppo", "a small one", 4, 3 * TINY)
    with pytest.raises(RunError, match="holds a run with players 3, not 4"):
        measure.bench_learner(other, [1], tmp_path, Console(quiet=True))
    (tmp_path / "seed-1/measured.json").write_text('{"panel": 1}')
    with pytest.raises(ValueError, match="seed is missing"):
        bench([1])


def test_one_seat_learns_and_its_agent_has_the_probabilities_of_the_policy(tmp_path: Path) -> None:
    learner = BenchmarkLearner("", ONE_SEAT_SETTINGS, OneSeatRun)
    run = OneSeatRun(learner.config(make_entry("one-seat", "x", 4, 1000), 3, 1), tmp_path)
    fresh = {name: value.clone() for name, value in run.network.state_dict().items()}
    while not run.is_done:
        run.step()
    assert run.decisions == 2 * 8 * learners.ROLLOUT_STEPS
    trained = run.network.state_dict()
    assert any(not torch.equal(trained[name], fresh[name]) for name in trained)

    games, board = Game(4, seed=1).arrays()[0], load_board("city")
    rows, masks = observe_games(games, board)
    with torch.no_grad():
        policy = run.network.get_distribution(torch.from_numpy(rows), action_masks=masks)
        logits = policy.distribution.logits / run.config.temperature
    run.save()
    saved = make_agent(LEARNERS["one-seat"].agent.format(tmp_path))
    assert np.array_equal(
        saved.action_probabilities(games, board), run.agent.action_probabilities(games, board)
    )
    probabilities = run.agent.action_probabilities(games, board)
    assert np.allclose(probabilities, logits.softmax(1).numpy(), atol=1e-5)
    assert probabilities.max() < 0.5


REMEMBERING = """
class Agent:
    def reset(self, seed):
        self.history = []
    def act(self, game):
        assert game.history[: len(self.history)] == self.history, "another game without reset"
        self.history = game.history
        return game.legal_actions()[0]
"""


@pytest.mark.usefixtures("quick", "threads_as_workers")
def test_external_agents_are_measured(tmp_path: Path, write: Callable[..., str]) -> None:
    """Built-in agents in a batch, a program and an agent that remembers its game one by one."""
    del protocol.PANEL["greedy"]
    program = write("while go := asked(): say('bestmove ' + go.split()[-1])")
    (tmp_path / "own.py").write_text(REMEMBERING)
    folder, path = tmp_path / "own", tmp_path / "own/result.json"
    agents = "greedy", program, f"py:{tmp_path}/own.py:Agent"
    arguments = ["benchmark", *agents, "--name", "mine", "--decisions", "0"]
    arguments += ["--players", "3", "--workers", "2", "--out", str(folder)]
    cli.main(arguments)
    result = read_result(path)
    assert (result.name, result.decisions, result.players) == ("mine", 0, 3)
    assert [run.panel["random"].games for run in result.runs] == [9, 9, 9]
    assert result.runs[0].panel["random"].wins >= 7
    assert result.runs[0].panel["random"].points > 0
    assert result.runs[0].exploiter.games == 9
    assert result.runs[1].panel["random"].wins <= 7
    for seed in (1, 2):  # game by game
        assert result.runs[seed].exploiter is None
        games = (folder / f"seed-{seed}/random/games.jsonl").read_text().splitlines()
        assert [json.loads(game)["forfeit"] for game in games] == [None] * 9


@pytest.mark.usefixtures("quick", "few_resamples", "threads_as_workers")
def test_the_commands_of_the_page_of_programs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "busenv/agents/external/EXEC.md"
    [client], [commands] = blocks(page, "python"), blocks(page, "sh")
    (tmp_path / "player.py").write_text(client)
    monkeypatch.chdir(tmp_path)
    limits = {"benchmark": ["--workers", "1"], "rate": ["--games", "1", "--workers", "1"]}
    outputs = []
    for line in commands.splitlines():
        _, *words = shlex.split(line)
        kind = words[0]
        cli.main([*words, "--players", "3", *limits[kind], "--out", kind])
        outputs.append(capsys.readouterr().out)
    assert "exec:python3 player.py" in outputs[1]
    assert read_result(tmp_path / "benchmark/result.json").runs[0].panel["random"].games == 9
    exploiters = ["exploit", "exec:python3 player.py", "--out", "exploit"]
    error = " ".join(refusal(capsys, *exploiters).split())
    assert "allowed: an agent that plays batches of games (with `choose`)" in error
    assert not Path("exploit").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ppo", "greedy"], "ppo is a learner: it takes no other agents"),
        (["net:city-2"], "trained agents need a name in the tables: add --name NAME"),
        (["net:city-2", "--name", "mine"], "training budget: add --decisions N (0 for none)"),
        (["ppo-selfplay"], "unknown learner 'ppo-selfplay'; did you mean 'ppo-self-play'?"),
        (["nothing"], "unknown learner 'nothing'; allowed: ppo, "),
        (["greedy", "--decisions", "0", "--name", "Mine!"], "name is 'Mine!'"),
        (["ppo", "--add", "no.json"], "no.json"),
        ([], "--name, --about and --out need a learner or agents to measure"),
        (["ppo", "--seeds", "4-0"], "'4-0' is not N or N-M"),
    ],
)
def test_invalid_arguments_are_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert message in refusal(capsys, "benchmark", *words, "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", LEARNERS)
def test_settings_of_every_learner_are_valid(name: str) -> None:
    config = LEARNERS[name].config(make_entry(name, LEARNERS[name].about, 4, 1000), 3, 1)
    assert (config.players, config.seed, config.threads) == ((4,), 3, 1)
    assert LEARNERS[name].teacher or config.decisions == 1000
    if name == "ppo-self-play":
        assert describe_training(config) == "PPO by self-play"


def test_claims_and_page_have_the_rows_of_the_bundled_results() -> None:
    console = Console(width=200, file=io.StringIO(), color_system=None)
    for page, make in (("results", tables), ("challenge", challenge_tables)):
        for table in make(all_results()):
            table.show(console)
            assert table.markdown() in (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    challenge = read_claims()["challenge/results"]
    rows = re.findall(challenge.find, console.file.getvalue(), re.MULTILINE)
    assert find_figures(" ; ".join(rows)) == challenge.figures
    claims = {key: one for key, one in read_claims().items() if key.startswith("baselines/")}
    assert len(claims) == len(all_results())
    for claim in claims.values():
        (row,) = re.findall(claim.find, console.file.getvalue(), re.MULTILINE)
        assert find_figures(row) == claim.figures
    assert all(len(one.runs) >= protocol.RUNS for one in all_results())
