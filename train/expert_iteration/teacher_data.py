"""Training samples from games that a teacher agent plays against itself."""

from __future__ import annotations

import numpy as np

from busenv import Board, Rules
from busenv.agents import Agent
from busenv.agents.networks.inference import draw_actions
from busenv.core.jit import kernel
from busenv.train.expert_iteration.samples import SAMPLE, write_decision, write_outcome
from busenv.train.selfplay import SelfPlayGames


@kernel
def _write_decisions(games, policies, samples):
    for i in range(games.shape[0]):
        write_decision(samples[i], games[i], policies[i])


@kernel
def _write_outcomes(samples, game_numbers, games):
    for i in range(samples.shape[0]):
        write_outcome(samples[i : i + 1], games[game_numbers[i]], True)


def play_teacher_games(
    teacher: Agent,
    board: Board,
    rules: str | Rules,
    *,
    num_players: np.ndarray,
    sample_share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Play a batch of whole games and return samples of them: SAMPLE, (N,).

    The teacher's actions are sampled from its probabilities, which are the policy target. The value
    target is the winner. num_players: int64, of each game. sample_share: probability that a
    decision becomes a sample.
    """
    games = SelfPlayGames(
        board, rules, reward="win", unit=1.0,
        num_players=num_players, first_players=rng.integers(0, num_players),
    )  # fmt: skip
    rng_state = rng.integers(2**62, size=1, dtype=np.uint64)
    parts, game_numbers = [], []
    teacher.reset(int(rng.integers(2**62)))
    while (running := games.running()).size:
        states = games.states[running]
        policies = teacher.action_probabilities(states, board)
        actions = draw_actions(policies, rng_state)
        sampled = np.flatnonzero(rng.random(len(running)) < sample_share)
        part = np.zeros(len(sampled), SAMPLE)
        _write_decisions(states[sampled], policies[sampled], part)
        parts.append(part)
        game_numbers.append(running[sampled])
        games.step(running, actions)
    samples = np.concatenate(parts)
    _write_outcomes(samples, np.concatenate(game_numbers), games.states)
    return samples
