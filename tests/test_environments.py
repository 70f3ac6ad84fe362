"""Gymnasium's single-agent environment."""

import dataclasses
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from busenv import EDITIONS, AgentError, Batch, Board, Game, IllegalActionError, bus_v0, make_agent
from busenv.envs.gymnasium import BusEnv
from busenv.observation import observe
from tests.support.play import picks


@pytest.mark.parametrize(
    "settings",
    [
        {"num_players": 3, "illegal": "lose"},
        {"num_players": (4, 5), "illegal": "replace"},
        {"illegal": "replace", "observation_keys": ("obs", "mask")},
        {"illegal": "lose", "observation_dtype": "float32", "opponents": "greedy"},
    ],
)
def test_gymnasium_check_env(settings: dict) -> None:
    env = gymnasium.make("busenv/Bus-v0", disable_env_checker=True, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(env.unwrapped, skip_render_check=True)


def test_gymnasium_plays_one_seat_against_agents() -> None:
    watched: list[int] = []

    class Watcher:
        def act(self, game: Game) -> int:
            watched.append(game.current_player)
            return game.legal_actions()[0]

    env = BusEnv(num_players=3, learner_seat=1, opponents=["greedy", Watcher()], reward="margin")
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


def test_gymnasium_illegal_actions() -> None:
    env = BusEnv()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match=r"action 374 .*; sample actions with"):
        env.step(374)
    lose = BusEnv(illegal="lose")
    _, info = lose.reset(seed=0)
    assert info["illegal_action"] == np.bool_(False)
    _, reward, over, _, info = lose.step(374)
    assert (reward, over, info["illegal_action"]) == (-1.0, True, True)
    with pytest.raises(IllegalActionError, match="has ended the episode"):
        lose.step(int(info["action_mask"].argmax()))
    lose.reset()
    lose.step(int(lose.action_masks().argmax()))


def test_an_illegal_action_is_replaced_by_a_legal_one() -> None:
    env = BusEnv(illegal="replace", learner_seat=0)
    env.reset(seed=1, options={"first_player": 0})
    assert env.game is not None
    for refused in (374, -1, 10**20):
        legal, ply = env.game.legal_actions(), len(env.game.history)
        *_, over, _, info = env.step(refused)
        assert info["illegal_action"] == np.bool_(True)
        assert env.game.history[ply] in legal
    assert not env.step(env.game.legal_actions()[0])[4]["illegal_action"]
    while not over:
        _, _, over, _, _ = env.step(374)
    with pytest.raises(IllegalActionError, match="the game is OVER"):
        env.step(0)


@pytest.mark.parametrize("spec", ["random", "greedy"])
def test_compiled_opponents_play_what_the_agents_play(spec: str) -> None:
    """They take the actions of the agents of that name, here as objects with `choose` only."""

    class Seen:
        def __init__(self) -> None:
            self.agent = make_agent(spec)

        def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
            return self.agent.choose(games, board)

    compiled = BusEnv(num_players=(3, 4, 5), opponents=spec, reward="margin")
    watched = [Seen() for _ in range(4)]
    plain = BusEnv(num_players=(3, 4, 5), opponents=watched, reward="margin")
    mixed = BusEnv(num_players=(3, 4, 5), opponents=[spec, watched[1], spec, spec], reward="margin")
    for seed in range(3):
        for env in (plain, mixed):
            seeds = seeds_of_opponents(seed)
            for one, number in zip(watched, seeds, strict=True):
                one.agent.reset(number)
            rng, over = np.random.default_rng(seed), False
            seen, info = env.reset(seed=seed)
            twin_seen, twin_info = compiled.reset(seed=seed)
            while not over:
                assert (seen == twin_seen).all()
                assert (info["action_mask"] == twin_info["action_mask"]).all()
                action = picks(env.action_masks()[None], rng)[0]
                seen, paid, over, _, info = env.step(action)
                twin_seen, twin_paid, twin_over, _, twin_info = compiled.step(action)
                assert (paid, over) == (twin_paid, twin_over)
            assert env.game is not None
            assert compiled.game is not None
            assert env.game.record() == compiled.game.record()
            assert Game.from_record(compiled.game.record()).is_over


def seeds_of_opponents(seed: int) -> list[int]:
    """Return the seeds that a reset gives to opponents built from specs."""
    seeds: list[int] = []

    class Recorder:
        def act(self, game: Game) -> int:
            return game.legal_actions()[0]

        def reset(self, seed: int) -> None:
            seeds.append(seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("busenv.make_agent", lambda spec, seed=0: Recorder())
        env = BusEnv(num_players=(3, 4, 5), opponents=["recorder"] * 4)
    env.reset(seed=seed)
    return seeds


def test_info_is_of_types_that_gymnasium_converts() -> None:
    env = BusEnv(illegal="replace")
    for info, expected in ((env.reset(seed=1)[1], False), (env.step(374)[4], True)):
        assert {*info} == {"action_mask", "seat", "illegal_action"}
        assert isinstance(info["illegal_action"], np.ndarray)  # NumpyToTorch refuses np.bool_
        assert info["illegal_action"] == expected


def test_a_spec_in_json_makes_an_environment_with_rules_again() -> None:
    rules = dataclasses.replace(EDITIONS["condensed"], bus_limit=3)
    spec = gymnasium.make("busenv/Bus-v0", rules=rules).spec
    env = gymnasium.make(EnvSpec.from_json(spec.to_json()))
    env.reset(seed=1)
    assert env.unwrapped.game.rules == rules
    with pytest.raises(ValueError, match="rules with missing or unknown fields"):
        BusEnv(rules={"bus_limit": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_players": 2}, "num_players is 2"),
        ({"num_players": [3, 5], "learner_seat": 3}, "learner_seat is 3; allowed: 0 to 2"),
        ({"learner_seat": 1.0}, "learner_seat is 1.0; allowed: 0 to 3, whole numbers only"),
        ({"opponents": ["random"]}, "1 opponents; allowed: one for all"),
        ({"opponents": None}, "opponents is None: name agents for the other seats"),
        ({"board": 7}, "boards is 7; allowed: one board"),
        ({"board": [7]}, "board is 7; allowed: a name"),
        ({"illegal": "ignore"}, "illegal is 'ignore'"),
        ({"render_mode": "html"}, "render_mode is 'html'"),
        ({"observation_keys": "ab"}, "observation_keys is 'ab'"),
        ({"observation_dtype": "float64"}, "observation_dtype is 'float64'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, message: str) -> None:
    shared = {"num_players", "reward", "illegal", "observation_keys", "observation_dtype"}
    turns = (bus_v0.env, bus_v0.raw_env, bus_v0.parallel_env) if {*wrong} <= shared else ()
    for make in (BusEnv, *turns):
        with pytest.raises(ValueError, match=message):
            make(**wrong)
    with pytest.raises(TypeError, match=r"a method act\(game\) or choose\(games, board\)"):
        BusEnv(opponents=[3, 4, 5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="allowed: a spec, or an instance"):
        BusEnv(opponents=Illegal)  # type: ignore[arg-type]


class Illegal:
    """An opponent without an action."""

    def act(self, game: Game) -> Any:
        return None


class Stepping:
    """An opponent that steps the game instead of a clone."""

    def act(self, game: Game) -> int:
        game.step(game.legal_actions()[0])
        return game.legal_actions()[0]


@pytest.mark.parametrize(
    ("opponent", "message"),
    [
        (Illegal(), "the opponent at seat 1: action is None"),
        (Stepping(), r"the opponent at seat 1 changed the game; step game.clone\(\) instead"),
    ],
)
def test_an_opponent_that_fails_is_named(opponent: Any, message: str) -> None:
    env = BusEnv(learner_seat=0, opponents=opponent)
    env.reset(seed=0, options={"first_player": 0})
    env.step(env.game.legal_actions()[0])  # the first of the learner's two buildings (R2)
    with pytest.raises(AgentError, match=message):
        env.step(env.game.legal_actions()[0])
    with pytest.raises(gymnasium.error.ResetNeeded, match="an opponent has failed"):
        env.step(env.game.legal_actions()[0])
    history = env.game.history
    for name, refused in (("first_player", 9), ("first_player", 1.5), ("first_palyer", 1)):
        with pytest.raises(ValueError, match=name):
            env.reset(seed=0, options={name: refused})
    assert env.game.history == history
    some = BusEnv((3, 4, 5))
    for seed in range(5):
        with pytest.raises(ValueError, match="first_player is 3; allowed: 0 to 2"):
            some.reset(seed=seed, options={"first_player": 3})
    env = BusEnv(learner_seat=0, opponents=opponent)
    env.reset(seed=0, options={"first_player": 0})
    with pytest.raises(AgentError):
        env.reset(seed=0, options={"first_player": 1})  # the opponent acts within the reset
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def pay_array(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> Any:
    return np.ones_like(rewards)


def pay_nan(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
    rewards[:, 1] = np.nan


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (pay_array, "reward function pay_array returned a value of type ndarray; allowed: None"),
        (pay_nan, "reward function pay_nan wrote nan for seat 1; allowed: finite"),
        (lambda after: 0, r"other parameters .*; allowed: reward\(before, after, rewards\)"),
    ],
)
def test_wrong_reward_functions_are_named(reward: Any, message: str) -> None:
    def step_single() -> None:
        env = BusEnv(reward=reward)
        _, info = env.reset(seed=1)
        env.step(int(info["action_mask"].argmax()))

    def step_aec() -> None:
        env = bus_v0.raw_env(reward=reward)
        env.reset(seed=1)
        env.step(env.game.legal_actions()[0])

    def step_batch() -> None:
        batch = Batch(3, reward=reward)
        batch.reset(1)
        batch.step(batch.masks.argmax(axis=1))

    for step in (step_single, step_aec, step_batch):
        with pytest.raises(ValueError, match=message):
            step()
