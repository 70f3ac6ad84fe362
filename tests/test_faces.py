"""PettingZoo and Gymnasium: their own checks, and what they promise."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, seed_test

from busenv import Game, IllegalActionError, bus_v0
from busenv.envs.gymnasium import BusEnv
from busenv.observation import observe
from tests.support.play import picks, played

# PettingZoo


@pytest.mark.parametrize("players", [3, 4, 5])
@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_api(players: int) -> None:
    api_test(bus_v0.env(num_players=players), num_cycles=600)
    api_test(bus_v0.raw_env(num_players=players, render_mode="ansi"), num_cycles=300)


@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_seed() -> None:
    seed_test(bus_v0.env, num_cycles=300)
    drawn = set()
    env = bus_v0.raw_env(num_players=5)
    for seed in range(40):
        env.reset(seed=seed)
        drawn.add(env.game.first_player)
    assert drawn == set(range(5))


@pytest.mark.parametrize("players", [3, 5])
def test_aec_replays_a_game_and_pays_every_seat(players: int) -> None:
    for seed in range(5):
        game = played(players, seed)
        env = bus_v0.raw_env(num_players=players, reward="margin")
        env.reset(options={"first_player": game.first_player})
        twin = Game(players, first_player=game.first_player, seed=0)
        totals = dict.fromkeys(env.agents, 0.0)
        for action in game.history:
            agent = f"player_{twin.current_player}"
            assert env.agent_selection == agent
            seen = env.observe(agent)
            assert (seen["action_mask"] == twin.action_mask()).all()
            assert (seen["observation"] == observe(twin)).all()
            other = f"player_{(twin.current_player + 1) % players}"
            assert not env.observe(other)["action_mask"].any()
            assert (env.observe(other)["observation"] == observe(twin, int(other[-1]))).all()
            env.step(action)
            twin.step(action)
            for name, reward in env.rewards.items():
                totals[name] += reward
        points = np.array(game.points)
        margins = points - (points.sum() - points) / (players - 1)
        np.testing.assert_allclose(list(totals.values()), margins, atol=1e-4)
        assert all(env.terminations.values())
        for _ in range(players):
            env.step(None)
        assert env.agents == []


def test_aec_cumulative_rewards_pay_the_losers_at_the_end() -> None:
    env = bus_v0.env(num_players=4)
    env.reset(seed=3)
    rng = np.random.default_rng(0)
    paid = {}
    for agent in env.agent_iter():
        seen, reward, over, _, _ = env.last()
        if over:
            paid[agent] = reward
            env.step(None)
        else:
            assert reward == 0
            env.step(int(picks(seen["action_mask"][None], rng)[0]))
    assert sorted(round(value, 4) for value in paid.values()) == [-0.3333, -0.3333, -0.3333, 1]


def test_aec_options_and_errors() -> None:
    env = bus_v0.env(num_players=5)
    env.reset(seed=1, options={"num_players": 3, "rules": "condensed", "first_player": 2})
    assert env.agents == ["player_0", "player_1", "player_2"]
    assert env.agent_selection == "player_2"
    for options, message in (
        ({"num_players": 6}, "num_players is 6"),
        ({"first_player": 5}, "first_player is 5"),
        ({"rules": "x"}, "unknown rules"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(options=options)
    with pytest.raises(ValueError, match="made for 3"):
        bus_v0.raw_env(num_players=3).reset(options={"num_players": 4})
    with pytest.raises(ValueError, match="render_mode is 'html'"):
        bus_v0.raw_env(render_mode="html")
    env.reset(seed=1)
    before = env.unwrapped.game.to_bytes()
    for action in (7, 374):
        with pytest.raises(IllegalActionError, match=f"action {action}"):
            env.step(action)
    assert env.unwrapped.game.to_bytes() == before


def test_ansi_rendering_names_what_is_on_the_table() -> None:
    env = bus_v0.raw_env(render_mode="ansi")
    env.reset(seed=2)
    rng = random.Random(1)
    for _ in range(60):
        env.step(rng.choice(env.game.legal_actions()))
    text = env.render()
    assert text is not None
    for words in ("clock", "seat 3", "buses", "ends at", "intersection 14:", "round 2"):
        assert words in text


# Gymnasium


@pytest.mark.parametrize("players", [3, 4, 5])
def test_gymnasium_check_env(players: int) -> None:
    env = gymnasium.make(
        "busenv/Bus-v0", num_players=players, illegal="lose", disable_env_checker=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(env.unwrapped, skip_render_check=True)


def test_make_imports_by_itself() -> None:
    program = (
        "import gymnasium; e = gymnasium.make('busenv:busenv/Bus-v0', num_players=3); "
        "o, i = e.reset(seed=1); print(o.shape, i['action_mask'].sum() > 0)"
    )
    done = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert done.split()[-1] == "True"


def test_gymnasium_plays_one_seat_against_agents() -> None:
    watched: list[int] = []

    class Watcher:
        def act(self, game: Game) -> int:
            watched.append(game.current_player)
            return game.legal_actions()[0]

    env = BusEnv(num_players=3, seat=1, opponents=["greedy", Watcher()], reward="margin")
    rng = np.random.default_rng(0)
    seen, info = env.reset(seed=5)
    total, over = 0.0, False
    while not over:
        assert env.game is not None
        assert env.game.current_player == 1 == info["seat"]
        assert (seen == observe(env.game, 1)).all()
        assert (info["action_mask"] == env.action_masks()).all()
        assert info["action_mask"].dtype == np.int8
        action = env.action_space.sample(mask=info["action_mask"])
        assert action in env.game.legal_actions()
        seen, reward, over, truncated, info = env.step(picks(env.action_masks()[None], rng)[0])
        assert not truncated
        total += reward
    points = env.game.points
    assert total == pytest.approx(points[1] - (points[0] + points[2]) / 2, abs=1e-5)
    assert set(watched) == {0}  # greedy sits next to the learner, the watcher after it


def test_gymnasium_seeds_decide_everything() -> None:
    def story(seed: int) -> list:
        env = BusEnv(num_players=[3, 4, 5], opponents="random")
        rng = np.random.default_rng(1)
        out = []
        for episode in range(3):
            seen, info = env.reset(seed=seed if episode == 0 else None)
            over = False
            while not over:
                out.append((int(seen.sum()), info["seat"]))
                action = picks(env.action_masks()[None], rng)[0]
                seen, _, over, _, info = env.step(action)
            assert env.game is not None
            out.append(env.game.history)
        return out

    assert story(4) == story(4)
    assert story(4) != story(5)


def test_gymnasium_illegal_actions() -> None:
    env = BusEnv()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match="action 374"):
        env.step(374)
    lose = BusEnv(illegal="lose")
    lose.reset(seed=0)
    _, reward, over, _, info = lose.step(374)
    assert (reward, over, info["illegal_action"]) == (-1.0, True, True)


class Failing:
    """Takes the first legal action, and fails at the call that it is made for."""

    def __init__(self, call: int, action: int | None) -> None:
        self.left, self.action = call, action

    def act(self, game: Game) -> int:
        self.left -= 1
        if self.left == 0:
            if self.action is None:
                raise KeyboardInterrupt
            return self.action
        return game.legal_actions()[0]


@pytest.mark.parametrize(("action", "error"), [(None, KeyboardInterrupt), (374, RuntimeError)])
def test_an_opponent_that_fails_leaves_the_learner_where_it_was(
    action: int | None, error: type[BaseException]
) -> None:
    env = BusEnv(opponents=Failing(9, action), seat=0, illegal="lose")
    seen, info = env.reset(seed=3, options={"first_player": None})

    def play() -> None:
        nonlocal seen, info
        while True:
            seen, _, _, _, info = env.step(int(info["action_mask"].argmax()))

    with pytest.raises(error):
        play()
    mask = info["action_mask"]
    assert env.game is not None
    assert env.game.current_player == env.seat == 0
    assert (env.action_masks() == mask).all()
    assert (observe(env.game, 0) == seen).all()
    _, _, over, _, _ = env.step(int(mask.argmax()))  # the opponent fails only once
    assert not over
    history = env.game.history
    for refused in ({"first_player": 9}, {"first_player": 1.5}):
        with pytest.raises(ValueError, match="first_player is"):
            env.reset(seed=0, options=refused)
    assert env.game.history == history
    with pytest.raises(TypeError):
        env.step(8.9)  # type: ignore[arg-type]


def test_aec_goes_on_after_a_reward_function_that_fails() -> None:
    fails = True

    def pay(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
        if fails:
            raise ZeroDivisionError

    env = bus_v0.raw_env(reward=pay)
    env.reset(seed=1)
    while not env.game.is_over:
        with pytest.raises(ZeroDivisionError):
            env.step(env.game.legal_actions()[0])
        if not env.game.is_over:
            assert env.agent_selection == f"player_{env.game.current_player}"
    assert all(env.terminations.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_players": 2}, "num_players is 2"),
        ({"seat": 4}, "seat is 4; allowed: 0 to 3"),
        ({"num_players": [3, 5], "seat": 3}, "seat is 3; allowed: 0 to 2"),
        ({"seat": 1.0}, "seat is 1.0; allowed: 0 to 3"),
        ({"opponents": ["random"]}, "1 opponents; allowed: one for all"),
        ({"opponents": "martian"}, "unknown agent 'martian'"),
        ({"reward": "gold"}, "unknown reward 'gold'"),
        ({"illegal": "ignore"}, "illegal is 'ignore'"),
        ({"render_mode": "html"}, "render_mode is 'html'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BusEnv(**wrong)
    with pytest.raises(TypeError, match="is no agent"):
        BusEnv(opponents=[3, 4, 5])  # type: ignore[list-item]
