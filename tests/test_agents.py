"""Agents: legal and repeatable actions, specs, models, threads, playing strength."""

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import busenv
from busenv import EDITIONS, Batch, Game, cli, load_board
from busenv.agents import Agent, AgentError, from_policy, make_agent
from busenv.agents.custom_agent import CustomAgent
from busenv.agents.dependencies import file_hashes
from busenv.agents.match import play_match
from busenv.agents.policy_agent import PolicyAgent
from busenv.agents.specs import short_spec
from busenv.core.features import VERSION
from busenv.game.board import make_board
from busenv.networks.factory import build_network
from busenv.networks.model_files import load_model, save_model
from busenv.play.launch import make_catalogue
from busenv.train.config import PPOConfig
from tests.support.networks import positions, random_network
from tests.support.worlds import largest


def fresh_network(seed: int = 0) -> nn.Module:
    return build_network("mlp", load_board("city"), width=16, seed=seed)


@pytest.mark.parametrize("spec", ["random", "greedy"])
@pytest.mark.parametrize("players", [3, 4, 5])
def test_bots_play_whole_games_repeatably(spec: str, players: int) -> None:
    games = []
    for _ in range(2):
        agent = make_agent(spec, seed=4)
        game = Game(players, [*EDITIONS][players % 4], seed=1)
        while not game.is_over:
            game.step(agent.act(game))
        games.append(game.history)
    assert games[0] == games[1]
    with pytest.raises(ValueError, match="over"):
        agent.act(game)


@pytest.mark.parametrize(
    ("message", "specs"),
    [
        ("unknown agent.*allowed: random, greedy, planner.*, net:NAME", ["", "martian"]),
        ("spec is .*; allowed: a text such as 'greedy'", [42, None, b"greedy", ["greedy"]]),
        ("allowed: net:NAME, net:PATH, net@TEMP", ["net@-1:city-2", "net", "net@" + "x" * 10**6]),
        ("allowed: exec:COMMAND, exec@SEC", ["exec:", "exec", "exec@:x", "exec@5s:x", "exec@-1:x"]),
        ("allowed: py:MODULE:CLASS", ["py", "py:player.py", "py::Player", "py:a-b:Player"]),
        (r"did you mean 'greedy'\?$", ["gredy", "Greedy"]),
        ("agent 'greedy:3'; allowed: greedy$", ["greedy:3"]),
        (r"did you mean 'net'\?$", ["ned:city-2"]),
        ("allowed: uct:SIM", ["uct", "uct:", "uct:0", "uct:-5", "uct:5x", "uct@0:5", "uct:1.5"]),
        ("allowed: az:NAME", ["az", "az:city-2", "az:x:", "az:x:0", "az@0:x:5", "az:30"]),
        ("allowed: llm:MODEL", ["llm", "llm:", "llm@3:m", "llm@obfuscate=x:m", "llm@unlisted,:m"]),
        ("allowed: 1 to 64 threads", ["uct:0s", "uct@9:5", "uct@100:1s", "az@65:city-3:900"]),
        ("allowed: above 0, to 86400", ["exec@0:python3", "exec@86401:python3"]),
        ("names no program", ["exec:  "]),
        ("command .*No closing quotation", ["exec:'python3"]),
    ],
)  # fmt: skip
def test_invalid_specs_are_refused(message: str, specs: list[Any]) -> None:
    for spec in specs:
        with pytest.raises(ValueError, match=message) as caught:
            make_agent(spec)
        assert len(str(caught.value)) < 1000


PLAYERS = """
import helper
import numpy as np
from busenv.observation import observe_games

class Last:
    def __init__(self, words="none"):
        self.words = words
    def act(self, game):
        return game.legal_actions()[-1]

class First:
    def choose(self, games, board):
        return observe_games(games, board)[1].argmax(axis=1)

def make(spec, seed):
    return First()
"""


@pytest.fixture
def players(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with agents, `mine`, an agent of an installed package, and a broken package."""
    (tmp_path / "helper.py").write_text("")
    (path := tmp_path / "players.py").write_text(PLAYERS)
    folder = tmp_path / "mine-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: mine\nVersion: 1\n")
    points = "[busenv.agents]\naaa = no_such_module:make\nmine = players:make\n"
    (folder / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    return path


@pytest.mark.usefixtures("threads_as_workers", "few_resamples")
def test_agents_of_other_code_play_wherever_a_spec_is_taken(
    players: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last, first = f"py:{players}:Last:some:words", "mine@7:x"
    assert busenv.make_agent is make_agent
    agent = make_agent(last)
    assert isinstance(agent, CustomAgent)
    assert agent._player.words == "some:words"
    game = Game(3, seed=1)
    assert agent.act(game) == game.legal_actions()[-1]
    assert make_agent(first).act(game) == game.legal_actions()[0]
    with pytest.raises(ValueError, match="single games only"):
        agent.choose(game.arrays()[0], game.board)
    scores = play_match([last, first, "py:players:First"], 9)
    assert [score.name for score in scores] == [last, first, "py:players:First"]
    assert sum(score.wins for score in scores) == 9
    batch = Batch(2, num_players=3, opponents=[last, first])
    batch.reset(1)
    batch.step(batch.masks.argmax(axis=1))
    command = ["rate", last, first, "--players", "3", "--games", "9", "--workers", "1"]
    cli.main([*command, "--out", str(tmp_path / "run")])
    export = ["export", "mine", "py:players:First", "--players", "3", "--games", "2"]
    cli.main([*export, "--workers", "1", "--out", str(tmp_path / "export")])
    assert "forfeits" in capsys.readouterr().out
    assert make_catalogue(["me", "mine", last], "condensed", "city").trusted == {"mine", last}
    assert short_spec(last) == "py:players.py:Last"
    assert PPOConfig(rated=("mine", last), bots=("mine",)).rated == ("mine", last)
    assert {*file_hashes([last, first])} == {last}


def test_what_cannot_be_imported_is_named_where_its_spec_is_asked_for(players: Path) -> None:
    with pytest.raises(ValueError, match="no_such_module:make of an installed package cannot be"):
        make_agent("aaa:1")
    with pytest.raises(ValueError, match=r"no module 'busenv\.nobody'"):
        make_agent("py:busenv.nobody:Player")
    with pytest.raises(ValueError, match="has no class or function 'Nobody'"):
        make_agent(f"py:{players}:Nobody")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nobody\.py"):
        make_agent("py:nobody.py:Player")


@pytest.mark.parametrize(
    ("spec", "others", "games", "share"),
    [
        ("greedy", "random", 400, 0.8),
        ("planner", "greedy", 400, 0.6),
        ("uct:60", "planner", 16, 0.4),
    ],
)
def test_stronger_agents_win(spec: str, others: str, games: int, share: float) -> None:
    line_up = [make_agent(spec, 1), *(make_agent(others, 2 + k) for k in range(3))]
    score = play_match(line_up, games)[0]
    assert score.wins / score.games > share


CARD = {"network": "mlp", "width": 16}


def test_models_save_and_load(tmp_path: Path) -> None:
    board = load_board("city")
    agent = PolicyAgent(fresh_network(), board, seed=7)
    path = tmp_path / "small.safetensors"
    save_model(agent.network, board, path, {**CARD, "training": {"decisions": 5}})
    scores = [
        play_match([player, make_agent("random", 1), make_agent("random", 2)], 12)
        for player in (agent, make_agent(f"net:{path}", seed=7), make_agent(f"ppo:{path}", seed=7))
    ]
    first, second, third = ([vars(s) | {"name": ""} for s in three] for three in scores)
    assert first == second == third
    card = load_model(path, board)[1].model_dump()
    assert card["training"] == {"decisions": 5}
    assert card["observation_version"] == VERSION
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.safetensors"):
        make_agent("net:nowhere.safetensors")
    with pytest.raises(FileNotFoundError, match="no model 'nobody'; allowed: a path that ends"):
        make_agent("net:nobody")
    with pytest.raises(FileNotFoundError, match=r"no model 'city2'; did you mean 'city-2'\?$"):
        make_agent("net:city2")
    path.with_suffix(".json").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no file .*small\.json"):
        make_agent(f"net:{path}")
    with pytest.raises(ValueError, match="one that ends in"):
        save_model(agent.network, board, tmp_path / "policy.pt", CARD)
    with pytest.raises(ValueError, match="network is missing"):
        save_model(agent.network, board, tmp_path / "new.safetensors", {"width": 16})
    assert not (tmp_path / "new.safetensors").exists()


@pytest.mark.parametrize("kind", ["mlp", "seats"])
def test_a_model_of_a_custom_board_plays_only_that_board(kind: str, tmp_path: Path) -> None:
    """The card of a model for a custom board holds the board."""
    board = make_board(largest())
    path = tmp_path / "large.safetensors"
    save_model(build_network(kind, board, 8, seed=1), board, path, {"network": kind, "width": 8})
    agent, game = make_agent(f"net:{path}", seed=1), Game(board=board, seed=3)
    for _ in range(40):
        game.step(agent.act(game))
    with pytest.raises(ValueError, match=r"was trained on .*, not on Board\('city'"):
        agent.act(Game(seed=3))
    with pytest.raises(ValueError, match="was trained on another board than"):
        load_model(path, load_board("city"))
    card = json.loads(path.with_suffix(".json").read_text())
    card["board_file"]["sites"].pop()
    path.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(ValueError, match="that is neither in busenv nor in its card"):
        make_agent(f"net:{path}")


def test_temperature_sharpens_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "small.safetensors"
    network = fresh_network()
    network.get_parameter("policy.2.weight").data *= 30000  # probabilities far from uniform
    save_model(network, load_board("city"), path, CARD)
    game = Game(seed=2)
    many = np.repeat(game.arrays()[0], 400)
    agents = [make_agent(f"ppo{at}:{path}", seed=1) for at in ("@0", "@0.2", "", "@100")]
    assert [agent.name for agent in agents] == [
        f"ppo{at}:{path}" for at in ("@0", "@0.2", "", "@100")
    ]
    kinds = [len(set(agent.choose(many, game.board).tolist())) for agent in agents]
    assert kinds[0] == 1
    assert kinds[0] <= kinds[1] < kinds[2] <= kinds[3]
    save_model(network, load_board("city"), path, {**CARD, "temperature": 0.0})
    assert len(set(make_agent(f"ppo:{path}").choose(many, game.board).tolist())) == 1
    with pytest.raises(ValueError, match="agent 'greedy' gives no estimates"):
        make_agent("greedy").estimate(game)
    favourite = agents[2].estimate(game)[1][0][0]
    assert agents[0].act(game) == favourite
    assert agents[0].action_probabilities(many[:1], game.board).argmax() == favourite
    likely = [agent.action_probabilities(many[:1], game.board).max() for agent in agents]
    assert likely == sorted(likely, reverse=True)
    assert likely[0] > 0.99
    for agent in agents[:2]:  # illegal actions are as unlikely as most legal ones
        assert {action for action, _ in agent.estimate(game)[1]} <= set(game.legal_actions())
    coldest = PolicyAgent(network, game.board, temperature=1e-40)
    assert set(coldest.choose(many, game.board).tolist()) == {favourite}
    with pytest.raises(ValueError, match="temperature is -1; allowed: 0"):
        PolicyAgent(fresh_network(), game.board, temperature=-1)


@pytest.mark.parametrize("relative_types", [False, True])
def test_a_function_of_rows_and_masks_becomes_an_agent(relative_types: bool) -> None:
    """It plays like the network that the function evaluates."""
    board, games = load_board("city"), positions(200)
    network = random_network("mlp", 16, relative_types=relative_types)

    def policy(rows: np.ndarray, masks: np.ndarray) -> torch.Tensor:
        assert masks.dtype == bool
        logits = network(torch.from_numpy(rows))[0]  # with gradients
        return logits.masked_fill(~torch.from_numpy(masks), -torch.inf)

    by_function = from_policy(policy, relative_types=relative_types, temperature=0.5, name="mine")
    by_network = PolicyAgent(network, board, temperature=0.5)
    np.testing.assert_allclose(
        by_function.action_probabilities(games, board),
        by_network.action_probabilities(games, board),
        atol=1e-4,
    )
    favourites = from_policy(policy, relative_types=relative_types, temperature=0)
    assert len({favourites.act(Game(seed=2)) for _ in range(20)}) == 1
    score = play_match([by_function, "random", "random"], 9)[0]
    assert (score.name, score.games) == ("mine", 9)
    with pytest.raises(AgentError, match=r"mine: ValueError: .* an array of shape \(1, 3\)"):
        from_policy(lambda rows, masks: np.zeros((1, 3)), name="mine").act(Game(seed=2))
    with pytest.raises(AgentError, match="the logits of legal actions are not finite"):
        from_policy(lambda rows, masks: np.full(masks.shape, -np.inf)).act(Game(seed=2))
    with pytest.raises(ValueError, match="temperature is 101"):
        from_policy(policy, temperature=101)


@pytest.mark.parametrize("spec", ["greedy", "uct:12", "uct@2:12", "ppo:city-2"])
def test_action_probabilities_sum_to_one_over_legal_actions(spec: str) -> None:
    game = Game(seed=2)
    many = np.repeat(game.arrays()[0], 5)
    shares = make_agent(spec, 3).action_probabilities(many, game.board)
    assert shares.shape == (5, game.board.num_actions)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    assert set(shares.nonzero()[1].tolist()) <= set(game.legal_actions())
    if spec != "ppo:city-2":  # samples its actions
        actions = make_agent(spec, 3).choose(many, game.board)
        assert (shares.argmax(axis=1) == actions).all()


@pytest.mark.parametrize(
    "spec", ["random", "greedy", "planner", "uct:4", "net:city-2", "az:city-3:4"]
)
def test_batches_with_a_finished_game_are_refused(spec: str) -> None:
    agent, fresh, game = make_agent(spec, 1), Game(3, seed=1), Game(3, seed=1)
    while not game.is_over:
        game.step(game.legal_actions()[0])
    games = np.concatenate([fresh.arrays()[0], game.arrays()[0]])
    for decide in (agent.choose, agent.action_probabilities):
        with pytest.raises(ValueError, match="game 1 is over: there is nothing to choose"):
            decide(games, game.board)


@pytest.mark.parametrize("spec", ["greedy", "planner", "uct@2:8", "net@0:city-2", "az:city-3:4"])
def test_an_agent_is_thread_safe(spec: str) -> None:
    """Four threads play games and batches with one agent, whose kernels share arrays."""
    agent = make_agent(spec, 1)

    def play(seed: int) -> tuple[list[int], bytes]:
        game, rng = Game(3, seed=seed), np.random.default_rng(seed)
        batch = Batch(4, num_players=3, opponents=agent)
        batch.reset(seed)
        for _ in range(20):
            game.step(agent.act(game))
            batch.step([int(rng.choice(np.flatnonzero(mask))) for mask in batch.masks])
        return game.history, batch.games.tobytes()

    with ThreadPoolExecutor(4) as threads:
        played = [*threads.map(play, range(8))]
    if spec == "net@0:city-2":  # greedy: the order of calls has no effect
        assert played == [play(seed) for seed in range(8)]
    agent.close()


@pytest.mark.parametrize(
    ("spec", "duplicate"),
    [
        ("random", copy),
        ("planner", deepcopy),
        ("uct@2:12", copy),
        ("net:city-2", lambda agent: pickle.loads(pickle.dumps(agent))),
        ("az@2:city-3:4", lambda agent: pickle.loads(pickle.dumps(agent))),
    ],
)
def test_copies_of_agents_continue_like_the_original(
    spec: str, duplicate: Callable[[Agent], Agent]
) -> None:
    """Copied after some decisions; original and copy decide alternately."""
    game, agent = Game(seed=2), make_agent(spec, 3)
    for _ in range(12):
        game.step(agent.act(game))
    twin = duplicate(agent)
    for _ in range(12):
        action = agent.act(game)
        assert twin.act(game) == action
        game.step(action)
    games = np.repeat(game.arrays()[0], 3)
    assert (twin.choose(games, game.board) == agent.choose(games, game.board)).all()
    for each in (agent, twin):
        each.close()
