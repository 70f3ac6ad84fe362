"""Self-play of whole games by the guided search, in compiled code.

A game depends on its seed alone, so samples do not depend on threads or nodes of a cluster. Nodes
do not import torch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from busenv import Board, Rules, cluster
from busenv.agents.scripted import planned_action
from busenv.core.bits import GOLDEN, mix, seeded, uniform
from busenv.core.bots import BotWorkspace, greedy_action, make_bot_workspace
from busenv.core.jit import inlined, kernel
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, RULES, Phase
from busenv.game.board_specs import GeneratedBoards, arrays_at
from busenv.heuristics.evaluation import WEIGHTS
from busenv.networks.compiled_network import Weights, clear_previous_rows, copy_weights
from busenv.networks.inference import draw_action
from busenv.search.az_search import AzSearchState, AzSettings, make_az_search
from busenv.search.sequential_halving import improved_policy, policy_chances
from busenv.search.tree import Tree, child_of, make_tree, reroot, set_root
from busenv.search.tree_search import begin_search, pass_forced, root_weights, simulate
from busenv.search.uct_search import UctSearchState, UctSettings, make_uct_search
from busenv.train.expert_iteration.samples import SAMPLE, write_decision, write_outcome

if TYPE_CHECKING:  # nodes of a cluster play without pydantic and torch
    from busenv.train.expert_iteration.expert_config import (
        ExpertConfig,
        SearchSettings,
        SelfPlayConfig,
    )

MAX_SAMPLES = 512  # of a game; later decisions are played and do not become samples
EXPLORED = 30  # decisions of a game that are sampled from the improved policy
GAMES_PER_CALL = 4  # of a node of a cluster: some seconds of work
PARTS_PER_THREAD = 4  # small parts keep threads from waiting for the longest games
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


def tree_size(play: SearchPlay) -> tuple[int, int]:
    """Return the numbers of nodes and edges of a tree that is reused between decisions."""
    simulations = max(play.num_simulations, play.fast_simulations, play.bot_simulations)
    nodes = 4 * simulations + 64
    return nodes, 24 * nodes + 512


def make_players(weights: Weights, play: SearchPlay) -> Players:
    """Allocate the players of one thread. weights: of the network that guides the search."""
    actions, settings = weights.sizes[1], AzSettings()
    full = make_az_search(settings._replace(gumbel_scale=1.0), weights)
    return Players(
        full,
        full._replace(settings=settings._replace(gumbel_scale=PLAY_NOISE)),
        make_uct_search(UctSettings(), WEIGHTS, actions),
        tuple(make_tree(*tree_size(play)) for _ in range(3)),  # type: ignore[arg-type]
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


@inlined
def choose_action(tree, search, is_full, explores, policy, sample):
    """Choose the action of a finished search; a full search writes its sample.

    explores: whether the action is sampled from the improved policy. policy: float32,
    (num_actions,), workspace.
    """
    policy[:] = 0.0
    if explores:
        improved_policy(tree, search, policy)
        action = draw_action(policy, tree.rng_state)
    else:
        root_weights(tree, search, policy)
        action = np.int64(policy.argmax())
    if is_full:
        policy[:] = 0.0
        improved_policy(tree, search, policy)
        policy_chances(tree, policy, sample.win_probs)
        write_decision(sample, tree.nodes[0].game, policy)
    return action


@inlined
def _play_game(seed, seat_owner, play, players, board, samples):
    """Play the game in `players.game` to its end; returns the number of samples.

    samples: SAMPLE, (MAX_SAMPLES + 1,). The last one is scratch space for further decisions.
    """
    b, g = board[0], players.game[0]
    tree, spare, _ = players.trees
    tree.rng_state[0] = seed
    count, decisions, has_subtree = 0, 0, False
    has_bots = seat_owner[: np.int64(g.players)].max() != LEARNER
    while g.phase != Phase.OVER:
        owner, sample, is_sample = seat_owner[g.seat], samples[count], True
        if owner != LEARNER:
            is_sample = uniform(tree.rng_state) < play.full_search_share
            sample.game = g
            tree.rng_state[0] += GOLDEN
            action = bot_action(owner, mix(tree.rng_state[0]), play, players, board)
        else:
            if not has_subtree:
                set_root(tree, players.game)
            is_sample = uniform(tree.rng_state) < play.full_search_share
            explores = decisions < EXPLORED
            search = players.full if is_sample else players.fast
            begin_search(tree, search, board)
            simulations = play.num_simulations if is_sample else play.fast_simulations
            simulate(tree, search, board, simulations)
            action = choose_action(tree, search, is_sample, explores, players.policy, sample)
        if is_sample and count < MAX_SAMPLES:
            count += 1
        step(g, b, action)
        pass_forced(g, b, players.full.work.bits)
        decisions += 1
        child = np.int64(-1)
        if not has_bots:
            child = child_of(tree, np.int64(0), action)
        has_subtree = child >= 0
        if has_subtree:
            reroot(tree, child, spare)
            tree, spare = spare, tree
    write_outcome(samples[:count], g)
    return count


@kernel
def _play_games(games, play, players, boards, samples, num_samples):
    """Play games one after the other: samples, (N, MAX_SAMPLES + 1), and their number by game.

    boards: BOARD, the board of all games, (1,), or of each, (N,).
    """
    for i in range(len(games.seeds)):
        clear_previous_rows(players.full.work)  # so that games do not depend on those before
        k = i % boards.shape[0]
        board = boards[k : k + 1]
        new_game(players.game[0], board[0], games.rules[i], games.first_players[i])
        num_samples[i] = _play_game(
            games.seeds[i], games.seat_owner[i], play, players, board, samples[i]
        )


class GameSpecs(NamedTuple):
    """Specifications of N games.

    seeds: uint64, (N,). rules: RULES, (N,). first_players, num_players: int64, (N,), the seat that
    begins and the number of players. seat_owner: int64, (N, 5), the player of each seat.
    board_index: int64, (N,), in the run's set of boards.
    """

    seeds: np.ndarray
    rules: np.ndarray
    first_players: np.ndarray
    num_players: np.ndarray
    seat_owner: np.ndarray
    board_index: np.ndarray

    def part(self, indices: slice) -> GameSpecs:
        """Copy some of the games."""
        return GameSpecs(*(array[indices].copy() for array in self))


class SelfPlayPayload(NamedTuple):
    """Everything that games need besides their specifications."""

    weights: Weights
    search: SearchPlay
    boards: Board | GeneratedBoards


def draw_board_index(
    boards: Board | GeneratedBoards, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw the indices of boards of a set uniformly at random: int64, (count,).

    Zeros, and no random numbers are drawn, with one board.
    """
    if isinstance(boards, Board):
        return np.zeros(count, np.int64)
    return rng.integers(len(boards), size=count)


def draw_games(
    settings: ExpertConfig | SelfPlayConfig,
    count: int,
    rules: Rules,
    boards: Board | GeneratedBoards,
    rng: np.random.Generator,
) -> GameSpecs:
    """Draw games; each has a board, and the numbers of players take turns."""
    num_players = np.resize(settings.players, count).astype(np.int64)
    first_players = rng.integers(0, num_players)
    seat_owner = assign_seats(num_players, settings, rng)
    seed = np.uint64(rng.integers(2**62))
    seeds = np.array([seeded(seed, i) for i in range(count)], np.uint64)
    records = {n: rules.record(n)[0] for n in settings.players}
    game_rules = np.array([records[int(n)] for n in num_players], RULES)
    board_index = draw_board_index(boards, count, rng)
    return GameSpecs(seeds, game_rules, first_players, num_players, seat_owner, board_index)


def run_games(
    games: GameSpecs, payload: SelfPlayPayload, threads: int, on_cluster: bool = False
) -> list[np.ndarray]:
    """Play games on threads, or on the connected cluster: the samples (SAMPLE, (n,)) of each."""
    if on_cluster:
        return _play_on_cluster(games, payload)
    samples: list[np.ndarray] = [np.zeros(0, SAMPLE)] * len(games.seeds)
    parts = min(PARTS_PER_THREAD * threads, len(samples))

    def play_part(part: int) -> None:
        indices = slice(part, None, parts)
        samples[indices] = play_games(games.part(indices), payload)

    pool = ThreadPoolExecutor(threads)
    try:
        list(pool.map(play_part, range(parts)))
    finally:  # without waiting: after Ctrl-C, parts that still play write to an unused list
        pool.shutdown(wait=False, cancel_futures=True)
    return samples


def play_games(games: GameSpecs, payload: SelfPlayPayload) -> list[np.ndarray]:
    """Play games one after the other: the samples (SAMPLE, (n,)) of each."""
    weights, search, boards = payload
    samples = np.zeros((len(games.seeds), MAX_SAMPLES + 1), SAMPLE)
    num_samples = np.zeros(len(games.seeds), np.int64)
    arrays = arrays_at(boards, games.board_index)
    _play_games(games, search, make_players(weights, search), arrays, samples, num_samples)
    samples["board_index"] = games.board_index[:, None]
    return [part[:count].copy() for part, count in zip(samples, num_samples, strict=True)]


def _play_on_cluster(games: GameSpecs, payload: SelfPlayPayload) -> list[np.ndarray]:
    """Play games on the connected cluster, a few per call: the samples (SAMPLE, (n,)) of each."""
    shared = cluster.Shared(payload)
    calls = [
        cluster.call(_play_on_node, shared, games.part(slice(k, k + GAMES_PER_CALL)))
        for k in range(0, len(games.seeds), GAMES_PER_CALL)
    ]
    return [samples for call in calls for samples in cluster.result(call)]


def _play_on_node(shared: cluster.Shared[SelfPlayPayload], games: GameSpecs) -> list[np.ndarray]:
    payload = shared.get()  # Ray's arrays are read-only, kernels take writable ones
    return play_games(
        games.part(slice(None)), payload._replace(weights=copy_weights(payload.weights))
    )


def statistics(samples: list[np.ndarray], games: GameSpecs) -> dict[str, float]:
    """Means over games: samples; of those with samples, the learner's points, and rounds."""
    sizes = np.array([len(part) for part in samples])
    if not sizes.any():
        return {"games/samples": 0.0}
    ends = np.array([part[0] for part in samples if len(part)])
    num_players, seat_owner = games.num_players[sizes > 0], games.seat_owner[sizes > 0]
    is_learner = (seat_owner == LEARNER) & (np.arange(MAX_PLAYERS) < num_players[:, None])
    return {
        "games/points": float(ends["points"][is_learner].mean()),
        "games/samples": float(sizes.mean()),
        "games/rounds": float(ends["rounds"].mean()),
    }
