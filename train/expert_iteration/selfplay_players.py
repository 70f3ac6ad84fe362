"""Who plays in self-play: the learner, past selves, scripted bots; and how they are drawn.

A tree of each has a random stream, so that what is drawn depends on the game's seed alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.agents.networks.compiled_mlp import Weights
from busenv.agents.planner.evaluation import WEIGHTS
from busenv.agents.planner.planner_agent import planned_action
from busenv.agents.search.az_search import AzSearchState, AzSettings, make_az_search
from busenv.agents.search.search import begin_search, root_weights, simulate
from busenv.agents.search.tree import Tree, make_tree, set_root
from busenv.agents.search.uct_search import UctSearchState, make_uct_search
from busenv.agents.search.uct_search import UctSettings as BotSettings
from busenv.core.bits import GOLDEN, mix
from busenv.core.bots import BotWorkspace, greedy_action, make_bot_workspace
from busenv.core.jit import kernel
from busenv.core.state import GAME, MAX_PLAYERS

LEARNER, PAST, UCT, PLANNER, GREEDY = range(5)  # who plays a seat
BOTS = {"uct": UCT, "planner": PLANNER, "greedy": GREEDY}
PLAY_NOISE = 0.3  # on the priors of searches that are not learned from


class SelfPlayConfig(NamedTuple):
    """How self-play searches.

    full, fast: simulations of a decision that is learned from and of one that is not. full_share:
    of decisions searched in full (playout cap randomisation, Wu 2019, KataGo). early: decisions of
    a game that are drawn by the improved policy, not taken for the best. bot: simulations of `uct`.
    alone: whether the learner does not search at all (`busenv.train.expert_iteration.policy_selfplay`).
    """

    full: int
    fast: int
    full_share: float
    early: int
    bot: int
    alone: bool = False


class Players(NamedTuple):
    """What plays, for one thread: the learner's search in full and in haste, a past self's, and
    `uct`, whose arrays `planner` works in, too; trees for the learner and for the others; arrays to
    work in, `greedy`'s last."""

    full: AzSearchState
    fast: AzSearchState
    past: AzSearchState
    bot: UctSearchState
    trees: tuple[Tree, Tree, Tree]
    game: np.ndarray
    policy: np.ndarray
    greedy: BotWorkspace


def make_players(
    weights: Weights, past: Weights, plan: SelfPlayConfig, settings: AzSettings
) -> Players:
    """Players for one thread. weights: of the learner; past: of a past self."""
    actions = len(weights.logits_bias)
    full = make_az_search(settings._replace(gumbel_scale=1.0), weights)
    fast = full._replace(settings=settings._replace(gumbel_scale=PLAY_NOISE))
    nodes = 4 * max(plan.full, plan.fast, plan.bot) + 64
    return Players(
        full,
        fast,
        make_az_search(fast.settings, past),
        make_uct_search(BotSettings(), WEIGHTS, actions),
        tuple(make_tree(nodes, 24 * nodes + 512) for _ in range(3)),  # type: ignore[arg-type]
        np.zeros(1, GAME),
        np.zeros(actions, np.float32),
        make_bot_workspace(actions),
    )


@kernel
def uniform(tree):
    """A number from 0 to below 1 out of a tree's random stream."""
    tree.noise[0] += GOLDEN
    return np.float64(mix(tree.noise[0]) >> np.uint64(11)) / 2.0**53


@kernel
def draw(tree, policy):
    """An action, drawn by a policy."""
    rest, last = uniform(tree), 0
    for action in range(policy.shape[0]):
        if policy[action] > 0.0:
            last = action
            rest -= policy[action]
            if rest < 0.0:
                break
    return last


@kernel
def is_learners(owners, game):
    """Whether all seats of a game are the learner's."""
    return owners[: np.int64(game.players)].max() == LEARNER


@kernel
def opponent_turn(owner, plan, players, board, tree, rows, count):
    """What a past self or a bot takes, and how many rows there are then: a share of these decisions
    is kept, without a policy. tree: of the learner, whose random stream decides."""
    if uniform(tree) < plan.full_share and count < rows.shape[0]:
        rows[count].game = players.game[0]
        count += 1
    tree.noise[0] += GOLDEN
    return opponent_action(owner, mix(tree.noise[0]), plan, players, board), count


@kernel
def opponent_action(owner, noise, plan, players, board):
    """What a past self or a bot takes. noise: uint64, on which alone it depends what is drawn."""
    if owner == PLANNER:
        return planned_action(players.game[0], board[0], WEIGHTS, noise, players.bot.work)
    if owner == GREEDY:
        return greedy_action(players.game[0], board[0], players.greedy, noise)
    tree, policy = players.trees[2], players.policy
    set_root(tree, players.game)
    tree.noise[0] = noise
    policy[:] = 0.0
    if owner == PAST:
        begin_search(tree, players.past, board)
        simulate(tree, players.past, board, plan.fast)
        root_weights(tree, players.past, policy)
    else:
        begin_search(tree, players.bot, board)
        simulate(tree, players.bot, board, plan.bot)
        root_weights(tree, players.bot, policy)
    return np.int64(policy.argmax())


def draw_owners(
    counts: np.ndarray,
    past_share: float,
    bot_share: float,
    outnumbered: float,
    bots: tuple[str, ...],
    rng: np.random.Generator,
) -> np.ndarray:
    """Whose each seat is: int64, (N, 5). An opponent takes every seat but one, in a share of its
    games (outnumbered), or one only."""
    owners = np.zeros((len(counts), MAX_PLAYERS), np.int64)
    draws, seats = rng.random(len(counts)), rng.integers(0, counts)
    most = rng.random(len(counts)) < outnumbered
    kinds = rng.choice([BOTS[bot] for bot in bots], len(counts))
    kinds[draws < past_share] = PAST
    which = np.flatnonzero(draws < past_share + bot_share)
    owners[which[most[which]]] = kinds[which[most[which]], None]
    owners[which, seats[which]] = np.where(most[which], LEARNER, kinds[which])
    return owners
