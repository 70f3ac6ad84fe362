"""Training by the command: folder, curve, output, resuming."""

import io
import json
import re
import resource
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

from busenv import Rules, cli, load_board
from busenv.agents import Agent, make_agent
from busenv.agents.match import play_match
from busenv.common.runs import RunError
from busenv.game.board import BOARDS
from busenv.game.rules import as_rules
from busenv.train import ppo_run
from busenv.train import run_training as training
from busenv.train.config_files import read_config, resume_command
from busenv.train.learning_curve import CurvePoint, draw_curve, read_curve, write_curve
from busenv.train.ppo_run import PPORun
from busenv.train.run_training import evaluate_against, rating_interval, run_training
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


def test_ratings_follow_numbers_of_decisions(tmp_path: Path) -> None:
    config = SMALL_PPO.changed({"rate_decisions": 700, "rate_games": 4, "decisions": 2000})
    run, curve = run_training(config, tmp_path, Console(quiet=True))
    decisions = [point.decisions for point in curve]
    assert len(decisions) >= 3
    assert decisions[-1] == run.decisions
    assert all(b // 700 > a // 700 for a, b in pairwise(decisions[:-1]))
    by_time = config.changed({"rate_every": 5.0})
    assert by_time.rate_decisions is None


def test_a_run_resumes_without_an_agent_that_rated_it(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(
        "class Bot:\n    def choose(self, games, board):\n"
        "        import busenv\n"
        "        return busenv.make_agent('random').choose(games, board)\n"
    )
    bot = f"py:{tmp_path}/bot.py:Bot"
    for rated in ((bot,), ("random",)):
        config = SMALL_PPO.changed({"rated": rated, "bots": (bot,)})
        _, curve = run_training(config, tmp_path / "trained", Console(quiet=True))
        assert curve[-1].wins.keys() >= {*rated}
        _, folder, _, *settings = resume_command(config, tmp_path / "trained")
        assert read_config(f"{folder}/run.json", settings) == config
    run_training(SMALL_PPO.changed({"rated": (bot,)}), tmp_path / "run", Console(quiet=True))
    (tmp_path / "bot.py").unlink()
    _, curve = run_training(SMALL_PPO, tmp_path / "run", Console(quiet=True))
    assert curve[-1].wins.keys() == {bot, "random"}
    more = SMALL_PPO.changed({"rate_games": 6})
    _, curve = run_training(more, tmp_path / "run", Console(quiet=True))
    assert curve[-1].wins.keys() == {"random"}


def test_a_run_writes_model_curve_and_scalars(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    config = SMALL_PPO.changed({"rate_every": 0.001, "decisions": 600, "threads": threads + 1})
    run, curve = run_training(config, tmp_path, Console(quiet=True))
    assert torch.get_num_threads() == threads
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
    first, again = (
        evaluate_against(agent, "random", 12, 5, rules="splotter-1999") for _ in range(2)
    )
    assert first == again

    def spy(agents: list[Agent], games: int, rules: str | Rules, *others: Any, **options: Any):  # type: ignore[no-untyped-def]
        seen.append((len(agents), as_rules(rules).name))
        return play_match(agents, games, rules, *others, **options)

    monkeypatch.setattr(training, "play_match", spy)
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


def test_a_run_can_be_lengthened(tmp_path: Path) -> None:
    short = SMALL_PPO.changed({"decisions": 700})
    before, _ = run_training(short, tmp_path, Console(quiet=True))
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


def test_ctrl_c_before_a_run_begins_leaves_nothing_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    console, folder = Console(record=True, file=io.StringIO()), tmp_path / "run"
    monkeypatch.setattr(training, "_make_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_training(SMALL_PPO, folder, console)
    assert "To resume" not in console.export_text()
    assert not folder.exists()


def test_a_run_resumes_bit_for_bit_after_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, folder = SMALL_PPO, tmp_path / "a run"
    straight, _ = run_training(config, tmp_path / "straight", Console(quiet=True))
    console = Console(record=True, width=60, file=io.StringIO())
    update, calls = ppo_run.update, []

    def interrupted(*arguments: Any, **settings: Any) -> dict[str, float]:
        calls.append(update(*arguments, **settings))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return calls[-1]

    with monkeypatch.context() as patched:
        patched.setattr(ppo_run, "update", interrupted)
        patched.setattr(training, "SAVE_EVERY", 0.0)
        with pytest.raises(KeyboardInterrupt):
            run_training(config, folder, console)
    output = console.export_text()
    (line,) = (line for line in output.splitlines() if line.startswith("Stopped"))
    assert line == f"Stopped. To resume: busenv train '{folder}'"
    card = json.loads((folder / "model.json").read_text())
    assert card["training"]["iterations"] == 3
    resumed, _ = run_training(read_config(str(folder / "run.json")), folder, Console(quiet=True))
    assert same_tensors(parameters(straight), parameters(resumed))
    models = [path / "model.safetensors" for path in (tmp_path / "straight", folder)]
    assert models[0].read_bytes() == models[1].read_bytes()
    decisions = [point.decisions for point in read_curve(folder / "curve.csv")]
    assert decisions == sorted({*decisions})


def test_a_run_stores_its_board_and_rules_files(tmp_path: Path) -> None:
    folder, town, house = tmp_path / "run", tmp_path / "town.json", tmp_path / "house.json"
    house.write_text(json.dumps({**Rules().to_dict(), "bus_limit": 3}))
    changes = {"board": write_town(town), "rules": str(house), "decisions": 300}
    config = SMALL_PPO.changed(changes)
    run, _ = run_training(config, folder, Console(quiet=True))
    fingerprint = load_board(town).fingerprint
    assert isinstance(run, PPORun)
    assert {*run._parts[0].games.batch.games["board_tag"]} == {*load_board(town).array["tag"]}
    card = json.loads((folder / "model.json").read_text())
    assert (card["board"]["name"], card["board"]["fingerprint"]) == ("town", fingerprint)
    assert card["rules"]["bus_limit"] == 3

    write_town(town)  # the same content: the run resumes
    run_training(config, folder, Console(quiet=True))
    content = {**Rules().to_dict(), "bus_limit": 4}
    for file, text in ((house, json.dumps(content)), (town, (BOARDS / "city.json").read_text())):
        file.write_text(text)
        with pytest.raises(RunError, match=r"holds a run with (board|rules) "):
            run_training(config, folder, Console(quiet=True))
        file.unlink()
        house.write_text(json.dumps({**content, "bus_limit": 3}))

    moved = folder.rename(tmp_path / "moved")
    stored = read_config(str(moved / "run.json")).changed({"decisions": 900})
    run, _ = run_training(stored, moved, Console(quiet=True))
    assert run.decisions >= 900
    assert (run.board.fingerprint, run.rules.bus_limit) == (fingerprint, 3)


def test_opponents_trained_on_another_board_are_refused_at_the_start(tmp_path: Path) -> None:
    config = SMALL_PPO.changed({"board": write_town(tmp_path / "town.json")})
    for changes in ({"rated": ["ppo:city-2"]}, {"bots": ["greedy", "ppo:city-2"]}):
        with pytest.raises(ValueError, match=r"ppo:city-2 was trained on .*city.*, not on .*town"):
            run_training(config.changed(changes), tmp_path / "run", Console(quiet=True))
    run = PPORun(config, tmp_path / "run")  # the folder is still unused
    run.save()
    with pytest.raises(
        ValueError, match=r"the checkpoint has the opponents \['greedy'\]; the settings"
    ):
        PPORun(config.changed({"bots": ["random"]}), run.folder)


def test_a_full_disk_is_reported_with_the_name_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """A run resumes on a full disk; no file is truncated, and it resumes later."""
    run, _ = run_training(SMALL_PPO.changed({"decisions": 500}), tmp_path, Console(quiet=True))
    before = {path: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
    command = ["train", str(tmp_path), "--set", f"decisions={run.decisions + 1}"]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # longer files fail half-way
    try:
        error = refusal(capsys, *command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert re.fullmatch(rf"busenv: {tmp_path}/\S+: File too large\n", error)
    assert all(path.read_bytes() == data for path, data in before.items())
    capsys.readouterr()
    cli.main([*command, "--games", "4"])
    assert f"Resuming after {run.decisions:,} decisions" in capsys.readouterr().out
