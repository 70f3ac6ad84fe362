"""Untrusted checkpoints, settings and training folders: read as stored, or a one-line error."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from busenv import Batch, Rules, load_board
from busenv.agents.model_agents import load_policy_agent
from busenv.common.runs import RunError
from busenv.networks import model_files
from busenv.networks.factory import build_network, weights_of
from busenv.train import run_folder
from busenv.train.checkpoint import (
    CHECKPOINT_FILE,
    FORMAT,
    State,
    read_games,
    read_state,
    read_tensors,
    restore,
    save_checkpoint,
)
from busenv.train.config import parse_settings
from busenv.train.config_files import programs, read_config
from busenv.train.league import League
from busenv.train.learning_curve import read_curve
from busenv.train.ppo_run import PPORun
from busenv.train.training_run import run_training
from tests.support.commands import refusal
from tests.support.mutate import damaged
from tests.support.training import SMALL_PPO, same_tensors
from tests.support.worlds import write_town

CITY = load_board("city")

RUN = SMALL_PPO.changed({
    "players": (4,), "snapshot_every": 1, "decisions": 600,
})  # fmt: skip


GAMES = Batch(RUN.games).state()  # arrays of the shapes of the run's games


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, with every kind of file."""
    place = tmp_path_factory.mktemp("trained")
    town, house = place / "town.json", place / "house.json"
    write_town(town)
    house.write_text(json.dumps({**Rules().to_dict(), "bus_limit": 3}))
    config = RUN.changed({"board": str(town), "rules": str(house)})
    run_training(config, place / "run", Console(quiet=True))
    return place / "run"


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained folder that a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def read_checkpoint(folder: Path) -> tuple[State, dict[str, torch.Tensor]]:
    """Files from which a run resumes."""
    weights = weights_of("mlp", load_board(folder / "board.json"), 8)
    return read_state(folder), read_tensors(folder, weights, GAMES)


def test_invalid_checkpoints_are_refused(folder: Path) -> None:
    state, tensors = read_checkpoint(folder)
    about = state.model_dump(exclude={"format"})
    network = build_network("mlp", load_board(folder / "board.json"), 8)
    optimizer = torch.optim.Adam(network.parameters())
    restore(tensors, network, optimizer)
    games = read_games(tensors, GAMES)
    last = list(network.parameters())[-1]

    def refused(words: str, **changes: Any) -> None:
        save_checkpoint(folder, network, optimizer, {**about, **changes}, games)
        with pytest.raises(ValueError, match=f"not a valid checkpoint: {words}") as refusal:
            read_checkpoint(folder)
        assert len(str(refusal.value)) < 1200

    save_checkpoint(folder, network, optimizer, about, games)
    read = read_checkpoint(folder)
    assert read[0] == state
    assert same_tensors(read[1], tensors)
    refused("seconds is nan", seconds=float("nan"))
    refused("iteration is -1", iteration=-1)
    refused("decisions is '5'", decisions="5")
    refused("league.0.1 is 2; ", league=[("greedy", 2)])
    refused("format is '2'", format="2")
    refused(f"it has format 3; this busenv has {FORMAT}", format=3)
    refused("more is 1; extra inputs", more=1)
    refused("its state is too large", config={"x": "x" * 10**6})
    refused(r"rules is 'r.*\.\.\. \(.*; ", rules="r" * 10**5)
    moments = optimizer.state[last]
    moments["exp_avg"].fill_(np.inf)
    refused("optimizer.9.exp_avg holds a number that is not finite")
    moments["exp_avg"] = torch.zeros(7)
    refused(r"optimizer.9.exp_avg is torch.float32, \(7,\); it needs torch.float32, \(1,\)")
    del moments["exp_avg"]
    refused("optimizer.9.exp_avg is missing")
    moments["exp_avg"] = torch.zeros(1)
    games["games"] = games["games"][:3]
    refused(r"games.games is torch.uint8, \(1440,\); it needs torch.uint8, \(1920,\)")
    save_checkpoint(folder, build_network("mlp", CITY, 256), optimizer, about, games)
    with pytest.raises(ValueError, match="it is too large; allowed: 2,"):
        read_checkpoint(folder)


READ = ("run.json", "curve.csv", "board.json", "rules.json", CHECKPOINT_FILE, "model.json",
        "model.safetensors", "past/*.json", "past/*.safetensors")  # fmt: skip
NASTY = (
    b"NaN", b"-1", b"1e999", b"9" * 400, b"0.5", b"null", b"true", b'""', b"[]", b"{}", b"\x00",
    b"[" * 9000, b"\xff", b'"\\ud800"', b",", b"\n", b'"\x1b[31m"', b"../../x", b'"exec:touch x"',
)  # fmt: skip


def damaged_file(data: bytes, rng: random.Random) -> bytes:
    """The content of a file with some bytes changed, or with a number or text replaced."""
    if rng.random() < 0.6:
        return damaged(data, rng)
    word = rng.choice([*re.finditer(rb'-?[0-9][0-9.]*|"[^"]*"', data)])
    return data[: word.start()] + rng.choice(NASTY) + data[word.end() :]


def weights_in_play(folder: Path) -> list[dict[str, torch.Tensor]]:
    """All networks that are read when a run resumes: the learner's, past selves', the model's.

    The other files are read too, as by the command.
    """
    config = read_config(str(folder / "run.json"))
    run_folder.changed_settings(folder, config)
    read_curve(folder / "curve.csv")
    run = PPORun(config, folder)
    past = [m.network for m in run._league.members if m.network is not None]
    model = load_policy_agent(str(folder / "model.safetensors")).network
    return [network.state_dict() for network in (run.network, *past, model)]


@pytest.mark.parametrize("tries", [220, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_training_folders_are_refused_or_read_as_stored(
    tries: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damaged files of a run, 20 of each, give a one-line error or the same weights."""
    monkeypatch.setattr(PPORun, "_warm_up", lambda _: None)
    monkeypatch.setattr(PPORun, "save", lambda _: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(model_files, "RETRY_SECONDS", 0.0)
    good = weights_in_play(folder)
    assert len(good) == 4
    paths = [path for pattern in READ for path in sorted(folder.glob(pattern))]
    assert len(paths) == 11
    rng, refused = random.Random(tries), 0
    for attempt in range(tries):
        path = paths[attempt % len(paths)]
        data = path.read_bytes()
        path.write_bytes(damaged_file(data, rng))
        words = ""
        try:
            read = weights_in_play(folder)
        except (ValueError, OSError, RunError) as error:
            words = str(error)
        if words:
            refused += 1
            assert "\n" not in words
            assert words.isprintable()
            assert len(words) < 5000
        else:
            assert len(read) == len(good)
            assert all(map(same_tensors, read, good))
        path.write_bytes(data)
    assert refused > 0.6 * tries


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nan,1,8,0.5", "line 2: 'nan,1,8,0.5' is not a point"),
        ("1.0,-1,8,0.5", "line 2"),
        ("1.0,1,0,0.5", "line 2"),
        ("1.0,1,8,1.5", "line 2"),
        ("1.0,1,8,inf", "line 2"),
        ("1.0,1,8", "line 2"),
        ("1.0,1,8,0.5\n2.0,1,8,0.5", "line 3"),
        ("9" * 200_000, "is not a learning curve: field larger than field limit"),
        ("\xff", "line 2"),
        (" " * 10_000_001, "is larger than 10,000,000 bytes, the most that is read"),
    ],
)
def test_invalid_learning_curves_are_refused(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text(f"seconds,decisions,games,random\n{line}\n")
    with pytest.raises(ValueError, match=f"curve.csv.*{words}"):
        read_curve(path)
    for head in ("", "seconds,decisions", "a,b,c,d", "seconds,decisions,games,x,x",
                 "seconds,decisions,games,\x1b[31m"):  # fmt: skip
        path.write_text(head)
        with pytest.raises(ValueError, match="learning curve: its first line is '") as refused:
            read_curve(path)
        assert str(refused.value).isprintable()


def test_a_folder_with_inconsistent_files_is_refused(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    """No file in them is changed."""

    def refused(words: str) -> None:
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        error = refusal(capsys, "train", str(folder), "--set", "decisions=900")
        assert words in " ".join(error.split())
        assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    run, good = folder / "run.json", (folder / "run.json").read_bytes()
    change_json(run, gamma=0.5)
    refused("run.json has changed: gamma is 0.5, but the run started with 0.99")
    change_json(run, gamma=0.99, width=8192)
    refused("run.json has changed: width is 8192, but the run started with 8")
    run.write_text("[" * 100_000)
    refused("run.json: recursion limit exceeded")
    run.write_bytes(good)
    board = (folder / "board.json").read_bytes()
    (folder / "board.json").write_text("[" * 100_000)
    refused("board.json is not JSON text")
    (folder / "board.json").write_bytes(board)
    (folder / "curve.csv").write_text("?")
    refused("curve.csv is not a learning curve")


def test_past_selves_outside_the_pool_are_refused(tmp_path: Path) -> None:
    for name in ("../past-1", "/etc/past-1", "past-1/../x", "past-1\n"):
        league = League(("greedy",), tmp_path, CITY, 3)
        with pytest.raises(ValueError, match=r"not a past self: .*expected past-NUMBER"):
            league.restore([("greedy", 0.5), (name, 0.5)])


def test_programs_named_only_in_a_file_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """In a run folder and in a recipe; also when the command line names another program."""
    name, touched = "rated", tmp_path / "touched"
    program = f"exec@5:touch {touched}"
    value = ["greedy", program]
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({**RUN.to_dict(), name: value}))
    change_json(folder / "run.json", **{name: value})
    for source in (folder, recipe):
        for words in ([], ["--set", "seed=1", f"{name}=exec:true"]):
            error = refusal(capsys, "train", str(source), *words, "--out", str(tmp_path / "out"))
            output = " ".join(error.split())
            assert f"{name} has '{program}': a settings file cannot start programs" in output
            assert f"--set '{name}={','.join(value)}'" in output
    assert not touched.exists()
    assert not (tmp_path / "out").exists()
    with_comma = ["greedy", "exec:player a,b"]
    recipe.write_text(json.dumps({name: with_comma}))
    error = refusal(capsys, "train", str(recipe))
    assert f"--set '{name}={json.dumps(with_comma)}'" in " ".join(error.split())
    recipe.write_text(json.dumps({**RUN.to_dict(), name: value}))
    given = parse_settings([f"{name}={program}"])
    config = read_config(str(recipe), programs(given))
    assert program in programs(config.to_dict())
    assert programs({"bots": ["greedy"], "rated": None}) == set()
    recipe.write_text(json.dumps({name: "exec:\x1b[31m" + "x" * 9000}))
    with pytest.raises(ValueError, match=f"{name} has 'exec:") as refused:
        read_config(str(recipe))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1200


def test_a_program_is_no_teacher_and_no_opponent_in_training(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    for program in (f"exec:touch {tmp_path}/touched", "llm:model"):
        recipe.write_text(json.dumps({"method": "expert", "teacher": program}))
        with pytest.raises(ValueError, match=f"teacher is '{program}'; allowed: an agent"):
            read_config(str(recipe), [program])
        recipe.write_text(json.dumps({"method": "ppo", "bots": [program]}))
        with pytest.raises(ValueError, match=f"bots has '{program}'; allowed: an agent"):
            read_config(str(recipe), [program])
    assert not (tmp_path / "touched").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="device is 'cuda', but torch finds no GPU here"):
        PPORun(RUN.changed({"device": "cuda"}), tmp_path)
