"""Agents choose legal actions, repeatably, and the ladder is a ladder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import make_agent
from agents.policy import PolicyAgent, policy_settings, save_policy, spaces_of
from busenv import EDITIONS, Game, load_board
from experiments.match import play_match


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
    with pytest.raises(ValueError, match=r"unknown agent.*allowed: random, greedy, ppo:FILE"):
        make_agent(spec)


def test_greedy_beats_random() -> None:
    line_up = [make_agent("greedy", 1), *(make_agent("random", 2 + k) for k in range(3))]
    score = play_match(line_up, 400)[0]
    assert score.wins / score.games > 0.8


def test_policy_agents_play_legally_and_load_without_unpickling(tmp_path: Path) -> None:
    policy = fresh_policy()
    path = tmp_path / "policy.pt"
    save_policy(policy, path)
    line_ups = (
        [PolicyAgent(policy, seed=7), make_agent("random", 1), make_agent("random", 2)],
        [make_agent(f"ppo:{path}", seed=7), make_agent("random", 1), make_agent("random", 2)],
    )
    scores = [play_match(line_up, 12) for line_up in line_ups]
    assert [vars(s) | {"name": ""} for s in scores[0]] == [
        vars(s) | {"name": ""} for s in scores[1]
    ]
    with pytest.raises(FileNotFoundError):
        make_agent("ppo:nowhere.pt")


def test_choosing_does_not_change_the_games() -> None:
    game = Game(seed=2)
    before = game.position()
    for agent in (make_agent("random"), make_agent("greedy"), PolicyAgent(fresh_policy())):
        assert agent.act(game) in game.legal_actions()
        choices = agent.choose(np.repeat(game.arrays()[0], 5), game.board)
        assert choices.shape == (5,)
        assert set(choices.tolist()) <= set(game.legal_actions())
    assert game.position() == before
