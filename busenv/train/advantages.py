"""Advantages in games of several players: each seat of each game is a trajectory of its own."""

from __future__ import annotations

from typing import Any

import numpy as np


def compute_gae(
    *,
    values: Any,
    rewards: Any,
    seats: Any,
    terminations: Any,
    next_values: Any,
    next_seats: Any,
    gamma: float,
    gae_lambda: float,
    is_learners: Any = None,
    is_bootstrapped: Any = None,
) -> tuple[Any, Any]:
    """Compute advantages by generalized advantage estimation (Schulman et al. 2016).

    The decisions of one seat in one game are a trajectory. A decision's reward is everything that
    its seat receives until the seat decides again, including rewards from actions of other seats.
    A trajectory that the rollout cuts is bootstrapped from the value of the seat's next decision
    where that is the decision after the rollout. Otherwise it is bootstrapped from the value of the
    seat's last decision in the rollout, and that decision has no advantage.

    The arguments are NumPy arrays (`np.asarray` converts those of JAX) or PyTorch tensors on one
    device. T are the steps of the rollout, N the games, P the seats of a game.

    values: float32, (T, N), of the decisions, as their seats expect them.
    rewards: float32, (T, N, P), of all seats after the decision: `info["rewards"]`.
    seats: int64, (T, N), that decide: `info["seat"]` before the step.
    terminations: bool, (T, N), whether the step ended the game.
    next_values, next_seats: (N,), value and seat of the decision after the rollout.
    is_learners: bool, (T, N), False for steps that belong to no trajectory: decisions of opponents,
        and steps that only start a game. By default every step belongs to one.
    is_bootstrapped: bool, (N,), whether the learner takes the decision after the rollout. By
        default it does.

    Returns advantages, float32 (T, N), whose sums with `values` are the returns, and which of the
    decisions have one, bool (T, N). They are NumPy arrays or PyTorch tensors, like the arguments.

    Raises ValueError when the shape of `rewards` is not (T, N, P), or when a seat of a trajectory
    is not 0 to P - 1.
    """
    if len(rewards.shape) != 3 or rewards.shape[:2] != values.shape:
        raise ValueError(
            f"rewards has shape {tuple(rewards.shape)} where values has {tuple(values.shape)}; "
            "pass the rewards of every seat, (T, N, P)"
        )
    xp: Any = np
    if not isinstance(values, np.ndarray):
        import torch as xp
    steps, games = values.shape
    players = rewards.shape[2]
    terminations = terminations != 0  # the flags may have any dtype
    is_learners = xp.ones_like(terminations) if is_learners is None else is_learners != 0
    if is_bootstrapped is None:
        is_bootstrapped = xp.ones_like(terminations[0])
    is_bootstrapped = is_bootstrapped != 0
    seats, next_seats = (xp.asarray(array, dtype=xp.int64) for array in (seats, next_seats))
    for name, array, is_in in (
        ("seats", seats, is_learners), ("next_seats", next_seats, is_bootstrapped),
    ):  # fmt: skip
        if bool((is_in & ((array < 0) | (array >= players))).any()):
            raise ValueError(
                f"{name} has another seat than 0 to {players - 1}, the columns of rewards"
            )
    # Steps that belong to no trajectory have an extra seat, `players`.
    seats = xp.where(is_learners, seats, players)
    next_seats = xp.where(is_bootstrapped, next_seats, players)
    # By game and seat.
    carried = xp.stack([xp.zeros_like(values[0])] * 4 * (players + 1)).reshape(4, games, -1)
    # Rewards until the seat's next decision; value and advantage of that; whether it is missing.
    pending, next_value, next_advantage, is_cut = carried.reshape(4, -1)
    first = (xp.cumsum(xp.ones_like(seats[0]), 0) - 1) * (players + 1)
    after = first + next_seats
    next_value[after] = next_values
    is_cut[:] = 1.0
    is_cut[after] = 0.0
    indices = first + seats
    continues = ~terminations[..., None]
    advantages = xp.zeros_like(values)
    has_advantage = xp.zeros_like(is_learners)
    for t in range(steps - 1, -1, -1):
        carried *= continues[t]
        carried[0, :, :players] += rewards[t]
        index = indices[t]
        delta = pending[index] + gamma * next_value[index] - values[t]
        advantages[t] = delta + gamma * gae_lambda * next_advantage[index]
        has_advantage[t] = is_cut[index] == 0
        # A decision without an advantage bootstraps the seat's earlier ones with its value.
        next_advantage[index] = advantages[t] * has_advantage[t]
        next_value[index] = values[t]
        pending[index] = 0.0
        is_cut[index] = 0.0
    return advantages, has_advantage & is_learners
