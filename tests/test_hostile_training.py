"""Untrusted checkpoints, settings and training folders: read as stored, or a one-line error."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from busenv import load_board
from busenv.networks.factory import build_network
from busenv.train.checkpoint import load_checkpoint, save_checkpoint
from busenv.train.config_files import read_config
from busenv.train.ppo_run import PPORun
from busenv.train.run_training import run_training
from tests.support.commands import refusal
from tests.support.training import SMALL_PPO

CITY = load_board("city")
RUN = SMALL_PPO.changed({
    "players": (4,), "snapshot_every": 1, "decisions": 600,
})  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a finished run, which a test may damage."""
    run_training(RUN, tmp_path / "run", Console(quiet=True))
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"iteration": -1}, "iteration is -1"),
        ({"league": [("greedy", 2)]}, "league.0.1 is 2; "),
        ({"format": 3}, "it has format 3; this busenv has"),
        ({"more": 1}, "more is 1; extra inputs"),
        ({"width": 9}, "Error.s. in loading state_dict .* size mismatch"),
        ({"width": 256}, "it is larger than 2,"),
    ],
)
def test_invalid_checkpoints_are_refused(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    network, other = (build_network("mlp", CITY, w) for w in (8, changes.pop("width", 8)))
    optimizer = torch.optim.Adam(network.parameters())
    state = {"iteration": 1, "decisions": 5, "seconds": 1.0, "league": [("greedy", 0.5)]}
    save_checkpoint(tmp_path, other, optimizer, {**state, **changes}, {})
    with pytest.raises(ValueError, match=f"not a valid checkpoint .*: {words}") as refused:
        load_checkpoint(tmp_path, network, optimizer, {})
    assert len(str(refused.value)) < 1200
    assert str(refused.value).isprintable()


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_other_settings_in_a_folder_are_refused(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    for content, words in (
        ({"width": 9}, "not a valid checkpoint of these settings"),
        ({"gamma": 7}, "gamma is 7; input should be less than or equal to 1"),
    ):
        change_json(folder / "run.json", **content)
        assert words in " ".join(refusal(capsys, "train", str(folder)).split())
    (folder / "run.json").write_text("[" * 100_000)
    assert "run.json is not JSON text" in refusal(capsys, "train", str(folder))


def test_programs_named_only_in_a_file_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """In a run folder and in a recipe; also when the command line names another program."""
    touched = tmp_path / "touched"
    program = f"exec@5:touch {touched}"
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({**RUN.to_dict(), "rated": ["greedy", program]}))
    change_json(folder / "run.json", rated=["greedy", program])
    for source in (folder, recipe):
        for words in ([], ["--set", "seed=1"]):
            error = refusal(capsys, "train", str(source), *words, "--out", str(tmp_path / "out"))
            output = " ".join(error.split())
            assert f"rated has '{program}': a settings file cannot start programs" in output
            assert "set rated by --set rated=" in output
    recipe.write_text(json.dumps({"bots": ["py:players.py:Player"]}))
    with pytest.raises(ValueError, match=r"bots has 'py:players.*cannot start programs"):
        read_config(str(recipe))
    assert not touched.exists()
    assert not (tmp_path / "out").exists()
    recipe.write_text(json.dumps({**RUN.to_dict(), "rated": ["greedy", program]}))
    assert program in read_config(str(recipe), [f"rated={program}"]).rated
    recipe.write_text(json.dumps({"rated": "exec:\x1b[31m" + "x" * 9000}))
    with pytest.raises(ValueError, match="rated has 'exec:") as refused:
        read_config(str(recipe))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1200


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_reported(tmp_path: Path) -> None:
    with pytest.raises((ValueError, ModuleNotFoundError), match=r'device(=| is )"cuda"'):
        PPORun(RUN.changed({"device": "cuda"}), tmp_path)
