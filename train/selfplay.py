"""Play games of the learner against itself and others to their ends: one rollout of PPO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import nn

from busenv.agents import Agent
from busenv.agents.neural.inference import draw_actions, make_forward
from busenv.agents.neural.networks import action_probabilities
from busenv.train.games import SelfPlayGames
from busenv.train.rollout import Rollout

LOWEST_TEMPERATURE = 0.01  # below it hardly anything changes


def collect_rollout(
    network: nn.Module,
    games: SelfPlayGames,
    seat_owner: np.ndarray,
    opponents: Sequence[Agent],
    rng: np.random.Generator,
    teacher: Agent | None = None,
    temperature: float = 1.0,
) -> Rollout:
    """Play games to their ends, one decision of each in a step.

    seat_owner: int64, (N, 5), 0 where the network plays, k where opponents[k - 1] does. Only the
    network's decisions are in the rollout, which is not finished yet.
    teacher: then the rollout holds its action probabilities. It also plays the network's seats in
    half of the games; in the others the network does, so that it is taught what to do in positions
    that its own play leads to (DAgger, Ross et al. 2011), above all at the `temperature` of its
    later play. PPO learns from what is played at temperature 1 only.
    """
    device = next(network.parameters()).device
    forward, rollout = make_forward(network), Rollout(rng, device)
    noise = rng.integers(2**62, size=1, dtype=np.uint64)
    while (running := games.running()).size:
        owner = seat_owner[running, games.seats(running)]
        actions = np.zeros(len(running), np.int64)
        for k in np.unique(owner[owner > 0]):
            rows = owner == k
            actions[rows] = opponents[k - 1].choose(games.states[running[rows]], games.board)
        learner = running[owner == 0]
        if learner.size:
            observations, masks = games.observe(learner)
            logits, values = forward(observations, masks)
            probabilities = action_probabilities(
                logits, masks, max(temperature, LOWEST_TEMPERATURE)
            )
            sampled = np.zeros(len(learner), np.int64)
            draw_actions(probabilities, noise, sampled)
            log_probs = np.log(probabilities[np.arange(len(sampled)), sampled])
            played, taught = sampled, None
            if teacher is not None:
                taught = teacher.action_probabilities(games.states[learner], games.board)
                best = taught.argmax(axis=1)
                played = np.where(learner < len(games.states) // 2, best, played)
            actions[owner == 0] = played
            rollout.add(
                learner, games.seats(learner), games.cumulative_rewards, observations, masks,
                played, values[:, 0], log_probs, taught,
            )  # fmt: skip
        games.step(running, actions)
    return rollout
