"""Batched and Stable-Baselines3 environments, and one game in all faces."""

from __future__ import annotations

import contextlib
import copy
import gc
import multiprocessing
import pickle
import sys
import time
from typing import Any

import gymnasium
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

import busenv
from agents import make_agent
from busenv import bus_v0
from busenv.batch import Batch
from busenv.core import batch as core
from busenv.core import playout
from busenv.gym_env import BusEnv
from busenv.sb3 import BusVecEnv
from busenv.vector import BusVectorEnv
from tests.play import picks, played

# Batched


def test_make_vec() -> None:
    env = gymnasium.make_vec("busenv/Bus-v0", num_envs=5, num_players=[3, 4])
    assert isinstance(env.unwrapped, BusVectorEnv)
    rng = np.random.default_rng(0)
    seen, info = env.reset(seed=1)
    ended = 0
    for _ in range(500):
        assert seen.shape == env.observation_space.shape
        assert info["action_mask"].any(axis=1).all()
        seen, rewards, over, truncated, info = env.step(picks(info["action_mask"], rng))
        assert rewards.shape == (5,)
        np.testing.assert_allclose(rewards, info["rewards"][np.arange(5), info["acted"]])
        assert not truncated.any()
        ended += over.sum()
    assert ended > 5


def story(env: BusVectorEnv, steps: int = 300) -> list[bytes]:
    """Everything that a batched environment shows over some steps."""
    rng = np.random.default_rng(3)
    _, info = env.reset(seed=8)
    out = []
    for _ in range(steps):
        seen, rewards, over, _, info = env.step(picks(info["action_mask"], rng))
        arrays = (seen, rewards, over, info["rewards"], info["seat"])
        out.append(b"".join(array.tobytes() for array in arrays))
    return out


@pytest.mark.parametrize("opponent", [None, "random", "greedy"])
def test_threads_change_nothing(opponent: str | None) -> None:
    alone = story(BusVectorEnv(7, opponent=opponent))
    assert alone == story(BusVectorEnv(7, opponent=opponent, threads=2))
    assert alone == story(BusVectorEnv(7, opponent=opponent, threads=7))


def test_threads_may_leave_and_come_back() -> None:
    batches = [Batch(150, same_step=True, threads=threads) for threads in (1, 2, 3)]
    for batch in batches:
        batch.reset(4)
    rng = np.random.default_rng(5)
    for step in range(300):
        actions = picks(batches[0].masks, rng)
        for batch in batches:
            batch.step(actions)
            for name in ("games", "finals", "observations", "masks", "rewards", "over", "seats"):
                same = getattr(batch, name).tobytes() == getattr(batches[0], name).tobytes()
                assert same, (step, name)
        if step % 10 == 0:
            time.sleep(0.01)  # longer than threads wait for the next step


@pytest.mark.parametrize("helper_waits", [True, False])
def test_an_interrupted_step_does_not_reach_into_the_next(helper_waits: bool) -> None:
    env, fresh = BusVectorEnv(70, threads=2), BusVectorEnv(70)
    expected = story(fresh, 20)
    story(env, 3)
    if not helper_waits:
        time.sleep(0.1)  # it has left, so nobody claims what is open
    core.open_step(env.batch._claimed, env.batch._finished, env.batch._turn)  # then Ctrl-C came
    assert story(env, 20) == expected


def test_what_a_thread_fails_with_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    env = BusVectorEnv(70, threads=2)
    story(env, 3)
    time.sleep(0.1)  # the thread has left

    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(core, "help_on", fail)

    def play() -> None:
        for _ in range(1000):
            env.step(picks(env.batch.masks, np.random.default_rng(0)))
            time.sleep(0.001)

    with pytest.raises(MemoryError, match="no room"):
        play()
    monkeypatch.undo()
    assert story(env, 20) == story(BusVectorEnv(70), 20)


@pytest.mark.parametrize("name", ["help_on", "open_step", "advance", "wait_for"])
def test_a_step_that_is_interrupted_is_overcome_by_a_reset(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = story(BusVectorEnv(70), 20)
    # The first step of a batch makes its threads, and compiles what they do.
    for steps in (0,) if name == "help_on" else (0, 3):
        env = BusVectorEnv(70, threads=2)
        env.reset(seed=8)
        rng = np.random.default_rng(0)
        for _ in range(steps):
            env.step(picks(env.batch.masks, rng))
        seen = env.batch.observations.copy()
        calls = 0

        def interrupt(*_: Any) -> None:
            nonlocal calls
            calls += 1
            raise KeyboardInterrupt

        monkeypatch.setattr(core, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            env.step(picks(env.batch.masks, rng))
        assert calls == 1
        assert (env.batch.observations == seen).all() or name == "advance"
        with contextlib.suppress(KeyboardInterrupt):
            env.reset(seed=8)  # which may be interrupted too
        monkeypatch.undo()
        assert story(env, 20) == expected
        assert len(env.batch._wakes) == 1


def test_threads_end_with_their_batch() -> None:
    before = len(sys._current_frames())
    batch = Batch(8, threads=3)
    batch.reset(0)
    batch.step(batch.masks.argmax(axis=1))
    wait_for_threads(before + 2)
    copied = copy.deepcopy(batch)
    copied.step(copied.masks.argmax(axis=1))
    wait_for_threads(before + 4)
    batch.step(batch.masks.argmax(axis=1))
    assert copied.games.tobytes() == batch.games.tobytes()
    del batch, copied
    gc.collect()
    wait_for_threads(before)


def wait_for_threads(number: int) -> None:
    """Wait until so many threads run Python code."""
    deadline = time.monotonic() + 60
    while len(sys._current_frames()) != number:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_illegal_action_changes_nothing() -> None:
    env = BusVectorEnv(5)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    for _ in range(30):
        _, _, _, _, info = env.step(picks(info["action_mask"], rng))
    before = [info[name].copy() for name in ("acted", "seat", "rewards", "action_mask")]
    with pytest.raises(busenv.IllegalActionError):
        env.step(env.batch.masks.argmin(axis=1))
    for name, value in zip(("acted", "seat", "rewards", "action_mask"), before, strict=True):
        assert (info[name] == value).all(), name


def test_resets_without_a_seed_go_on_from_the_last_one() -> None:
    firsts = []
    for _ in range(2):
        env = BusVectorEnv(200)
        env.reset(seed=1)
        env.reset()
        firsts.append(env.batch.games["first"].copy())
    assert (firsts[0] == firsts[1]).all()
    env.reset(seed=1)
    assert (firsts[0] != env.batch.games["first"]).any()


@pytest.mark.parametrize("opponent", ["random", "greedy"])
@pytest.mark.parametrize("seat", [None, 2])
def test_opponents_play_inside_of_the_step(opponent: str, seat: int | None) -> None:
    env = BusVectorEnv(8, opponent=opponent, learner_seat=seat, reward="margin")
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    learners = np.arange(8) % 4 if seat is None else np.full(8, seat)
    totals = np.zeros(8)
    ended = 0
    for _ in range(400):
        waiting = env.batch.games["phase"] != busenv.Phase.OVER
        assert (info["seat"] == learners).all()
        seen, _, over, _, info = env.step(picks(info["action_mask"], rng))
        totals += np.where(waiting, env.batch.rewards[np.arange(8), learners], 0)
        for i in np.flatnonzero(over):
            final = env.batch.finals[i]
            view = np.zeros((1, seen.shape[1]), np.uint8)  # of the end, as the learner sees it
            playout.observe_seats(
                env.batch.finals[i : i + 1], env.batch.board.array, learners[i : i + 1], view
            )
            assert (seen[i] == view[0]).all()
            points = final["deliveries"][:4].astype(int) - final["stones"][:4]
            margin = points[learners[i]] - (points.sum() - points[learners[i]]) / 3
            assert totals[i] == pytest.approx(margin, abs=1e-4)
            totals[i] = 0
            ended += 1
    assert ended > 20


def test_a_function_may_pay() -> None:
    def buses(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
        rewards[:] = after["buses"].astype(int) - before["buses"]

    env = BusVectorEnv(6, reward=buses)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    totals = np.ones((6, 5))
    ended = 0
    for _ in range(600):
        _, _, over, _, info = env.step(picks(info["action_mask"], rng))
        totals += info["rewards"]
        for i in np.flatnonzero(over):
            assert totals[i, :4].tolist() == env.batch.finals[i]["buses"][:4].tolist()
            totals[i] = 1
            ended += 1
    assert ended > 10
    single = BusEnv(reward=buses)
    _, single_info = single.reset(seed=0)
    total, over_ = 1.0, False
    while not over_:
        action = picks(single.action_masks()[None], rng)[0]
        _, reward, over_, _, single_info = single.step(action)
        total += reward
    assert single.game is not None
    assert total == single.game.position().buses[single_info["seat"]]


def test_shaping_pays_what_winning_pays_over_a_game() -> None:
    for opponent in (None, "random"):
        totals = []
        for reward in ("win", "shaped"):
            env = BusVectorEnv(10, reward=reward, opponent=opponent)
            rng = np.random.default_rng(0)
            _, info = env.reset(seed=0)
            total, games, nonzero = np.zeros((10, 5)), [], 0
            for _ in range(450):
                _, _, over, _, info = env.step(picks(info["action_mask"], rng))
                total += info["rewards"]
                nonzero += int((info["rewards"][~over] != 0).sum())
                games += [total[i].round(4).tolist() for i in np.flatnonzero(over)]
                total[over] = 0
            assert (nonzero > 0) == (reward == "shaped")
            totals.append(games)
        assert len(totals[0]) > 10
        np.testing.assert_allclose(totals[0], totals[1], atol=1e-4)


def test_no_memory_grows() -> None:
    import tracemalloc

    env = BusVectorEnv(64)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)

    def go(steps: int) -> None:
        nonlocal info
        for _ in range(steps):
            info = env.step(picks(info["action_mask"], rng))[4]

    go(50)
    tracemalloc.start()
    go(20)
    before = tracemalloc.get_traced_memory()[0]
    go(400)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


# Stable-Baselines3


def test_sb3_masks_and_interface() -> None:
    env = BusVecEnv(6, num_players=5)
    assert is_masking_supported(env)
    env.seed(3)
    env.reset()
    masks = get_action_masks(env)
    assert masks.reshape(6, -1).shape == (6, 375)
    assert env.get_attr("render_mode") == [None] * 6
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 6
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(400):
        _, rewards, over, infos = env.step(picks(get_action_masks(env)[0], rng))
        assert len(infos) == 6
        assert [bool(info) for info in infos] == over.tolist()
        episodes += [info["episode"] for info in infos if info]
        assert (rewards[~over] == 0).all()
    assert len(episodes) > 5
    assert {round(e["r"], 2) for e in episodes} <= {1.0, -0.25}


@pytest.mark.filterwarnings("ignore")
def test_sb3_resets_go_on_from_the_seed() -> None:
    env = BusVecEnv(200)
    firsts = []
    for _ in range(2):
        env.seed(7)
        for _ in range(2):
            env.reset()
            firsts.append(env.batch.games["first"].copy())
    assert (firsts[0] == firsts[2]).all()
    assert (firsts[1] == firsts[3]).all()
    assert (firsts[0] != firsts[1]).any()


def test_plain_maskable_ppo_learns_from_it() -> None:
    env = BusVecEnv(4, opponent="random", reward="margin")
    model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu")
    model.learn(512)
    action, _ = model.predict(env.reset(), action_masks=env.action_masks())
    assert all(env.action_masks()[i, a] for i, a in enumerate(action))


# All of them


@pytest.mark.parametrize("players", [3, 4, 5])
def test_all_faces_play_the_same_game_to_the_same_end(players: int) -> None:
    game = played(players, seed=players)
    vector, sb3 = (cls(1, num_players=players, reward="place") for cls in (BusVectorEnv, BusVecEnv))
    aec = bus_v0.raw_env(num_players=players, reward="place")
    for seed in range(100):  # until the seed draws the game's first player
        vector.reset(seed=seed)
        if int(vector.batch.games["first"][0]) == game.first_player:
            sb3.seed(seed)
            sb3.reset()
            break
    aec.reset(options={"first_player": game.first_player})
    for action in game.history:
        assert (sb3.batch.observations == vector.batch.observations).all()
        seat = int(vector.batch.seats[0])
        assert (aec.observe(f"player_{seat}")["observation"] == vector.batch.observations[0]).all()
        vector.step(np.array([action]))
        sb3.step(np.array([action]))
        aec.step(action)
    expected = [1 - 2 * place / (players - 1) for place in game.ranking()]
    for rewards in (vector.batch.rewards[0], sb3.batch.rewards[0], list(aec.rewards.values())):
        np.testing.assert_allclose(rewards[:players], expected, atol=1e-6)


def in_another_process(queue, env) -> None:  # type: ignore[no-untyped-def]
    queue.put(story(env, 30))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_batches_pickle_and_work_in_other_processes(method: str) -> None:
    env = BusVectorEnv(3, threads=2)
    here = story(env, 30)
    assert story(pickle.loads(pickle.dumps(env)), 30) == here
    assert story(copy.deepcopy(env), 30) == here
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=in_another_process, args=(queue, env))
    process.start()
    assert queue.get(timeout=120) == here
    process.join()


def test_single_environments_pickle_and_copy() -> None:
    aec = bus_v0.raw_env()
    aec.reset(seed=1)
    single = BusEnv(opponents=make_agent("greedy"))
    single.reset(seed=1)
    for twin in (copy.deepcopy(aec), pickle.loads(pickle.dumps(aec))):
        assert twin.game.position() == aec.game.position()
        twin.step(twin.game.legal_actions()[0])
        assert len(aec.game.history) == 0
    copied = copy.deepcopy(single)
    copied.step(picks(copied.action_masks()[None], np.random.default_rng(0))[0])
    assert copied.game is not None
    assert single.game is not None
    assert len(copied.game.history) > len(single.game.history)


@pytest.mark.slow
def test_no_memory_grows_over_a_million_decisions() -> None:
    import resource

    env = BusVectorEnv(1024)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    for step in range(1000):
        if step == 100:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        info = env.step(picks(info["action_mask"], rng))[4]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB
