"""Training by the command: folder, curve, output, resuming."""

import io
import json
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

from busenv import Board, Rules, cli, load_board
from busenv.agents import Agent, make_agent
from busenv.agents.match import Score, play_match
from busenv.agents.model_agents import load_policy_agent
from busenv.common.intervals import wilson
from busenv.common.runs import RunError
from busenv.evaluation.plots import draw_intervals
from busenv.game.board import BOARDS
from busenv.game.rules import as_rules
from busenv.train import ppo_run
from busenv.train import training_run as training
from busenv.train.config import PPOConfig
from busenv.train.config_files import read_config
from busenv.train.learning_curve import (
    CurvePoint,
    draw_curve,
    read_curve,
    write_curve,
)
from busenv.train.ppo_run import PPORun
from busenv.train.training_run import (
    describe_training,
    evaluate_against,
    rating_interval,
    run_training,
)
from tests.support.commands import refusal
from tests.support.training import SMALL_PPO, parameters, same_tensors
from tests.support.worlds import write_town


def test_ratings_take_at_most_a_tenth_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SMALL_PPO.changed({"rate_every": 0.001, "decisions": 2000})
    assert [rating_interval(config, last) for last in (0.0, 1.0, 10.0)] == [0.001, 9.0, 90.0]

    def rate(run: Any, curve: list[CurvePoint], log: object) -> None:
        run._began -= 1000.0  # as if it had taken so long
        curve.append(CurvePoint(run.seconds, run.decisions, config.rate_games, {}))

    monkeypatch.setattr(training, "_rate", rate)
    run, curve = run_training(config, tmp_path, Console(quiet=True))
    assert run.iteration > 2
    assert [point.decisions for point in curve] == [0, run.decisions]


def test_a_run_writes_model_curve_and_scalars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "LOW_ENTROPY", 99.0)  # any entropy is lower
    console = Console(record=True, width=120)
    config = SMALL_PPO.changed({"rate_every": 0.001, "decisions": 600})
    run, curve = run_training(config, tmp_path, console)
    assert console.export_text().count("Policy entropy is below 99.0 nats per decision") == 1
    stored = read_curve(tmp_path / "curve.csv")
    assert [p.decisions for p in stored] == [p.decisions for p in curve]
    assert curve[0].decisions == 0
    assert curve[-1].decisions == run.decisions >= 600
    card = json.loads((tmp_path / "model.json").read_text())
    assert card["training"]["config"] == config.to_dict()
    assert card["players"] == [3, 4]
    assert make_agent(f"ppo:{tmp_path / 'model.safetensors'}")
    (events,) = (tmp_path / "tensorboard").iterdir()
    content = events.read_bytes()
    for tag in (
        "train/value_loss",
        "train/entropy",
        "train/explained_variance",
        "train/clip_fraction",
        "train/grad_norm",
        "train/learning_rate",
        "time/decisions_per_second",
        "games/deliveries",
        "games/rounds",
        "actions/vrrooomm",
        "rating/wins_against_3_random",
    ):
        assert tag.encode() in content


def test_ratings_are_repeatable_and_follow_the_rules_and_players_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, seen = make_agent("ppo@1:city-2"), []

    seeds: list[int] = []
    make, reset = training.make_agent, agent.reset
    monkeypatch.setattr(training, "make_agent", lambda s, k: (seeds.append(k), make(s, k))[1])
    monkeypatch.setattr(agent, "reset", lambda k: (seeds.append(k), reset(k))[1])
    for players in (3, 4, 5):
        seeds.clear()
        evaluate_against(agent, "random", players, 5, players=players)
        assert len({*seeds}) == len(seeds) == players

    def spy(
        agents: list[Agent], games: int, rules: str | Rules, board: Board, **options: Any
    ) -> list[Score]:
        seen.append((len(agents), as_rules(rules).name))
        return play_match(agents, games, rules, board, **options)

    monkeypatch.setattr(training, "play_match", spy)
    first, again = (
        evaluate_against(agent, "random", 12, 5, rules="splotter-1999") for _ in range(2)
    )
    assert first == again
    assert seen == [(4, "splotter-1999")] * 2
    seen.clear()
    config = SMALL_PPO.changed({"rules": "splotter-1999", "rate_games": 2, "players": (5,)})
    run = PPORun(config, tmp_path)
    with SummaryWriter(tmp_path) as log:
        training._rate(run, [], log)
    assert seen == [(5, "splotter-1999")]


def test_learning_curves_round_trip(tmp_path: Path) -> None:
    curve = [
        CurvePoint(0.0, 0, 8, {"random": 0.25, "x": 0.0}),
        CurvePoint(1.5, 9, 8, {"random": 0.5, "x": 1.0}),
        CurvePoint(2.5, 12, 4, {"x": 1.0, "y": 0.75}),  # lengthened, rated against others
    ]
    write_curve(tmp_path / "curve.csv", curve)
    assert read_curve(tmp_path / "curve.csv") == curve
    assert read_curve(tmp_path / "none.csv") == []
    draw_curve(tmp_path / "curve.png", curve, "title")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_curves_show_intervals_par_and_phases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    curve = [CurvePoint(k, 1000 * k, 40, {"random": k / 4, "x": 0.25}) for k in range(5)]
    draw_curve(tmp_path / "curve.png", curve, "title", players=3, imitated=1000)
    draw_curve(tmp_path / "curve.png", curve, "title")
    phased, plain = (figure.axes[0] for figure in drawn)
    assert phased.get_ylim() == (0, 1)
    assert [text.get_text() for text in phased.texts] == ["imitation", "PPO"]
    assert [text.get_text() for text in plain.texts] == []
    labels = {str(line.get_label()): line for line in phased.lines}
    assert [label for label in labels if label[0] != "_"] == [
        "against 2 random", "against 2 x", "par, 33%",
    ]  # fmt: skip
    assert set(labels["par, 33%"].get_ydata()) == {1 / 3}
    shaded = phased.collections[0].get_paths()[0].vertices
    at_half = shaded[shaded[:, 0] == 2.0][:, 1]
    assert (at_half.min(), at_half.max()) == pytest.approx(wilson(20, 40))


def test_a_run_can_be_lengthened_but_not_shortened(tmp_path: Path) -> None:
    short = SMALL_PPO.changed({"decisions": 700})
    before, _ = run_training(short, tmp_path, Console(quiet=True))
    assert before.imitated == 0 < before.decisions
    console = Console(record=True, width=200, file=io.StringIO())
    more = {"decisions": 7000, "rated": ("greedy",), "rate_games": 2, "rate_every": 9.0}
    going_on = read_config(str(tmp_path / "run.json")).changed(more)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            PPORun, "is_done", property(lambda run: run.iteration >= before.iteration + 2)
        )
        after, curve = run_training(going_on, tmp_path, console)
    output = console.export_text()
    assert f"Resuming after {before.decisions:,} decisions" in output
    for change in ("decisions 700 → 7000", "rate_games 4 → 2", "('random',) → ('greedy',)"):
        assert change in output
    assert after.decisions > before.decisions
    assert read_config(str(tmp_path / "run.json")) == going_on
    assert [sorted(p.wins) for p in read_curve(tmp_path / "curve.csv")] == [
        sorted(p.wins) for p in curve
    ]
    assert (list(curve[0].wins), list(curve[-1].wins)) == (["random"], ["greedy"])
    with pytest.raises(RunError, match=f"decisions is 50, but .* already had {after.decisions:,}"):
        run_training(short.changed({"decisions": 50}), tmp_path, Console(quiet=True))
    with pytest.raises(RunError, match="holds a run with width 8, not 9; give the same settings"):
        run_training(going_on.changed({"width": 9}), tmp_path, Console(quiet=True))
    assert read_config(str(tmp_path / "run.json")) == going_on


def test_a_finished_run_is_rated_again_only_if_its_ratings_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SMALL_PPO.changed({"decisions": 300})
    changed = config.changed({"rate_games": 2, "rated": ("greedy", "random")})
    run_training(config, tmp_path, Console(quiet=True))
    _, curve = run_training(changed, tmp_path, Console(quiet=True))
    assert (curve[-1].games, {*curve[-1].wins}) == (2, {"greedy", "random"})
    monkeypatch.setattr(training, "evaluate", None)
    run_training(changed, tmp_path, Console(quiet=True))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_resumes_bit_for_bit_after_ctrl_c(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted before the update of an iteration, or when weights and moments have changed."""
    config, folder = SMALL_PPO, tmp_path / "a run"
    straight, _ = run_training(config, tmp_path / "straight", Console(quiet=True))
    console = Console(record=True, width=60, file=io.StringIO())
    update, calls = ppo_run.update, []

    def interrupted(*arguments: Any, **settings: Any) -> dict[str, float]:
        calls.append(moment)
        if moment == "before" and len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        statistics = update(*arguments, **settings)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return statistics

    with monkeypatch.context() as patched:
        patched.setattr(ppo_run, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_training(config, folder, console)
    output = console.export_text()
    (line,) = (line for line in output.splitlines() if line.startswith("Stopped after"))
    assert line.endswith(f"To resume: busenv train '{folder}'")
    card = json.loads((folder / "model.json").read_text())
    assert 0 < card["training"]["decisions"] < 1200
    assert make_agent(f"ppo:{folder / 'model.safetensors'}")
    assert (folder / "learning_curve.png").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with monkeypatch.context() as patched:  # between iterations it is raised at once
        patched.setattr(PPORun, "_play", lambda *_: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            PPORun(config, folder)
    resumed, _ = run_training(read_config(str(folder / "run.json")), folder, Console(quiet=True))
    assert same_tensors(parameters(straight), parameters(resumed))


@pytest.mark.parametrize("place", ["store_config", "PPORun.save"])
def test_a_run_starts_after_ctrl_c_before_its_first_checkpoint(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SMALL_PPO.changed({"decisions": 300})
    with monkeypatch.context() as patched:
        patched.setattr(f"{run_training.__module__}.{place}", press)
        with pytest.raises(KeyboardInterrupt):
            run_training(config, tmp_path, Console(quiet=True))
    run, _ = run_training(config, tmp_path, Console(quiet=True))
    assert run.is_done


def press(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_run_on_a_board_file_stores_the_board(tmp_path: Path) -> None:
    folder, file = tmp_path / "run", tmp_path / "town.json"
    config = SMALL_PPO.changed({"board": write_town(file), "decisions": 300})
    run, _ = run_training(config, folder, Console(quiet=True))
    fingerprint = load_board(file).fingerprint
    assert fingerprint != load_board("city").fingerprint
    assert isinstance(run, PPORun)
    tags = set(run._games.batch.games["board_tag"])
    assert tags == set(load_board(file).array["tag"])
    card = json.loads((folder / "model.json").read_text())
    assert (card["board"]["name"], card["board"]["fingerprint"]) == ("town", fingerprint)

    write_town(file)  # the same content: the run resumes
    run_training(config, folder, Console(quiet=True))
    file.write_text((BOARDS / "city.json").read_text())
    with pytest.raises(
        RunError, match=rf"board .*/board.json \(fingerprint {fingerprint}\), not .*/town.json \("
    ):
        run_training(config, folder, Console(quiet=True))

    file.unlink()
    moved = folder.rename(tmp_path / "moved")
    stored = read_config(str(moved / "run.json")).changed({"decisions": 900})
    run, _ = run_training(stored, moved, Console(quiet=True))
    assert run.decisions >= 900
    agent = load_policy_agent(str(moved / "model.safetensors"))
    assert (agent.board.name, agent.board.fingerprint) == ("town", fingerprint)

    (moved / "board.json").write_text((BOARDS / "city.json").read_text())
    with pytest.raises(ValueError, match=rf"a board with fingerprint {fingerprint}; .*changed"):
        run_training(stored, moved, Console(quiet=True))


def test_opponents_trained_on_another_board_are_refused_at_the_start(tmp_path: Path) -> None:
    config = SMALL_PPO.changed({"board": write_town(tmp_path / "town.json")})
    for changes in ({"rated": ["ppo:city-2"]}, {"bots": ["greedy", "ppo:city-2"]}):
        with pytest.raises(ValueError, match=r"ppo:city-2 was trained on .*city.*, not on .*town"):
            run_training(config.changed(changes), tmp_path / "run", Console(quiet=True))
    run = PPORun(config, tmp_path / "run")  # the folder is still unused
    run.save()
    with pytest.raises(ValueError, match=r"the checkpoint has the bots \['greedy'\], the settings"):
        PPORun(config.changed({"bots": ["random"]}), run.folder)


def test_a_run_with_a_rules_file_stores_the_rules(tmp_path: Path) -> None:
    folder, file = tmp_path / "run", tmp_path / "house.json"
    file.write_text(json.dumps({**Rules().to_dict(), "bus_limit": 3}))
    config = SMALL_PPO.changed({"rules": str(file), "decisions": 300})
    run_training(config, folder, Console(quiet=True))
    card = json.loads((folder / "model.json").read_text())
    assert card["rules"]["bus_limit"] == 3
    file.write_text(json.dumps({**Rules().to_dict(), "bus_limit": 4}))
    with pytest.raises(RunError, match=r"holds a run with rules .*'bus_limit': 3.* not .*: 4"):
        run_training(config, folder, Console(quiet=True))
    file.unlink()
    stored = read_config(str(folder / "run.json"))
    run, _ = run_training(stored, folder, Console(quiet=True))
    assert run.rules.bus_limit == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "PPO among greedy, planner and past selves"),
        ({"opponent_share": 0.0}, "PPO by self-play"),
    ],
)
def test_the_training_procedure_is_described(changes: dict[str, Any], words: str) -> None:
    assert describe_training(PPOConfig().changed(changes)) == words


def test_drawing_does_not_change_the_backend_of_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(matplotlib.rcParams, "backend", "svg")  # a notebook sets another one, too
    table = pd.DataFrame([[0.5, 0.4, 0.6, 0.25]], index=["ppo"])
    draw_intervals(tmp_path / "wins.png", table, "title", "note", share=True)
    draw_curve(tmp_path / "curve.png", [CurvePoint(0.0, 0, 8, {"random": 0.25})], "title")
    for name in ("wins.png", "curve.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert matplotlib.get_backend() == "svg"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fast"], "no preset, settings file or run folder 'fast'; allowed: quick, standard, full"),
        (["runs/mnie"], "folder 'runs/mnie'; allowed: quick, standard, full, expert, FILE.json"),
        (["no.json", "--set", "num_simulations=2"], "or run folder 'no.json'; allowed: quick"),
        (["/dev/null/x.json", "--set", "reuse=2"], "or run folder '/dev/null/x.json'; allowed"),
        (["quick", "--set", "games=0"], "games is 0"),
        (["expert", "--set", "num_simulations=0"], "num_simulations is 0"),
    ],
)
def test_invalid_settings_end_the_command_without_a_folder(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert message in refusal(capsys, "train", *words, "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_damaged_settings_file_is_named_before_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "expert.json"
    file.write_text('{"method": "expert"')
    error = refusal(capsys, "train", str(file), "--set", "num_simulations=2")
    assert f"{file}: EOF while parsing" in " ".join(error.split())


def test_a_folder_does_not_hide_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quick").mkdir()
    assert "games is 0" in refusal(capsys, "train", "quick", "--set", "games=0")


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Limit files to a size in bytes: writes beyond it fail half-way, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_reported_with_the_name_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """A run resumes on a full disk; no file is empty or truncated, and it resumes later."""
    run, _ = run_training(SMALL_PPO.changed({"decisions": 500}), tmp_path, Console(quiet=True))
    before = {path: path.read_bytes() for path in tmp_path.glob("*") if path.is_file()}
    capsys.readouterr()
    command = ["train", str(tmp_path), "--set", f"decisions={run.decisions + 1}"]
    with full_disk(20_000):
        error = refusal(capsys, *command)
    assert error == f"busenv: {tmp_path / 'checkpoint.safetensors'}: File too large\n"
    assert all(path.read_bytes() == data for path, data in before.items() if "run" not in path.name)
    assert all(path.stat().st_size for path in tmp_path.rglob("*") if path.name != "lock")
    capsys.readouterr()
    cli.main([*command, "--games", "4"])
    assert f"Resuming after {run.decisions:,} decisions" in capsys.readouterr().out
    card = json.loads((tmp_path / "model.json").read_text())
    assert card["training"]["decisions"] > run.decisions
