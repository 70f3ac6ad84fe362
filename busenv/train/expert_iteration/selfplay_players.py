"""Players of self-play: the learner, past selves and scripted bots, and their seats.

Each tree has its own random stream, so random choices depend on the game's seed alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from busenv.agents.planner_agent import planned_action
from busenv.core.bots import BotWorkspace, greedy_action, make_bot_workspace
from busenv.core.jit import inlined
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.heuristics.evaluation import WEIGHTS
from busenv.networks.compiled_network import Weights
from busenv.search.az_search import AzSearchState, AzSettings, make_az_search
from busenv.search.search import begin_search, root_weights, simulate
from busenv.search.tree import Tree, make_tree, set_root
from busenv.search.uct_search import UctSearchState, UctSettings, make_uct_search

if TYPE_CHECKING:  # nodes of a cluster play without pydantic and torch
    from busenv.train.expert_iteration.expert_config import ExpertConfig

LEARNER, PAST, UCT, PLANNER, GREEDY = range(5)  # owner of a seat
BOTS = {"uct": UCT, "planner": PLANNER, "greedy": GREEDY}
PLAY_NOISE = 0.3  # scale of the root's Gumbel noise in fast searches; full searches have 1


class SelfPlayConfig(NamedTuple):
    """Settings of self-play for kernels; see `busenv.train.expert_iteration.expert_config`."""

    num_simulations: int
    fast_simulations: int
    full_search_share: float
    temperature_moves: int
    bot_simulations: int


class Players(NamedTuple):
    """Searches and workspaces of one thread.

    full, fast: the learner's searches. past: search of a past self. bot: search of `uct`, whose
    workspace `planner` uses too. trees: two for the learner, one for opponents. game: GAME, (1,).
    policy: float32, (num_actions,). greedy: workspace of `greedy`.
    """

    full: AzSearchState
    fast: AzSearchState
    past: AzSearchState
    bot: UctSearchState
    trees: tuple[Tree, Tree, Tree]
    game: np.ndarray
    policy: np.ndarray
    greedy: BotWorkspace


def make_players(weights: Weights, past_weights: Weights, config: SelfPlayConfig) -> Players:
    """Allocate the players of one thread. weights: of the learner's network."""
    actions, settings = weights.sizes[1], AzSettings()
    full = make_az_search(settings._replace(gumbel_scale=1.0), weights)
    fast = full._replace(settings=settings._replace(gumbel_scale=PLAY_NOISE))
    simulations = max(config.num_simulations, config.fast_simulations, config.bot_simulations)
    nodes = 4 * simulations + 64
    return Players(
        full,
        fast,
        make_az_search(fast.settings, past_weights),
        make_uct_search(UctSettings(), WEIGHTS, actions),
        tuple(make_tree(nodes, 24 * nodes + 512) for _ in range(3)),  # type: ignore[arg-type]
        np.zeros(1, GAME),
        np.zeros(actions, np.float32),
        make_bot_workspace(actions),
    )


@inlined
def opponent_action(owner, seed, config, players, board):
    """Action of a past self or a bot. seed: uint64, of its random choices."""
    if owner == PLANNER:
        return planned_action(
            players.game[0], board[0], players.bot.weights, seed, players.bot.work
        )
    if owner == GREEDY:
        return greedy_action(players.game[0], board[0], players.greedy, seed)
    tree, policy = players.trees[2], players.policy
    set_root(tree, players.game)
    tree.rng_state[0] = seed
    policy[:] = 0.0
    if owner == PAST:
        begin_search(tree, players.past, board)
        simulate(tree, players.past, board, config.fast_simulations)
        root_weights(tree, players.past, policy)
    else:
        begin_search(tree, players.bot, board)
        simulate(tree, players.bot, board, config.bot_simulations)
        root_weights(tree, players.bot, policy)
    return np.int64(policy.argmax())


def assign_seats(
    num_players: np.ndarray, config: ExpertConfig, past_share: float, rng: np.random.Generator
) -> np.ndarray:
    """Assign an owner to each seat of N games at random: int64, (N, 5).

    num_players: int64, (N,), of each game. past_share: share of games with a past self. In a share
    `config.all_opponents_share` of the games with an opponent the learner holds one seat; in the
    others it holds all seats but one.
    """
    seat_owner = np.zeros((len(num_players), MAX_PLAYERS), np.int64)
    draws, seats = rng.random(len(num_players)), rng.integers(0, num_players)
    one_learner = rng.random(len(num_players)) < config.all_opponents_share
    opponents = rng.choice([BOTS[bot] for bot in config.bots], len(num_players))
    opponents[draws < past_share] = PAST
    games = np.flatnonzero(draws < past_share + config.bot_share)
    seat_owner[games[one_learner[games]]] = opponents[games[one_learner[games]], None]
    seat_owner[games, seats[games]] = np.where(one_learner[games], LEARNER, opponents[games])
    return seat_owner
