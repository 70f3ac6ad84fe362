"""What is shown and kept of training: command, curve, warning, studies."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import pandas as pd
import pytest
import torch
from busenv.agents import Agent, make_agent
from busenv.agents.neural.networks import Mlp
from busenv.experiments import cli
from busenv.experiments.bench import throughput
from busenv.experiments.bench.throughput import Stopwatch, learning, seat_training, usual_training
from busenv.experiments.ratings.match import Score, play_match
from busenv.experiments.ratings.pictures import draw_intervals
from busenv.experiments.studies import networks
from busenv.experiments.training import runs as training
from busenv.experiments.training.curve import CurvePoint, draw_curve, read_curve, write_curve
from busenv.experiments.training.runs import against, run_training
from busenv.train.config import Config
from busenv.train.trainer import Run
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

from tests.test_runs import SMALL


def test_a_run_leaves_model_curve_and_scalars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "COLLAPSED", 99.0)  # any entropy is lower
    console = Console(record=True, width=120)
    config = SMALL.changed({"rate_every": 0.001, "decisions": 2000})
    run, curve = run_training(config, tmp_path, console)
    assert console.export_text().count("nearly stopped exploring") == 1
    kept = read_curve(tmp_path / "curve.csv")
    assert [p.decisions for p in kept] == [p.decisions for p in curve]
    assert curve[0].decisions == 0
    assert curve[-1].decisions == run.decisions >= 2000
    card = json.loads((tmp_path / "model.json").read_text())
    assert card["training"]["config"] == config.to_dict()
    assert card["players"] == [3, 4]
    assert make_agent(f"ppo:{tmp_path / 'model.safetensors'}")
    (events,) = (tmp_path / "tensorboard").iterdir()
    content = events.read_bytes()
    for tag in (
        "train/value_loss",
        "train/entropy_loss",
        "train/explained_variance",
        "games/deliveries",
        "games/rounds",
        "actions/vrrooomm",
        "rating/wins_against_3_random",
    ):
        assert tag.encode() in content


def test_ratings_depend_on_agent_seed_and_rules_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, seen = make_agent("ppo@1:city-2"), []

    def spy(agents: list[Agent], games: int, rules: str) -> list[Score]:
        seen.append(rules)
        return play_match(agents, games, rules)

    monkeypatch.setattr(training, "play_match", spy)
    first, again = (against(agent, "random", 12, 5, "splotter-1999") for _ in range(2))
    assert first == again
    assert seen == ["splotter-1999"] * 2
    config = SMALL.changed({"rules": "splotter-1999", "rate_games": 2})
    run = Run(config, tmp_path)
    training._rate(run, [], SummaryWriter(tmp_path))
    assert set(seen) == {"splotter-1999"}


def test_curves_are_kept(tmp_path: Path) -> None:
    curve = [
        CurvePoint(0.0, 0, {"random": 0.25, "x": 0.0}),
        CurvePoint(1.5, 9, {"random": 0.5, "x": 1.0}),
    ]
    write_curve(tmp_path / "curve.csv", curve)
    assert read_curve(tmp_path / "curve.csv") == curve
    assert read_curve(tmp_path / "none.csv") == []
    draw_curve(tmp_path / "curve.png", curve, "title", "note")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_leave_the_backend_of_the_caller_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(matplotlib.rcParams, "backend", "svg")  # as a notebook has its own
    table = pd.DataFrame([[0.5, 0.4, 0.6, 0.25]], index=["ppo"])
    draw_intervals(tmp_path / "wins.png", table, "title", "note", share=True)
    draw_curve(tmp_path / "curve.png", [CurvePoint(0.0, 0, {"random": 0.25})], "title", "note")
    for name in ("wins.png", "curve.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert matplotlib.get_backend() == "svg"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fast"], "unknown preset 'fast'"),
        (["nowhere.json"], "nowhere.json"),
        (["quick", "--set", "games=0"], "games is 0"),
        (["quick", "--set", "games"], "setting 'games'; allowed: NAME=VALUE"),
    ],
)
def test_bad_settings_end_the_command_before_anything_is_made(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["train", *words, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_keeps_its_settings(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run_training(SMALL.changed({"decisions": 500}), tmp_path, Console(quiet=True))
    with pytest.raises(SystemExit):
        cli.main(["train", str(tmp_path), "--set", "games=5"])
    assert "holds a run with games 4, not 5" in capsys.readouterr().err


def test_throughput_is_measured() -> None:
    config = Config(
        width=8, games=2, batch_size=64, warm_start="", bots=("random",), threads=1, device="cpu"
    )
    forward, backward = Mlp.forward, torch.Tensor.backward
    speed, share = seat_training(config, 0.2)
    assert speed > 0
    assert 0 < share < 1
    assert torch.Tensor.backward is backward
    assert Mlp.forward is forward
    assert usual_training(config, 0.1) > 0


def test_what_is_learned_is_compared() -> None:
    config = Config(width=8, games=2, batch_size=64, warm_start="", threads=1, device="cpu")
    found = learning(config, 300, 4)
    assert [[score.games for score in scores] for _, scores in found] == [[4, 4], [4, 4]]
    assert found[0][0] != found[1][0]


def test_a_stopwatch_counts_calls_inside_of_each_other_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = iter(range(100))  # one a look at the clock
    monkeypatch.setattr(throughput.time, "perf_counter", lambda: next(ticks))
    watch = Stopwatch()
    inner = watch.around(lambda: None)
    inner()
    assert watch.seconds == 1
    watch.around(lambda: [inner() for _ in range(3)])()  # looks at 2, 3, 4, 5 and 6
    assert watch.seconds == 1 + 4


def test_networks_are_compared() -> None:
    config = SMALL.changed({"decisions": 300})
    cells = networks.study(config, 4)
    assert len(cells) == 2 + len(networks.BOTS)
    assert set(networks.WIDTHS) == {"mlp", "board"}
