"""Training samples from games that an agent plays against itself."""

from __future__ import annotations

import numpy as np

from busenv import Board, Rules
from busenv.agents import Agent
from busenv.batch.saved_games import take_games
from busenv.core import kernels
from busenv.core.jit import kernel
from busenv.core.rules.step import step
from busenv.core.state import GAME, OVER
from busenv.game.rules import as_rules
from busenv.game.states import illegal_action
from busenv.networks.inference import draw_actions
from busenv.search.search import pass_forced
from busenv.train.expert_iteration.samples import SAMPLE, write_decision, write_outcome


@kernel
def _write_decisions(games, policies, samples):
    for i in range(games.shape[0]):
        write_decision(samples[i], games[i], policies[i])


@kernel
def _write_outcomes(samples, game_numbers, games):
    for i in range(samples.shape[0]):
        write_outcome(samples[i : i + 1], games[game_numbers[i]])


@kernel
def _step_games(games, board, indices, actions, bits):
    """Take one action in some games and all forced ones after it. bits: uint64, (words,)."""
    for k, i in enumerate(indices):
        step(games[i], board[0], actions[k])
        pass_forced(games[i], board[0], bits)


def play_agent_games(
    agent: Agent,
    board: Board,
    rules: str | Rules,
    *,
    num_players: np.ndarray,
    sample_share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Play a batch of whole games and return samples of them: SAMPLE, (N,).

    The agent's actions are sampled from its probabilities, which are the policy target. The value
    target is the winner. num_players: int64, of each game. sample_share: probability that a
    decision becomes a sample.
    """
    games, first_players = np.zeros(len(num_players), GAME), rng.integers(0, num_players)
    for count in np.unique(num_players):
        indices = np.flatnonzero(num_players == count)
        started = np.zeros(len(indices), GAME)
        record = as_rules(rules).record(int(count))
        kernels.new_games(started, board.array, record, first_players[indices])
        games[indices] = started
    bits = np.zeros((board.num_actions + 63) // 64, np.uint64)
    rng_state = rng.integers(2**62, size=1, dtype=np.uint64)
    parts, game_numbers = [], []
    agent.reset(int(rng.integers(2**62)))
    while (running := np.flatnonzero(games["phase"] != OVER)).size:
        states = take_games(games, running)
        policies = agent.action_probabilities(states, board)
        actions = draw_actions(policies, rng_state)
        sampled = np.flatnonzero(rng.random(len(running)) < sample_share)
        part = np.zeros(len(sampled), SAMPLE)
        _write_decisions(states[sampled], policies[sampled], part)
        parts.append(part)
        game_numbers.append(running[sampled])
        if (wrong := kernels.first_illegal(states, board.array, actions)) >= 0:
            raise illegal_action(states, wrong, board, int(actions[wrong]))
        _step_games(games, board.array, running, actions, bits)
    samples = np.concatenate(parts)
    _write_outcomes(samples, np.concatenate(game_numbers), games)
    return samples
