"""Whole games played by the network without a search, and what they teach its policy.

How much an action was worth is told by the network's own chances at the seat's next decisions, and
at the end by who won (generalized advantage estimation, Schulman et al. 2016). The learner makes
what was worth more than expected likelier (`expert.learner`), which is true for the network that
played alone. Who wins is learned from games without opponents: a seat among weaker ones wins
more, which a search that takes all seats for its like must not believe.
"""

from __future__ import annotations

import numpy as np

from busenv.agents.mcts.guided import pass_forced, read_priors, read_values
from busenv.agents.neural.compiled import evaluate, forget
from busenv.core.jit import kernel
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import MAX_PLAYERS, OVER
from busenv.train.expert.players import LEARNER, draw, opponent_turn
from busenv.train.expert.rows import MOST_ACTIONS, finish_rows, write_row

TEMPERATURE = 0.5  # of play: near enough to what the network is for, and yet all is tried
DECAY = 0.95  # lambda: how much the seat's next decision counts less than the one before


@kernel
def _sharp(share):
    """How much a share of the policy weighs in what is played."""
    return np.float64(share) ** (1.0 / TEMPERATURE)


@kernel
def _draw_sharply(tree, work, count, policy):
    """An action, drawn by the network's priors at TEMPERATURE; they are in the policy then."""
    total = 0.0
    for k in range(count):
        total += _sharp(work.logits[k])
    policy[:] = 0.0
    for k in range(count):
        policy[work.actions[k]] = _sharp(work.logits[k]) / total
    action = draw(tree, policy)
    for k in range(count):
        policy[work.actions[k]] = work.logits[k]
    return action


@kernel
def _put_first(row, action):
    """Let what was taken stand first in a row; the row is without a policy where it has not got
    it."""
    for k in range(MOST_ACTIONS):
        if row.shares[k] > 0 and row.actions[k] == action:
            share = row.shares[k]
            row.actions[k], row.shares[k] = row.actions[0], row.shares[0]
            row.actions[0], row.shares[0] = action, share
            return
    for k in range(MOST_ACTIONS):
        row.shares[k] = 0


@kernel
def _learner_action(tree, players, board, kept, row):
    """What the network takes; if it is kept, the row of the decision, the action first."""
    guide, policy, g = players.full, players.policy, players.game[0]
    work = guide.work
    count = evaluate(g, board[0], guide.weights, work)
    read_priors(work, count)
    action = _draw_sharply(tree, work, count, policy)
    if kept:
        read_values(g, work.values, guide.chances, guide.points)
        for seat in range(g.players):
            row.chances[seat] = guide.chances[seat]
        write_row(row, g, policy)
        _put_first(row, action)
    return action


@kernel
def tell_advantages(rows):
    """Write into the rows of a finished game how much better each action was than expected."""
    following, seen = np.zeros((2, MAX_PLAYERS)), np.zeros(MAX_PLAYERS, np.bool_)
    for back in range(rows.shape[0]):
        row = rows[rows.shape[0] - 1 - back]
        if row.shares[0] == 0:  # another's decision
            continue
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
    telling = owners[: np.int64(g.players)].max() == LEARNER
    while g.phase != OVER:
        owner, room = owners[g.seat], count < rows.shape[0]
        row = rows[min(count, rows.shape[0] - 1)]
        if owner == LEARNER:
            action = _learner_action(tree, players, board, room, row)
            count += room
        else:
            action, _ = opponent_turn(owner, plan, players, board, tree, rows[:0], 0)
        step(g, b, action)
        pass_forced(g, b, players.full.work)
    finish_rows(rows[:count], g, telling)
    tell_advantages(rows[:count])
    return count


@kernel
def play_alone(seeds, rules, first, owners, plan, players, board, rows, counts):
    """Play games one after the other: rows (ROW, (N, most)), how many of each into counts."""
    forget(players.full.work)
    for i in range(len(seeds)):
        new_game(players.game[0], board[0], rules[i], first[i])
        counts[i] = _play_game(seeds[i], owners[i], plan, players, board, rows[i])
