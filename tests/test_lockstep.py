"""Compare self-play in lockstep with self-play that plays one game at a time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from busenv.networks.compiled_network import read_weights
from busenv.networks.model_files import load_model, model_path
from busenv.networks.network import Network
from busenv.train.expert_iteration import selfplay_run
from busenv.train.expert_iteration.expert_config import SelfPlayConfig
from busenv.train.expert_iteration.expert_selfplay import (
    GameSpecs,
    SearchPlay,
    SelfPlayPayload,
    draw_games,
    play_games,
)
from busenv.train.expert_iteration.lockstep_run import play_in_lockstep
from busenv.train.expert_iteration.replay_buffer import read_file
from busenv.train.expert_iteration.selfplay_run import run_selfplay
from tests.support.networks import CITY, small_network
from tests.support.training import DEVICES, RULES

QUIET = Console(quiet=True)
PLAY = SearchPlay(num_simulations=12, fast_simulations=4, full_search_share=0.5, bot_simulations=1)


def specs(count: int, seed: int) -> GameSpecs:
    config = SelfPlayConfig(agent="az:city-4:12", players=(3, 4, 5), bot_share=0.0)
    return draw_games(config, count, RULES, CITY, np.random.default_rng(seed))


def network_named(name: str) -> Network:
    return small_network() if name == "small" else load_model(model_path(name))[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["small", "city-4"])
def test_lockstep_plays_the_games_of_the_search(name: str, device: str) -> None:
    """At least 4 of 6 games match; rounding may change a decision, and so the rest of its game."""
    games, network = specs(6, 3), network_named(name)
    expected = play_games(games, SelfPlayPayload(read_weights(network), PLAY, CITY))
    played = play_in_lockstep(games, network, PLAY, CITY, slots=4, device=torch.device(device))
    same = 0
    for ours, theirs in zip(played, expected, strict=True):
        assert ours[0]["game"] == theirs[0]["game"]
        np.testing.assert_allclose(ours[0]["win_probs"], theirs[0]["win_probs"], atol=1e-3)
        if len(ours) == len(theirs) and (ours["game"] == theirs["game"]).all():
            same += 1
            np.testing.assert_array_equal(ours["points"], theirs["points"])
            np.testing.assert_array_equal(ours["winner"], theirs["winner"])
            np.testing.assert_allclose(ours["win_probs"], theirs["win_probs"], atol=1e-3)
            assert (abs(ours["policy"].astype(int) - theirs["policy"]) < 100).all()
    assert same >= 4


def test_slots_play_game_after_game() -> None:
    games, network, device = specs(3, 4), small_network(), torch.device("cpu")
    one, all_at_once = (
        play_in_lockstep(games, network, PLAY, CITY, slots=slots, device=device) for slots in (1, 3)
    )
    for ours, theirs in zip(one, all_at_once, strict=True):
        np.testing.assert_array_equal(ours["game"], theirs["game"])


def test_a_folder_holds_games_of_both_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`device=cuda`, here on the CPU, and then the CPU: all files but one at most are the CPU's."""
    monkeypatch.setattr(selfplay_run, "PART_GAMES", 2)
    monkeypatch.setattr(selfplay_run, "LOCKSTEP_PARTS", 2)
    monkeypatch.setattr(selfplay_run, "find_device", lambda: torch.device("cpu"))
    config = SelfPlayConfig(
        agent="az:city-4:6", fast_simulations=2, bot_share=0.0, players=(3,), samples=200, threads=1
    )
    run_selfplay(config, tmp_path / "one", QUIET)
    run_selfplay(config.changed({"device": "cuda", "samples": 1}), tmp_path / "both", QUIET)
    run_selfplay(config, tmp_path / "both", QUIET)
    names = sorted(path.name for path in (tmp_path / "one").glob("*.safetensors"))
    assert len(names) >= 3
    one, both = (
        [read_file(tmp_path / folder / name, CITY)["game"] for name in names]
        for folder in ("one", "both")
    )
    equal = [len(a) == len(b) and bool((a == b).all()) for a, b in zip(one, both, strict=True)]
    assert equal.count(True) >= len(names) - 1


def test_unsupported_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_device() -> torch.device:
        raise ValueError("PyTorch finds no CUDA GPU")

    monkeypatch.setattr(selfplay_run, "find_device", find_device)
    config = SelfPlayConfig(agent="az:city-4:6", bot_share=0.0, device="cuda")
    for changes, message in (
        ({}, "PyTorch finds no CUDA GPU"),
        ({"agent": "az:generated-4:6"}, "requires a network of kind seats or features"),
        ({"board": "generated:city:train:8"}, "plays on one board"),
    ):
        with pytest.raises(ValueError, match=message):
            run_selfplay(config.changed(changes), tmp_path, QUIET)


def test_a_damaged_network_is_refused() -> None:
    network = small_network()
    network.get_parameter("value.2.bias").data[0] = np.inf
    with pytest.raises(ValueError, match="values are not finite"):
        play_in_lockstep(specs(1, 5), network, PLAY, CITY, slots=1, device=torch.device("cpu"))
