"""Batches on several threads and in processes, and interrupted steps."""

import contextlib
import copy
import gc
import multiprocessing
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from busenv import IllegalActionError
from busenv.batch.batch import Batch
from busenv.core import thread_kernels as core
from busenv.envs.vector import BusVectorEnv
from tests.support.play import picks


def self_play(num_envs: int, threads: int = 1) -> BusVectorEnv:
    return BusVectorEnv(num_envs, opponents=None, threads=threads)


def story(env: BusVectorEnv, steps: int = 300) -> list[bytes]:
    """Return all results of a vector environment over some steps."""
    rng = np.random.default_rng(3)
    _, info = env.reset(seed=8)
    out = []
    for step in range(steps):
        seen, rewards, over, _, info = env.step(picks(info["action_mask"], rng))
        arrays = [seen, rewards, over, info["rewards"], info["seat"], info["action_mask"]]
        arrays += [env.batch.games, env.batch.final_games[over]]
        out.append(b"".join(array.tobytes() for array in arrays))
        if step % 20 == 10:
            time.sleep(0.01)  # longer than threads wait for the next step
    return out


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("opponents", [None, "random", ["greedy", "planner", "random"]])
def test_threads_change_nothing(opponents: Any, mode: str) -> None:
    alone, two, seven = (
        story(BusVectorEnv(150, opponents=opponents, autoreset_mode=mode, threads=threads))
        for threads in (1, 2, 7)
    )
    assert alone == two == seven


@pytest.mark.parametrize("threads", [1, 2])
def test_an_illegal_action_is_named_and_changes_nothing(threads: int) -> None:
    env, twin = self_play(200, threads), self_play(200)
    rng = np.random.default_rng(0)
    for one in (env, twin):
        one.reset(seed=8)
    for _ in range(5):
        actions = picks(env.batch.masks, rng)
        wrong = actions.copy()
        wrong[[130, 199]] = env.batch.masks[[130, 199]].argmin(axis=1)
        with pytest.raises(
            IllegalActionError, match=r"of game 130 is illegal for seat \d in phase .*; sample"
        ):
            env.step(wrong)
        for name in ("games", "observations", "masks", "rewards", "illegal_actions"):
            assert (getattr(env.batch, name) == getattr(twin.batch, name)).all()
        for one in (env, twin):
            one.step(actions)


@pytest.mark.parametrize("name", ["help_steps", "advance_checked", "wait_for"])
def test_a_reset_recovers_from_an_interrupted_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = story(self_play(70), 20)
    # The first step of a batch makes its threads, and compiles what they do.
    for steps in (0,) if name == "help_steps" else (0, 3):
        env = self_play(70, 2)
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
        assert (env.batch.observations == seen).all()
        with contextlib.suppress(KeyboardInterrupt):
            env.reset(seed=8)  # which may be interrupted too
        monkeypatch.undo()
        assert story(env, 20) == expected
        assert len(env.batch._threads._wake_locks) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_in_use_refuses_another_thread_4_000_tries(threads: int) -> None:
    env = self_play(64, threads)
    env.reset(seed=1)
    refused: list[str] = []

    def use(number: int) -> None:
        rng = np.random.default_rng(number)
        for tries in range(1000):
            try:
                if tries % 50 == 49:
                    env.reset(seed=number)
                else:
                    with contextlib.suppress(IllegalActionError):  # other steps came between
                        env.step(picks(env.batch.masks, rng))
            except RuntimeError as error:
                refused.append(str(error))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert len(set(refused)) == 1
    assert "in use by another thread" in refused[0]
    assert story(env, 20) == story(self_play(64), 20)


def test_threads_end_with_their_batch() -> None:
    gc.collect()
    wait_for_threads(0)  # those of other tests
    batch = Batch(8, threads=3)
    batch.reset(0)
    batch.step(batch.masks.argmax(axis=1))
    wait_for_threads(2)
    copied = copy.deepcopy(batch)
    copied.step(copied.masks.argmax(axis=1))
    wait_for_threads(4)
    batch.step(batch.masks.argmax(axis=1))
    assert copied.games.tobytes() == batch.games.tobytes()
    del batch, copied
    gc.collect()
    wait_for_threads(0)


def wait_for_threads(number: int) -> None:
    """Wait until this number of worker threads exists."""
    deadline = time.monotonic() + 60
    while number != [f.f_code.co_name for f in sys._current_frames().values()].count("_work"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_another_process(queue, env) -> None:  # type: ignore[no-untyped-def]
    queue.put(story(env, 30))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_batches_pickle_and_work_in_other_processes(method: str) -> None:
    env = self_play(3, 2)
    here = story(env, 30)
    assert story(pickle.loads(pickle.dumps(env)), 30) == here
    assert story(copy.deepcopy(env), 30) == here
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=in_another_process, args=(queue, env))
    process.start()
    assert queue.get(timeout=120) == here
    process.join()
