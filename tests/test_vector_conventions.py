"""Vector environments compared with Gymnasium's; arrays returned by environments are fresh."""

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import busenv
from busenv.batch.batch import Batch
from busenv.envs.gymnasium import BusEnv
from busenv.envs.vector import BusVectorEnv
from busenv.observation import observe
from tests.support.play import picks
from tests.support.scribbling import scribble


class ObservationAgent:
    """Chooses by the observation only."""

    def act(self, game: busenv.Game) -> int:
        legal = game.legal_actions()
        return legal[int(observe(game).sum()) % len(legal)]


class FirstPlayers(gymnasium.Wrapper):
    """Starts its games with the first players of a list."""

    def __init__(self, env: gymnasium.Env, firsts: list[int]) -> None:
        super().__init__(env)
        self.firsts = iter(firsts)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.env.reset(seed=seed, options={"first_player": next(self.firsts)})


@pytest.mark.parametrize("mode", [*AutoresetMode])
@pytest.mark.parametrize(("illegal", "keys"), [("raise", None), ("lose", ("obs", "mask"))])
def test_results_equal_those_of_gymnasiums_sync_vector_env(
    mode: AutoresetMode, illegal: Any, keys: Any
) -> None:
    settings: Any = {
        "num_players": 3,
        "opponents": ObservationAgent(),
        "learner_seat": 1,
        "illegal": illegal,
        "reward": "margin",
        "observation_keys": keys,
        "observation_dtype": "float32" if keys else "uint8",
    }
    envs = gymnasium.make_vec("busenv/Bus-v0", num_envs=3, autoreset_mode=mode, **settings)
    firsts = first_players(seed=4, games=3, episodes=40)
    copies = SyncVectorEnv(
        [
            lambda i=i: FirstPlayers(BusEnv(**settings), firsts[i])  # type: ignore[misc]
            for i in range(3)
        ],
        autoreset_mode=mode,
    )
    assert envs.autoreset_mode == mode == envs.metadata["autoreset_mode"]
    for name in ("observation_space", "action_space", "single_observation_space"):
        assert getattr(envs, name) == getattr(copies, name)
    rng = np.random.default_rng(0)
    results, expected = envs.reset(seed=4), copies.reset(seed=0)
    compare(results, expected)
    ends = 0
    while ends < 12:
        actions = picks(envs.unwrapped.action_masks(), rng)
        if illegal == "lose" and rng.random() < 0.05:
            actions[rng.integers(3)] = 374
        results, expected = envs.step(actions), copies.step(actions)
        compare(results, expected)
        over = results[2]
        ends += over.sum()
        if mode == AutoresetMode.DISABLED and over.any():
            results, expected = (
                e.reset(options={"reset_mask": over.copy()}) for e in (envs, copies)
            )
            compare(results, expected)


def first_players(seed: int, games: int, episodes: int) -> list[list[int]]:
    """Return the first players of each game's episodes, as a batch draws them."""
    batch = Batch(games, num_players=3)
    firsts = []
    for episode in range(episodes):
        batch.reset(None if episode else seed)
        firsts.append(batch.games["first"].tolist())
    return [list(one) for one in zip(*firsts, strict=True)]


def compare(ours: Any, theirs: Any) -> None:
    """Compare values and types; ours may have more keys."""
    if isinstance(theirs, dict):
        for key, value in theirs.items():
            if not key.startswith("_"):
                mask = theirs.get(f"_{key}")
                compare_where(ours[key], value, mask)
            if key.startswith("_final"):
                compare(ours[key], value)
        assert ("final_obs" in ours) == ("final_obs" in theirs)
    elif isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            compare(our, their)
    else:
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def compare_where(ours: Any, theirs: Any, mask: np.ndarray | None) -> None:
    if isinstance(theirs, dict):
        compare(ours, theirs)
    elif theirs.dtype == object:
        for our, their in zip(ours, theirs, strict=True):
            assert (our is None) == (their is None)
            if their is not None:
                compare(our, their)
    else:
        where = np.ones(len(theirs), bool) if mask is None else mask
        compare(ours[where], theirs[where])


def pay(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
    rewards[:] = after["delivered"][:, None]


def pay_and_overwrite(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
    pay(before, after, rewards)
    for states in (before, after):
        states.view(np.uint8)[:] = 255


CASES: list[dict[str, Any]] = [
    *({"num_envs": 5, "autoreset_mode": mode} for mode in AutoresetMode),
    {"num_envs": 5, "opponents": "greedy", "threads": 2},
    {"opponents": ["greedy", "random"]},
    {"observation_dtype": "float32"},
    *(
        {**size, "observation_keys": ("obs", "mask"), **others}
        for size in ({}, {"num_envs": 5})
        for others in ({"illegal": "replace"}, {"illegal": "lose", "observation_dtype": "float32"})
    ),
]


@pytest.mark.parametrize("settings", CASES, ids=map(str, range(len(CASES))))
def test_returned_arrays_are_fresh(settings: dict[str, Any]) -> None:
    """Overwrite the results of one environment and compare the stored results of a twin."""
    make: Any = BusVectorEnv if "num_envs" in settings else BusEnv
    rewards = (pay_and_overwrite, pay)
    used, twin = (make(num_players=3, reward=reward, **settings) for reward in rewards)
    rng = np.random.default_rng(0)
    stored: list[tuple[Any, Any]] = []

    def both(name: str, *arguments: Any, **options: Any) -> Any:
        one, other = (getattr(env, name)(*arguments, **options) for env in (used, twin))
        stored.append((other, copy.deepcopy(other)))
        assert pickle.dumps(one) == pickle.dumps(other)
        scribble(one)
        return other

    both("reset", seed=5)
    ended = 0
    while ended < 12:
        actions = picks(np.atleast_2d(both("action_masks")), rng)
        over = both("step", actions if make is BusVectorEnv else int(actions[0]))[2]
        ended += np.sum(over)
        if make is BusEnv and over:
            both("reset")
        elif settings.get("autoreset_mode") == AutoresetMode.DISABLED and over.any():
            both("reset", options={"reset_mask": over.copy()})
    for value, as_it_was in stored:
        assert pickle.dumps(value) == pickle.dumps(as_it_was)
