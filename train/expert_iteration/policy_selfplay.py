"""Whole games played by the network without a search, and what they teach its policy.

How much an action was worth is told by the network's own chances at the seat's next decisions, and
at the end by who won (generalized advantage estimation, Schulman et al. 2016). The learner makes
what was worth more than expected likelier (`expert.learner`), which is true for the network that
played alone. Who wins is learned from games without opponents: a seat among weaker ones wins
more, which a search that takes all seats for its like must not believe.
"""

from __future__ import annotations

import numpy as np

from busenv.agents.networks.compiled_mlp import clear_cache, evaluate
from busenv.agents.search.az_search import read_priors, read_values
from busenv.agents.search.search import pass_forced
from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import kernel
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import MAX_PLAYERS, OVER
from busenv.train.expert_iteration.selfplay_players import (
    LEARNER,
    draw,
    is_learners,
    opponent_action,
)
from busenv.train.expert_iteration.training_rows import finish_rows

TEMPERATURE = 0.5  # of play: near enough to what the network is for, and yet all is tried
DECAY = 0.95  # lambda: how much the seat's next decision counts less than the one before


@kernel
def _sharp(share):
    """How much a share of the policy weighs in what is played."""
    return np.float64(share) ** (1.0 / TEMPERATURE)


@kernel
def _learner_action(tree, players, board, row):
    """What the network takes, drawn by its priors at TEMPERATURE; the row of the decision, but for
    how the game ends and what was gained."""
    guide, policy, g = players.full, players.policy, players.game[0]
    work, total = guide.work, 0.0
    count = evaluate(g, board[0], guide.weights, work)
    read_values(g, work.values, guide.chances, guide.points)
    read_priors(work, count)
    for k in range(count):
        total += _sharp(work.logits[k])
    policy[:] = 0.0
    for k in range(count):
        policy[work.actions[k]] = _sharp(work.logits[k]) / total
    action = draw(tree, policy)
    row.game, row.actions[0], row.chance = g, action, policy[action]
    for seat in range(g.players):
        row.chances[seat] = guide.chances[seat]
    return action


@kernel
def tell_advantages(rows):
    """Write into the rows of a finished game how much better each action was than expected."""
    following, seen = np.zeros((2, MAX_PLAYERS)), np.zeros(MAX_PLAYERS, np.bool_)
    for back in range(rows.shape[0]):
        row = rows[rows.shape[0] - 1 - back]
        seat = np.int64(row.game.seat)
        value = np.float64(row.chances[seat])
        if seen[seat]:
            advantage = following[0, seat] - value + DECAY * following[1, seat]
        else:
            advantage = np.float64(row.winner == seat) - value
        following[0, seat], following[1, seat], seen[seat] = value, advantage, True
        row.advantage = advantage


@kernel
def _play_game(seed, owners, plan, players, board, rows):
    """Play the game in `players.game` from its beginning to its end; the number of rows."""
    b, g, tree, count = board[0], players.game[0], players.trees[0], 0
    tree.noise[0] = seed
    while g.phase != OVER:
        if owners[g.seat] == LEARNER:
            row = rows[min(count, rows.shape[0] - 1)]
            action = _learner_action(tree, players, board, row)
            count += count < rows.shape[0]
        else:
            tree.noise[0] += GOLDEN
            action = opponent_action(owners[g.seat], mix(tree.noise[0]), plan, players, board)
        step(g, b, action)
        pass_forced(g, b, players.full)
    finish_rows(rows[:count], g, is_learners(owners, g))
    tell_advantages(rows[:count])
    return count


@kernel
def play_alone(seeds, rules, first, owners, plan, players, board, rows, counts):
    """Play games one after the other: rows (ROW, (N, most)), how many of each into counts."""
    clear_cache(players.full.work)
    for i in range(len(seeds)):
        new_game(players.game[0], board[0], rules[i], first[i])
        counts[i] = _play_game(seeds[i], owners[i], plan, players, board, rows[i])
