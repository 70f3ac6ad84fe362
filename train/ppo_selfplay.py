"""Play games of the learner against itself and others to their ends, for a rollout of PPO.

Nothing here needs torch: a network may be given as its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from busenv.agents import Agent
from busenv.agents.networks.inference import Forward, draw_actions
from busenv.agents.networks.logits import action_probabilities
from busenv.train.selfplay_games import SelfPlayGames

LOWEST_TEMPERATURE = 0.01  # below it hardly anything changes


class Decisions(NamedTuple):
    """Decisions of the learner, R of them, in the order of time.

    games, seats: int64, whose they are. rewards_before: float64, the seat's rewards in its game so
    far. observations: uint8, (R, size). masks: bool, (R, num_actions). actions: int64. values,
    log_probs: float32. teacher_probabilities: float32, (R, num_actions), or (R, 0) without one.
    """

    games: np.ndarray
    seats: np.ndarray
    rewards_before: np.ndarray
    observations: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    values: np.ndarray
    log_probs: np.ndarray
    teacher_probabilities: np.ndarray


def play_games(
    forward: Forward,
    games: SelfPlayGames,
    seat_owner: np.ndarray,
    opponents: Sequence[Agent],
    seed: int,
    teacher: Agent | None = None,
    temperature: float = 1.0,
) -> Decisions:
    """Play games to their ends, one decision of each in a step; the network's decisions.

    forward: the network (`busenv.agents.networks.inference.make_forward`). seat_owner: int64, (N, 5),
    0 where the network plays, k where opponents[k - 1] does. seed: of all that is random.
    teacher: its action probabilities are kept. It also plays the network's seats in
    half of the games; in the others the network does, so that it is taught what to do in positions
    that its own play leads to (DAgger, Ross et al. 2011), above all at the `temperature` of its
    later play. PPO learns from what is played at temperature 1 only.
    """
    rng = np.random.default_rng(seed)
    for agent in (*opponents, *([teacher] if teacher else [])):
        agent.reset(int(rng.integers(2**62)))
    noise = rng.integers(2**62, size=1, dtype=np.uint64)
    steps: list[Decisions] = []
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
            played, taught = sampled, np.zeros((len(sampled), 0), np.float32)
            if teacher is not None:
                taught = teacher.action_probabilities(games.states[learner], games.board)
                best = taught.argmax(axis=1)
                played = np.where(learner < len(games.states) // 2, best, played)
            actions[owner == 0] = played
            seats = games.seats(learner)
            steps.append(
                Decisions(
                    learner, seats, games.cumulative_rewards[learner, seats], observations, masks,
                    played, values[:, 0], log_probs, taught,
                )
            )  # fmt: skip
        games.step(running, actions)
    return Decisions(*map(np.concatenate, zip(*steps, strict=True)))


def join(parts: Sequence[tuple[SelfPlayGames, Decisions]], games: SelfPlayGames) -> Decisions:
    """The decisions of games that were played in parts (`SelfPlayGames.part`), which are written
    back into the whole."""
    found, first = [], 0
    for part, decisions in parts:
        where = slice(first, first + len(part.states))
        games.states[where], games.cumulative_rewards[where] = part.states, part.cumulative_rewards
        found.append(decisions._replace(games=decisions.games + first))
        first = where.stop
    return Decisions(*map(np.concatenate, zip(*found, strict=True)))
