"""Learning from every seat: advantages along each seat's own chain, and a run that learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.policy import PolicyAgent
from busenv.sb3 import BusVecEnv
from train.rollout import SeatRolloutBuffer, seat_advantages
from train.selfplay import train_selfplay


def advantages(
    rewards: list, values: list, seats: list, over: list, last: tuple[float, int], lam: float
) -> list[float]:
    steps = len(values)
    out = np.zeros((steps, 1), np.float32)
    table = np.zeros((steps, 1, 5), np.float32)
    for t, row in enumerate(rewards):
        table[t, 0, : len(row)] = row
    seat_advantages(
        table,
        np.array(values, np.float32)[:, None],
        np.array(seats)[:, None],
        np.array(over)[:, None],
        np.array([last[0]], np.float32),
        np.array([last[1]]),
        1.0,
        lam,
        out,
    )
    return out[:, 0].tolist()


def test_rewards_reach_the_seat_that_earned_them() -> None:
    # Seats 0, 1, 2, 0, 1 decide; the game ends with the last decision.
    found = advantages(
        rewards=[[0, 0, 0], [2, 0, 0], [0, 0, 1], [0, 4, 0], [8, 16, 32]],
        values=[1, 2, 3, 4, 5],
        seats=[0, 1, 2, 0, 1],
        over=[0, 0, 0, 0, 1],
        last=(99.0, 2),
        lam=1.0,
    )
    # Seat 0: 2 comes before its second decision, 8 at the end. Seat 1: 4, then 16. Seat 2: 1 + 32.
    assert found == [2 + 8 - 1, 4 + 16 - 2, 1 + 32 - 3, 8 - 4, 16 - 5]


def test_lambda_runs_along_the_chain() -> None:
    found = advantages(
        rewards=[[0, 0], [2, 0], [0, 0], [8, 0]],
        values=[1, 7, 4, 7],
        seats=[0, 1, 0, 1],
        over=[0, 0, 0, 1],
        last=(0.0, 0),
        lam=0.5,
    )
    second = 8 - 4
    assert found[2] == second
    assert found[0] == (2 + 4 - 1) + 0.5 * second


def test_a_cut_rollout_goes_on_with_the_value_of_the_seat_to_decide() -> None:
    found = advantages(
        rewards=[[0, 0], [1, 3], [5, 0]],
        values=[2, 4, 6],
        seats=[0, 1, 0],
        over=[0, 0, 0],
        last=(10.0, 1),
        lam=1.0,
    )
    # Seat 1 decides next, worth 10. Seat 0's last decision is not settled yet: nothing is learned
    # from it, and its earlier one goes on with its value.
    assert found == [1 + 6 - 2, 3 + 10 - 4, 0]


def test_games_in_one_row_are_kept_apart() -> None:
    found = advantages(
        rewards=[[1, 0], [0, 2], [4, 0], [0, 8]],
        values=[0, 0, 0, 0],
        seats=[0, 1, 0, 1],
        over=[0, 1, 0, 1],
        last=(50.0, 0),
        lam=1.0,
    )
    assert found == [1, 2, 4, 8]


def test_the_buffer_sees_the_seats_and_payments_of_each_step() -> None:
    steps, games = 400, 5
    env = BusVecEnv(games, reward="margin")
    spaces = env.observation_space, env.action_space
    buffer = SeatRolloutBuffer(steps, *spaces, gamma=1.0, gae_lambda=1.0, n_envs=games, env=env)
    observation, starts = env.reset(), np.ones(games)
    rng, zeros = np.random.default_rng(1), torch.zeros(games)
    seats, paid, ends = [], [], []
    for _ in range(steps):
        masks = env.env_method("action_masks")[0]
        actions = np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)
        seats.append(env.batch.seats.copy())
        following, rewards, over, _ = env.step(actions)
        paid.append(env.batch.rewards.copy())
        ends.append(over)
        assert (rewards == paid[-1][np.arange(games), seats[-1]]).all()
        buffer.add(observation, actions, rewards, starts, zeros, zeros, action_masks=masks)
        observation, starts = following, over
    assert (buffer.seats == seats).all()
    assert (buffer.seat_rewards == paid).all()
    buffer.compute_returns_and_advantage(zeros, over)
    # With values of zero a decision returns what its seat is paid from there to the game's end.
    checked = 0
    for i in range(games):
        finished = [t for t in range(steps) if ends[t][i]]
        begins = [0] + [t + 1 for t in finished]
        for begin, end in zip(begins, finished, strict=False):
            for t in range(begin, end + 1):
                expected = sum(paid[u][i][seats[t][i]] for u in range(t, end + 1))
                assert buffer.returns[t, i] == pytest.approx(expected, abs=1e-4)
                checked += 1
    assert checked > 1000
    assert len({round(float(value), 3) for value in buffer.returns.flatten()}) > 5


@pytest.mark.filterwarnings("ignore")
def test_a_short_run_learns_and_reports() -> None:
    seen: list[int] = []
    before: list[torch.Tensor] = []

    def report(agent: PolicyAgent, elapsed: float, decisions: int) -> None:
        seen.append(decisions)
        before.append(agent.policy.action_net.weight.detach().clone())

    agent = train_selfplay(0.1, seed=3, threads=1, report=report)
    assert seen == [0, 64 * 256]
    assert agent.name == "ppo"
    assert not torch.equal(before[0], agent.policy.action_net.weight)
