"""`busenv.envs.rllib` on RLlib's new API stack; skipped where that is not installed."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.rllib.algorithms.ppo", exc_type=ImportError)

import ray

from busenv.envs import rllib


@pytest.mark.parametrize("num_players", [3, (4,), (3, 4, 5)])
def test_rewards_are_those_of_their_seats_and_observations_fit_the_space(
    num_players: int | tuple[int, ...],
) -> None:
    env = rllib.BusMultiAgentEnv({"num_players": num_players, "reward": "margin"})
    rng = np.random.default_rng(0)
    met, earned = set(), False
    for game in range(9):
        seen, _ = env.reset(seed=None if game else 3)
        paid = dict.fromkeys(env.agents, 0.0)
        over = False
        while not over:
            ((agent, row),) = seen.items()
            assert env.observation_spaces[agent].contains(row)
            action = rng.choice(np.flatnonzero(row["action_mask"]))
            seen, rewards, ended, _, _ = env.step({agent: int(action)})
            over = ended["__all__"]
            for name, reward in rewards.items():
                paid[name] += reward
        met.add(len(paid))
        assert set(seen) == set(paid)
        points = env._env.game.points
        margins = [own - (sum(points) - own) / (len(points) - 1) for own in points]
        assert [paid[f"player_{seat}"] for seat in range(len(points))] == pytest.approx(margins)
        earned |= any(paid.values())
    assert earned
    assert met == {*np.atleast_1d(num_players).tolist()}


def test_keys_that_the_module_does_not_read_are_refused() -> None:
    with pytest.raises(ValueError, match="observation_keys is None; allowed: "):
        rllib.ppo_config(observation_keys=None)


def test_rllib_ppo_updates_one_shared_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", "/tmp")
    ray.init("local", num_cpus=1, include_dashboard=False)  # not another test's cluster
    settings = {"num_players": (3, 4, 5), "observation_dtype": "uint8"}
    config = rllib.ppo_config(32, **settings).training(
        train_batch_size_per_learner=400, minibatch_size=100, num_epochs=2
    )
    algorithm = config.env_runners(num_env_runners=0).build_algo()
    try:
        before = weights(algorithm)
        results = algorithm.train()
    finally:
        algorithm.stop()
        ray.shutdown()
    assert results["env_runners"]["num_env_steps_sampled_lifetime"] >= 400
    assert set(results["learners"]) >= {rllib.POLICY}
    assert any((before[name] != value).any() for name, value in weights(algorithm).items())


def weights(algorithm: Any) -> dict[str, np.ndarray]:
    state = algorithm.get_module(rllib.POLICY).state_dict()
    return {name: value.numpy().copy() for name, value in state.items()}
