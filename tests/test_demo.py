"""The demo: training, report, replay and suggested commands."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from busenv import Game, cli
from busenv.agents import make_agent
from busenv.common.runs import RunError
from busenv.evaluation import rating
from busenv.evaluation.schedule import Schedule
from tests.support.commands import refusal


@pytest.mark.filterwarnings("ignore")
def test_demo_writes_a_report_and_a_replay_and_suggests_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / "a run"
    cli.main(["demo", "--seconds", "1", "--games", "16", "--out", str(folder)])
    names = {path.name for path in folder.iterdir()}
    assert names >= {"report.md", "learning_curve.png", "curve.csv", "model.safetensors"}
    assert names >= {"model.json", "run.json", "tensorboard", "replay.json", "replay.html"}
    report = (folder / "report.md").read_text()
    assert re.search(r"\| az:64, 3 greedy \| [\d.]+% \|", report)
    assert re.search(r"\| net, 3 greedy \| [\d.]+% \|", report)
    how = "PPO among greedy, planner and past selves"
    assert how in report.replace("\n", " ")
    seconds = json.loads((folder / "model.json").read_text())["training"]["seconds"]
    assert f"training decisions in {seconds:.0f} s;" in report  # without the final ratings
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "curve.csv").read_text().count("\n") >= 2
    assert make_agent(f"ppo:{folder / 'model.safetensors'}").name.startswith("ppo:")

    out = capsys.readouterr().out
    assert out.splitlines()[0] == f"Training: {how}."
    assert re.search(r"rating ━+ 6/6 ", out)
    (last,) = (line for line in out.splitlines() if "won random" in line)  # of the last rating
    share = (folder / "curve.csv").read_text().splitlines()[-1].split(",")[3]
    assert f"won random {float(share):.0%}" in last
    (head,) = (line for line in out.splitlines() if line.startswith("line-up"))
    for column in ("wins", "95% interval", "rank", "points"):  # all fit in 80 columns
        assert f" {column} " in f"{head} "
    assert len(head) <= 80
    assert "az:64, 3 random" not in out

    game = Game.load(folder / "replay.json")
    assert game.is_over
    assert game.num_players == 4
    page = (folder / "replay.html").read_text()
    assert "planner" in page
    assert "<h2>Estimate of az:model:64</h2>" in page  # not its path
    assert "ppo" not in out

    commands = report.split("```sh\n")[1].split("\n```")[0].splitlines()
    assert [command for command in commands if command in out] == commands
    train, rate, replay = (shlex.split(command) for command in commands)
    program = shutil.which(train[0])  # runs in this shell, without an activated environment too
    assert program is not None
    assert Path(program).name == "busenv"
    assert [words[:2] for words in (train, rate, replay)] == [
        [train[0], name] for name in ("train", "rate", "replay")
    ]
    assert train[-1] == "seconds=3600"
    done = json.loads((folder / "model.json").read_text())["training"]["seconds"]
    cli.main([*train[1:-1], f"seconds={done + 0.5}", "rated=random", "--games", "4"])
    assert "Resuming after" in capsys.readouterr().out
    cli.main([{"uct:300": "uct:4"}.get(word, word) for word in replay[1:]])
    assert (folder / "replay-uct.html").exists()

    def agents_only(schedule: Schedule, *_: object) -> None:  # a rating plays 48 games or more
        for spec in schedule.specs:
            rating.check_agent(spec)
        raise RunError(f"agents: {schedule.specs}")

    monkeypatch.setattr(rating, "run_rating", agents_only)
    error = refusal(capsys, *rate[1:], "--out", str(tmp_path / "rating"))
    assert f"agents: ('az:{folder}/model.safetensors:64', 'planner')" in error
