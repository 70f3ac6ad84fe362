"""Vector and Stable-Baselines3 environments, and one game in all environments."""

import copy
import inspect
import pickle
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor

from busenv.batch.batch import Batch
from busenv.envs import pettingzoo as bus_v0
from busenv.envs.gymnasium import BusEnv
from busenv.envs.sb3 import BusVecEnv
from busenv.envs.vector import BusVectorEnv
from tests.support.play import picks


def test_environments_share_settings_and_defaults() -> None:
    """Only self-play changes seats."""
    batch, vector, single = (
        inspect.signature(cls.__init__).parameters for cls in (Batch, BusVectorEnv, BusEnv)
    )
    ours = {**batch, **vector}
    shared = {*single} - {"self", "render_mode"}
    assert all(ours[name].default == single[name].default for name in shared)
    learner, every = (
        gymnasium.make_vec(name, num_envs=40) for name in ("busenv/Bus-v0", "busenv/BusSelfPlay-v0")
    )
    rng = np.random.default_rng(0)
    for envs, changes in ((learner, False), (every, True)):
        first = seats = envs.reset(seed=3)[1]["seat"]
        for _ in range(10):
            *_, info = envs.step(picks(envs.unwrapped.action_masks(), rng))
            seats = info["seat"]
        assert (first != seats).any() == changes
        assert set(first) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gymnasium.make("busenv/BusSelfPlay-v0"), r"is a vector environment: gymnasium.ma"),
        (
            lambda: gymnasium.make_vec("busenv/Bus-v0", max_episode_steps=9),
            "max_episode_steps is 9",
        ),
        (
            lambda: gymnasium.make_vec("busenv/Bus-v0", render_mode="human"),
            r"one of \['rgb_array'\]",
        ),
        (lambda: BusVecEnv(2, render_mode="ansi"), "render_mode is 'ansi'; allowed: None or"),
        (lambda: BusVecEnv(2, num_player=3), r"Batch.__init__\(\) got an unexpected keyword"),
        (lambda: BusVectorEnv(2).reset(seed=[1]), "1 seeds; allowed: one, or 2 in a list"),
        (lambda: BusVectorEnv(2).reset(seed=[1, -1]), "seed is -1; allowed: a whole number"),
        (lambda: bus_v0.raw_env().reset(seed=-1), "seed is -1; allowed: a whole number"),
        (
            lambda: bus_v0.raw_env().reset(options={"first_palyer": 1}),
            "options has 'first_palyer'; allowed: num_players, rules",
        ),
        (lambda: BusVectorEnv(0), "num_envs is 0; allowed: 1 or more"),
        (lambda: BusVectorEnv(2).reset(options={"mask": 1}), "options has 'mask'; allowed"),
        (lambda: bus_v0.raw_env().reset(options=1.0), "options is 1.0; allowed: None or a dict"),
    ],
)
def test_wrong_calls_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises((gymnasium.error.Error, ValueError, TypeError), match=message):
        call()


def test_environments_of_many_games_draw_the_first_four() -> None:
    envs = gymnasium.make_vec("busenv/Bus-v0", num_envs=6, render_mode="rgb_array")
    sb3 = BusVecEnv(6, render_mode="rgb_array")
    assert envs.render() is sb3.render() is None
    assert sb3.get_images() == []
    envs.reset(seed=1)
    images = envs.render()
    assert len(images) == 6  # as Gymnasium's RecordVideo requires
    assert all(image.shape == (800, 1200, 3) for image in images)
    assert images[5] is images[4]
    assert images[3].any()
    assert not images[4].any()  # black
    sb3.reset()
    assert sb3.render().shape[2] == 3  # what VecVideoRecorder records
    assert len(sb3.get_images()) == 4


def test_copy_false_returns_views() -> None:
    for env in (BusVectorEnv(4, copy=False), BusVecEnv(4, copy=False)):
        env.reset()
        shown = env.step(env.batch.masks.argmax(axis=1))
        assert np.shares_memory(shown[0], env.batch.observations)
        assert np.shares_memory(env.action_masks(), env.batch.masks)


def test_resets_without_a_seed_continue_the_random_stream() -> None:
    firsts = []
    for seed in (1, 1, [*range(200)], [*range(200)]):
        env = BusVectorEnv(200)
        env.reset(seed=seed)
        env.reset()
        firsts.append(env.batch.games["first"].tolist())
    assert firsts[0] == firsts[1] != firsts[2] == firsts[3]
    env.reset(seed=1)
    assert firsts[0] != env.batch.games["first"].tolist()


def test_a_custom_reward() -> None:
    def buses(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
        rewards[:] = after["buses"].astype(int) - before["buses"]

    env = BusVectorEnv(6, reward=buses, opponents=None)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    totals = np.ones((6, 5))
    ended = 0
    for _ in range(600):
        _, _, over, _, info = env.step(picks(info["action_mask"], rng))
        totals += info["rewards"]
        for i in np.flatnonzero(over):
            assert totals[i, :4].tolist() == env.batch.final_games[i]["buses"][:4].tolist()
            totals[i] = 1
            ended += 1
    assert ended > 10


def test_sb3_masks_and_interface() -> None:
    env = BusVecEnv(6, num_players=5)
    assert is_masking_supported(env)
    env.seed(3)
    env.reset()
    masks = get_action_masks(env)
    assert masks.shape == (6, 375)
    assert [row.shape for row in env.env_method("action_masks", indices=[1, 4])] == [(375,)] * 2
    assert (env.env_method("action_masks", indices=4)[0] == masks[4]).all()
    assert env.env_method("has_attr", "reset") == [True] * 6
    assert env.env_method("has_attr", "reset", indices=[0, 2]) == [True, True]
    assert env.get_attr("render_mode") == [None] * 6
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 6
    assert env.env_is_wrapped(Monitor, indices=[0, 2]) == [True] * 2
    assert env.metadata["render_fps"] == 4
    env.set_attr("tag", 5)
    assert env.get_attr("tag") == [5] * 6
    with pytest.raises(ValueError, match=r"indices is \[0\]: leave it out"):
        env.set_attr("tag", 6, indices=[0])
    env.set_options(None)
    with pytest.raises(ValueError, match=r"options is {'seat': 1}; allowed: None"):
        env.set_options({"seat": 1})
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(400):
        _, rewards, over, infos = env.step(picks(get_action_masks(env), rng))
        assert len(infos) == 6
        assert [bool(info) for info in infos] == over.tolist()
        episodes += [info["episode"] for info in infos if info]
        assert (rewards[~over] == 0).all()
        paid = env.batch.rewards[np.arange(6), env.acting_seats]
        assert (rewards == paid).all()
    assert len(episodes) > 5
    assert {round(e["r"], 2) for e in episodes} <= {1.0, -0.25}


def test_sb3_plays_other_games_unless_it_is_seeded() -> None:
    with pytest.raises(ValueError, match="seed is -1"):
        BusVecEnv(2).seed(-1)
    firsts = []
    for seed in (7, 7, None, None):
        env = BusVecEnv(200)
        env.seed(seed)
        for _ in range(2):
            env.reset()
            firsts.append(env.batch.games["first"].tobytes())
    assert firsts[:2] == firsts[2:4]
    assert len({*firsts}) == 6
    with pytest.warns(UserWarning, match="each row mixes the decisions of all seats"):
        BusVecEnv(2, opponents=None)


def test_maskable_ppo_trains_and_predicts_legal_actions() -> None:
    env = BusVecEnv(4, reward="margin")
    model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu")
    model.learn(512)
    action, _ = model.predict(env.reset(), action_masks=env.action_masks())
    assert all(env.action_masks()[i, a] for i, a in enumerate(action))


def test_single_environments_pickle_and_copy() -> None:
    aec = bus_v0.raw_env()
    aec.reset(seed=1)
    for twin in (copy.deepcopy(aec), pickle.loads(pickle.dumps(aec))):
        assert twin.game.position() == aec.game.position()
        twin.step(twin.game.legal_actions()[0])
        assert len(aec.game.history) == 0
