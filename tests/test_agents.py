"""Agents choose legal actions, repeatably, and the ladder is a ladder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import make_agent
from agents.policy import PolicyAgent, policy_settings, save_policy
from busenv import EDITIONS, Game, load_board
from busenv.board import make_board
from busenv.observation import VERSION, spaces_of
from experiments.match import play_match
from tests.test_board import largest


def fresh_policy() -> MaskableActorCriticPolicy:
    board = load_board("city")
    return MaskableActorCriticPolicy(*spaces_of(board), lambda _: 0.0, **policy_settings(board))


@pytest.mark.parametrize("spec", ["random", "greedy"])
@pytest.mark.parametrize("players", [3, 4, 5])
def test_agents_play_whole_games_repeatably(spec: str, players: int) -> None:
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


@pytest.mark.parametrize("spec", ["", "randm", "greedy:3", "ppo", "ppo:"])
def test_unknown_agents_are_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=r"unknown agent.*allowed: random, greedy, .*ppo:FILE"):
        make_agent(spec)


def test_greedy_beats_random() -> None:
    line_up = [make_agent("greedy", 1), *(make_agent("random", 2 + k) for k in range(3))]
    score = play_match(line_up, 400)[0]
    assert score.wins / score.games > 0.8


def test_policy_agents_save_and_load(tmp_path: Path) -> None:
    agent = PolicyAgent(fresh_policy(), load_board("city"), seed=7)
    path = tmp_path / "policy.pt"
    save_policy(agent, path)
    scores = [
        play_match([player, make_agent("random", 1), make_agent("random", 2)], 12)
        for player in (agent, make_agent(f"ppo:{path}", seed=7))
    ]
    assert [vars(s) | {"name": ""} for s in scores[0]] == [
        vars(s) | {"name": ""} for s in scores[1]
    ]
    with pytest.raises(FileNotFoundError):
        make_agent("ppo:nowhere.pt")


class Trap:
    """Something that acts when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def test_policy_files_that_are_off_are_refused(tmp_path: Path) -> None:
    board = load_board("city")
    agent = PolicyAgent(fresh_policy(), board)
    good = {
        "observation_version": VERSION,
        "board": board.fingerprint,
        "parameters": agent.policy.state_dict(),
    }
    path = tmp_path / "policy.pt"
    for content, message in (
        ({**good, "observation_version": 0}, f"version 0; this busenv has {VERSION}"),
        ({**good, "board": "elsewhere"}, "another board"),
        ({"parameters": 3}, "no policy file"),
        ({**good, "trap": Trap(tmp_path / "sprung")}, "no policy file that is safe"),
    ):
        torch.save(content, path)
        with pytest.raises(ValueError, match=message):
            make_agent(f"ppo:{path}")
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="no policy file"):
        make_agent(f"ppo:{path}")
    assert not (tmp_path / "sprung").exists()


def test_games_of_another_board_are_refused() -> None:
    larger = make_board(largest())
    game = Game(board=larger, seed=0)
    for agent in (
        make_agent("greedy"),
        make_agent("random"),
        PolicyAgent(fresh_policy(), load_board("city")),
    ):
        with pytest.raises(ValueError, match="another board"):
            agent.choose(game.arrays()[0], load_board("city"))
    with pytest.raises(ValueError, match="was trained on"):
        PolicyAgent(fresh_policy(), load_board("city")).act(game)


def test_choosing_does_not_change_the_games() -> None:
    game = Game(seed=2)
    before = game.position()
    for agent in (
        make_agent("random"),
        make_agent("greedy"),
        PolicyAgent(fresh_policy(), game.board),
    ):
        assert agent.act(game) in game.legal_actions()
        choices = agent.choose(np.repeat(game.arrays()[0], 5), game.board)
        assert choices.shape == (5,)
        assert set(choices.tolist()) <= set(game.legal_actions())
    assert game.position() == before


def test_what_agents_estimate() -> None:
    game = Game(seed=2)
    agent, twin = (PolicyAgent(fresh_policy(), game.board, seed=3) for _ in range(2))
    twin.policy.load_state_dict(agent.policy.state_dict())
    chances, favourites = agent.estimate(game)
    assert chances == []
    actions, shares = zip(*favourites, strict=True)
    assert set(actions) <= set(game.legal_actions())
    assert list(shares) == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1
    assert agent.act(game) == twin.act(game)  # asking changes nothing
    with pytest.raises(ValueError, match="agent 'greedy' gives no estimates"):
        make_agent("greedy").estimate(game)
