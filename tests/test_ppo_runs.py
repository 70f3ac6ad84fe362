"""Runs of PPO: settings, repeatable results, resuming, the league."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from busenv import load_board
from busenv.networks.factory import build_network
from busenv.networks.model_files import save_model
from busenv.train.config import PPOConfig
from busenv.train.config_files import ALL_PRESETS, parse_settings, read_config
from busenv.train.league import League, update_scores
from busenv.train.ppo_run import PPORun
from tests.support.training import DEVICES, SMALL_PPO, parameters, same_tensors


@pytest.mark.parametrize(
    ("device", "changes"),
    [
        ("cpu", {"bots": ("greedy", "random"), "threads": 2}),
        ("cpu", {"board": "generated:small:train:6", "games": 12, "decisions": 3000}),
        pytest.param("cuda", {"bots": ("greedy", "random")}, marks=DEVICES[1].marks),
    ],
)
def test_a_run_is_repeatable_and_resumes_bit_for_bit(
    device: str, changes: dict[str, object], tmp_path: Path
) -> None:
    config = SMALL_PPO.changed({"device": device, **changes})
    straight = PPORun(config, tmp_path / "straight")
    fresh = parameters(straight)
    while not straight.is_done:
        straight.step()
    assert straight.iteration >= 7
    assert not same_tensors(fresh, parameters(straight))

    for stop in (1, 5):
        folder = tmp_path / f"stopped{stop}"
        stopped = PPORun(config, folder)
        for _ in range(stop):
            stopped.step()
        stopped.save()
        stopped.step()  # not saved
        resumed = PPORun(config, folder)
        assert resumed.iteration == stop
        while not resumed.is_done:
            resumed.step()
        assert same_tensors(parameters(straight), parameters(resumed))
        assert resumed._league.state() == straight._league.state()
        assert resumed.decisions == straight.decisions

    other = PPORun(config.changed({"seed": 1}), tmp_path / "other")
    assert not same_tensors(fresh, parameters(other))


def test_a_run_starts_from_a_model(tmp_path: Path) -> None:
    first = PPORun(SMALL_PPO, str(tmp_path / "first"))
    first.step()
    save_model(first.network, first.board, tmp_path / "model.safetensors", first.card())
    start = str(tmp_path / "model.safetensors")
    second = PPORun(SMALL_PPO.changed({"init_from": start}), tmp_path / "second")
    assert same_tensors(parameters(first), parameters(second))
    with pytest.raises(ValueError, match=r"has network, width .*; the settings have .*32"):
        PPORun(SMALL_PPO.changed({"init_from": start, "width": 32}), tmp_path / "third")
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.safetensors"):
        PPORun(
            SMALL_PPO.changed({"init_from": str(tmp_path / "none.safetensors")}),
            tmp_path / "fourth",
        )


def test_the_pool_is_bounded_and_damaged_pool_files_are_refused(tmp_path: Path) -> None:
    run = PPORun(SMALL_PPO, tmp_path / "run")
    while not run.is_done:
        run.step()
    run.save()
    names = [name for name, _ in run._league.state()]
    assert names[0] == "greedy"
    assert len(names) == 3
    files = {path.stem for path in (tmp_path / "run" / "past").iterdir()}
    assert files == set(names[1:])
    broken, missing = tmp_path / "broken", tmp_path / "missing"
    for folder in (broken, missing):
        shutil.copytree(tmp_path / "run", folder)
    (broken / "past" / f"{names[1]}.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match=f"{names[1]}.safetensors does not match the checksum"):
        PPORun(SMALL_PPO, broken)
    (missing / "past" / f"{names[2]}.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=names[2]):
        PPORun(SMALL_PPO, missing)


def test_opponents_that_win_are_drawn_more_often(tmp_path: Path) -> None:
    board = load_board("city")
    league = League(("random", "greedy"), tmp_path, board, 3)
    network = build_network("mlp", board, 8)
    for k in range(4):
        league.add(network, {"network": "mlp", "width": 8}, f"past-{k}")
    names = [member.name for member in league.members]
    assert names == ["random", "greedy", "past-3", "past-1", "past-2"]  # past-3 replaced past-0
    for member in league.members:
        member.score = 0.1 if member.name == "past-2" else 0.9
    rng, drawn = np.random.default_rng(0), []
    for _ in range(100):
        opponents, weights = league.draw(rng)
        assert weights.tolist() == pytest.approx([0.5, 0.5, 0.5, 0.5])
        assert [opponents[owner].name for owner in (1, 2)] == ["random", "greedy"]
        drawn += [opponents[owner].name for owner in (3, 4)]
    assert drawn.count("past-2") > 90
    assert min(drawn.count("past-1"), drawn.count("past-3")) > 30
    league.bots[0].score = 0.1
    assert league.draw(rng)[1][0] > 0.9
    league.add(network, {"network": "mlp", "width": 8}, "past-4")
    assert "past-2" in [member.name for member in league.members]
    assert len(league.members) == 5


def test_scores_count_pairs_of_seats(tmp_path: Path) -> None:
    league = League(("random", "planner"), tmp_path, load_board("city"), 3)
    random, planner = league.bots
    opponents, _ = league.draw(np.random.default_rng(0))
    assert (opponents, league.num_owners) == ({1: random, 3: planner}, 5)
    seat_owners = np.array([[0, 1, 0, 0, 0], [1, 1, 0, 9, 9]])
    ranks = np.array([[0, 1, 2, 3, 0], [0, 1, 2, 9, 9]])
    update_scores(opponents, seat_owners, ranks, np.array([4, 3]))
    # The learner's seat is ahead in one of five pairs.
    assert random.score == pytest.approx(0.8 * 0.5 + 0.2 * 1 / 5)
    assert planner.score == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"games": 0}, "games is 0; input should be greater than or equal to 1"),
        ({"gamma": math.nan}, "gamma is nan; input should be a finite number"),
        ({"players": [2]}, "players.0 is 2; input should be greater than or equal to 3"),
        ({"players": []}, r"players is \(\); tuple should have at least 1 item"),
        ({"seconds": 1.0, "decisions": 5}, "seconds is 1.0 and decisions is 5; allowed: exactly"),
        ({"gama": 1.0}, r"^no setting 'gama'; did you mean 'gamma'\?$"),
        ({"bots": []}, "opponent_share is 0.5, but bots is empty; add a bot"),
        ({"bots": ["greedy", "nobody"]}, "bots.1 is 'nobody'; .*nknown agent 'nobody'"),
        ({"bots": ["exec:/bin/cat"]}, "bots.0 is 'exec:/bin/cat'; allowed: an agent that plays"),
        ({"rules": "monopoly"}, "rules is 'monopoly'; unknown rules"),
        ({"board": "generated:city:test:3"}, "never trained on; allowed: generated:SIZE:train"),
        ({"reward": "fun"}, "reward is 'fun'; input should be 'win', 'rank', "),
    ],
)
def test_invalid_settings_are_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        PPOConfig().changed(changes)
    assert "\n" not in str(refused.value)


def test_setting_decisions_clears_seconds_and_vice_versa() -> None:
    config = PPOConfig(decisions=100)
    assert config == PPOConfig().changed({"decisions": 100})
    assert PPOConfig(decisions=None) == PPOConfig()  # None sets no limit
    assert (config.seconds, config.decisions) == (None, 100)
    config = config.changed({"seconds": 5})
    assert (config.seconds, config.decisions) == (5.0, None)


def test_settings_are_read_from_presets_files_and_words(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"games": 5, "decisions": 100, "players": [3, 5]}))
    config = read_config(str(path), ["games=6"])
    assert isinstance(config, PPOConfig)
    assert (config.games, config.decisions, config.seconds) == (6, 100, None)
    assert config.players == (3, 5)
    path.write_text(json.dumps({"bots": [], "rate_decisions": 9}))  # valid with the changes only
    assert read_config(str(path), ["opponent_share=0", "rate_every=9"]).rate_decisions is None
    for preset in ALL_PRESETS.values():
        path.write_text(json.dumps(preset.to_dict()))
        assert read_config(str(path)) == preset
    words = ["games=7", "players=3,4", "bots=", "seconds=2", "network=mlp"]
    assert parse_settings(words, PPOConfig) == {
        "games": 7, "players": (3, 4), "bots": (), "seconds": 2.0, "network": "mlp"
    }  # fmt: skip
    words = ['rated=["greedy", "uct:3"]', "players=[3]"]
    assert parse_settings(words, PPOConfig) == {"rated": ("greedy", "uct:3"), "players": (3,)}
    for text, message in (
        ("games", "setting 'games'; allowed: NAME=VALUE"),
        ("players=3,x", "players=3,x: 1 is 'x'; input should be a valid integer"),
        ("entropy_coef=1e999", "entropy_coef=1e999: input should be less than or equal to 10"),
        ("second=3", r"no setting 'second'; did you mean 'seconds'\?"),
        ("method=expert", "method=expert: input should be 'ppo'"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_settings([text], PPOConfig)
    with pytest.raises(ValueError, match=r"did you mean 'standard'\?"):
        read_config("standart")
    path.write_text("[]")
    with pytest.raises(ValueError, match="expected a JSON object"):
        read_config(str(path))
