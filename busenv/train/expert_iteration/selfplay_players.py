"""Players of self-play by a guided search: the search and scripted bots, and their seats.

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
    from busenv.train.expert_iteration.expert_config import SearchSettings

LEARNER, UCT, PLANNER, GREEDY = range(4)  # owner of a seat
BOTS = {"uct": UCT, "planner": PLANNER, "greedy": GREEDY}
PLAY_NOISE = 0.3  # scale of the root's Gumbel noise in fast searches; full searches have 1


class SearchPlay(NamedTuple):
    """How the search plays, for kernels; see `expert_config.SearchSettings`."""

    num_simulations: int
    fast_simulations: int
    full_search_share: float
    bot_simulations: int


class Players(NamedTuple):
    """Searches and workspaces of one thread.

    full, fast: the guided search of decisions that become samples, and of others. bot: search of
    `uct`, whose workspace `planner` uses too. trees: two for the guided search, one for bots.
    game: GAME, (1,). policy: float32, (num_actions,). greedy: workspace of `greedy`.
    """

    full: AzSearchState
    fast: AzSearchState
    bot: UctSearchState
    trees: tuple[Tree, Tree, Tree]
    game: np.ndarray
    policy: np.ndarray
    greedy: BotWorkspace


def make_players(weights: Weights, play: SearchPlay) -> Players:
    """Allocate the players of one thread. weights: of the network that guides the search."""
    actions, settings = weights.sizes[1], AzSettings()
    full = make_az_search(settings._replace(gumbel_scale=1.0), weights)
    simulations = max(play.num_simulations, play.fast_simulations, play.bot_simulations)
    nodes = 4 * simulations + 64
    return Players(
        full,
        full._replace(settings=settings._replace(gumbel_scale=PLAY_NOISE)),
        make_uct_search(UctSettings(), WEIGHTS, actions),
        tuple(make_tree(nodes, 24 * nodes + 512) for _ in range(3)),  # type: ignore[arg-type]
        np.zeros(1, GAME),
        np.zeros(actions, np.float32),
        make_bot_workspace(actions),
    )


@inlined
def bot_action(owner, seed, play, players, board):
    """Action of a bot. seed: uint64, of its random choices."""
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
    begin_search(tree, players.bot, board)
    simulate(tree, players.bot, board, play.bot_simulations)
    root_weights(tree, players.bot, policy)
    return np.int64(policy.argmax())


def assign_seats(
    num_players: np.ndarray, settings: SearchSettings, rng: np.random.Generator
) -> np.ndarray:
    """Assign an owner to each seat of N games at random: int64, (N, 5).

    num_players: int64, (N,), of each game. In half of the games with a bot, the search holds one
    seat; in the others it holds all seats but one.
    """
    seat_owner = np.zeros((len(num_players), MAX_PLAYERS), np.int64)
    draws, seats = rng.random(len(num_players)), rng.integers(0, num_players)
    one_seat = rng.random(len(num_players)) < 0.5
    bots = rng.choice([BOTS[bot] for bot in settings.bots], len(num_players))
    games = np.flatnonzero(draws < settings.bot_share)
    seat_owner[games[one_seat[games]]] = bots[games[one_seat[games]], None]
    seat_owner[games, seats[games]] = np.where(one_seat[games], LEARNER, bots[games])
    return seat_owner
