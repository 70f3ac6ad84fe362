"""Untrusted models are refused with a one-line error; every temperature gives legal actions."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from busenv import Game
from busenv.agents import make_agent
from busenv.agents.policy_agent import PolicyAgent
from busenv.networks.factory import build_network
from busenv.networks.logits import action_probabilities
from busenv.networks.model_files import save_model
from busenv.observation import observe_games
from tests.support.networks import CITY, positions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The weights of a small model, with its card in the same folder."""
    path = tmp_path / "small.safetensors"
    save_model(build_network("mlp", CITY, 8), CITY, path, {"network": "mlp", "width": 8})
    return path


def change_card(path: Path, **changes: Any) -> None:
    card = path.with_suffix(".json")
    card.write_text(json.dumps({**json.loads(card.read_text()), **changes}))


def change_weights(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write other weights and their checksum."""
    data = save(tensors)
    path.write_bytes(data)
    change_card(path, sha256=hashlib.sha256(data).hexdigest())


def test_weights_that_are_not_finite_or_do_not_fit_are_refused(model: Path) -> None:
    good = load(model.read_bytes())
    for name in good:
        for number in (np.nan, np.inf, -np.inf):
            tensors = {key: value.clone() for key, value in good.items()}
            tensors[name].view(-1)[-1] = number
            change_weights(model, tensors)
            with pytest.raises(ValueError, match=f"{name} holds a number that is not finite"):
                make_agent(f"net:{model}")
    bias = good["value.2.bias"]
    for changes, words in (
        ({"value.2.bias": bias.double()}, r"value.2.bias is torch.float64, \(1,\); it needs torch"),
        ({"value.2.bias": bias[None]}, r"value.2.bias is torch.float32, \(1, 1\); it needs"),
        ({"more": bias.clone()}, "more is not part of it"),
    ):
        change_weights(model, {**good, **changes})
        with pytest.raises(ValueError, match=words):
            make_agent(f"net:{model}")
    change_weights(model, {name: good[name] for name in good if name != "value.2.bias"})
    with pytest.raises(ValueError, match=r"value\.2\.bias is missing"):
        make_agent(f"net:{model}")
    change_weights(model, {**good, "more": torch.zeros(100_000)})
    with pytest.raises(ValueError, match=r"is larger than [\d,]+ bytes, the most"):
        make_agent(f"net:{model}")
    change_weights(model, good)
    assert make_agent(f"net:{model}")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 8.5}, "width is 8.5"),
        ({"temperature": -1}, "temperature is -1; .* greater than or equal to 0"),
        ({"temperature": 101}, "temperature is 101; .* less than or equal to 100"),
        ({"board": {"fingerprint": 1}}, "board.fingerprint is 1"),
        ({"board": {"fingerprint": "\x1b[31m"}}, r"board.fingerprint is '.x1b\[31m'"),
        ({"board": {"fingerprint": "x"}, "board_file": {}}, "its board is not valid: "),
        ({"network": "oracle"}, "unknown network 'oracle'; allowed: mlp, seats"),
        ({"observation_version": 0}, "version 0; this busenv has"),
        ({"width": 17}, "not a network of kind 'mlp' and width 17"),
        ({"sha256": "0"}, "does not match the checksum in its card"),
        ({"board": {"fingerprint": "y"}}, r"a board .fingerprint y, .* that is neither in busenv"),
    ],
)
def test_invalid_fields_of_a_card_are_refused(
    changes: dict[str, Any], words: str, model: Path
) -> None:
    change_card(model, **changes)
    with pytest.raises(ValueError, match=words) as refused:
        make_agent(f"net:{model}")
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()
    assert re.search(r"small\.(json|safetensors)", str(refused.value))


def test_illegal_actions_have_probability_0_at_every_temperature() -> None:
    """With logits that favour illegal actions."""
    games = positions(300)
    _, masks = observe_games(games, CITY)
    noise = np.random.default_rng(1).standard_normal(masks.shape)
    logits = (np.where(masks, -1e6, 1e6) + noise).astype(np.float32)
    for temperature in (1e-40, 1e-3, 0.1, 1.0, 100.0):
        probabilities = action_probabilities(logits, masks, temperature)
        assert np.isfinite(probabilities).all()
        assert (probabilities[~masks] == 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    for temperature in (0.0, 100.0):
        agent = PolicyAgent(build_network("mlp", CITY, 8), CITY, temperature=temperature)
        agent.network.get_parameter("policy.2.bias").data.normal_(0, 1e9)
        for _ in range(10):
            assert masks[np.arange(len(games)), agent.choose(games, CITY)].all()


@pytest.mark.parametrize("kind", ["mlp", "seats", "features"])
def test_a_network_that_overflows_fails_at_its_decision(kind: str, tmp_path: Path) -> None:
    path, card = tmp_path / "large.safetensors", {"network": kind, "width": 8}

    def saved(**changes: float) -> str:
        network = build_network(kind, CITY, 8)
        for name, value in changes.items():
            network.state_dict()[name.replace("_", ".")].fill_(value)
        save_model(network, CITY, path, card)
        return f"net:{path}" if kind == "mlp" else f"az:{path}:8"

    large = {"logits": {"shared_bias": 1e30, "policy_2_weight": 1e30}}
    if kind != "mlp":
        large["values"] = {"shared_bias": 1e30, "value_2_weight": 1e30}
    for output, weights in large.items():
        agent = make_agent(saved(**weights), 1)
        with pytest.raises(ValueError, match=f"the network's {output} are not finite"):
            agent.act(Game(3, seed=1))
    for bias in (-1e20, 1e20):
        agent, game = make_agent(saved(value_2_bias=bias, shared_bias=1e6), 1), Game(3, seed=1)
        for _ in range(30):
            game.step(agent.act(game))
