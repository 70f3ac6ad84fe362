"""Self-play of many games in lockstep: one network call evaluates a position of each game.

A slot plays one game after another. `advance_slot` is the work of one thread: it continues a game's
search up to the next position that the network must evaluate. The kernels run on the CPU as well,
and use no CUDA functions. They play the same games as `expert_selfplay` without bots, except for
rounding in the network.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from busenv.core.bits import uniform
from busenv.core.jit import inlined, kernel
from busenv.core.relative_types import absolute_action, write_relative
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import GAME, Phase
from busenv.heuristics.evaluation import Evaluation
from busenv.networks.compiled_mlp import MlpWeights
from busenv.networks.compiled_network import Workspace, write_inputs
from busenv.networks.evaluation_features import FeatureWorkspace
from busenv.networks.inputs import Inputs
from busenv.search.az_search import (
    AzSearchState,
    AzSettings,
    make_az_search,
    read_evaluation,
    read_result,
)
from busenv.search.sequential_halving import begin_halving, next_candidate, sample_logits
from busenv.search.solver import all_seats
from busenv.search.tree import Tree, child_of, make_tree, reroot, set_root
from busenv.search.tree_search import absorb, descend, pass_forced
from busenv.train.expert_iteration.expert_selfplay import (
    EXPLORED,
    MAX_SAMPLES,
    PLAY_NOISE,
    SearchPlay,
    choose_action,
    tree_size,
)
from busenv.train.expert_iteration.samples import write_outcome

START, DECIDE, EXPAND, SIMULATE = range(4)  # what a slot does next
SLOT = np.dtype(
    [
        ("game", np.int64),  # index of its current game; the number of games or more when finished
        ("stage", np.int64),
        ("tree", np.int64),  # which of its two trees holds the search
        ("has_subtree", np.int64),  # whether that tree holds the position to decide
        ("is_full", np.int64),  # whether the decision gets a full search
        ("decisions", np.int64),
        ("samples", np.int64),
        ("waits", np.int64),  # whether the network must evaluate a position
        ("leaf", np.int64),  # node of that position; -1 when the tree is full
        ("depth", np.int64),
        ("num_legal", np.int64),
    ],
    align=True,
)
FULL = AzSettings(gumbel_scale=1.0)
FAST = AzSettings(gumbel_scale=PLAY_NOISE)
Allocate = Callable[[tuple[int, ...], Any], Any]  # shape and dtype to an array of zeros


class Slots(NamedTuple):
    """Arrays of N slots; the first axis of each is the slot.

    states: SLOT. games: GAME, (N, 1), the game in progress. trees: the slot's two trees, on the
    second axis. search: the slot's search, whose `weights` are the network's `Inputs` without the
    axis of slots; `work.row` is the network's input, `work.values` its values, and `work.layers` a
    placeholder, because PyTorch runs the layers. logits: float32, (N, num_actions), the network's
    logits. policies: float32, (N, num_actions), workspace of decisions.
    """

    states: Any
    games: Any
    trees: Tree
    search: AzSearchState
    logits: Any
    policies: Any


def make_slots(
    count: int, weights: MlpWeights, inputs: Inputs, play: SearchPlay, allocate: Allocate
) -> Slots:
    """Allocate slots. weights: of the network. inputs: its inputs, with arrays for kernels."""

    def stacked(one: Any, *axes: int) -> Any:
        """Allocate an array, or the arrays of a tuple, in the shape of one slot's."""
        if isinstance(one, np.ndarray):
            return allocate((count, *axes, *one.shape), one.dtype)
        return type(one)(*(stacked(part, *axes) for part in one))

    search, policy = make_az_search(FULL, weights), np.zeros(weights.sizes[1], np.float32)
    work = search.work._replace(layers=search.work.bits)
    return Slots(
        states=stacked(np.zeros((), SLOT)),
        games=stacked(np.zeros(1, GAME)),
        trees=stacked(make_tree(*tree_size(play)), 2),
        search=AzSearchState(FULL, inputs, stacked(work), *map(stacked, search[3:])),  # type: ignore[arg-type]
        logits=stacked(policy),
        policies=stacked(policy),
    )


@inlined
def _tree(a, i, k):
    t = a.trees
    return Tree(
        t.nodes[i, k], t.edges[i, k], t.used[i, k], t.path[i, k], t.wins[i, k], t.rng_state[i, k]
    )


@inlined
def _search(a, is_full, i):
    """Return a slot's search state."""
    s, w, f = a.search, a.search.work, a.search.work.features
    e = f.evaluation
    evaluation = Evaluation(e.counts[i], e.features[i], e.values[i], e.win_logits[i], e.chances[i])
    features = FeatureWorkspace(evaluation, f.ahead[i], f.chances[i], f.points[i])
    work = Workspace(
        w.relative[i], w.row[i], w.cache[i], w.cached_game[i], features, w.bits[i],
        w.has_previous[i], w.layers[i], w.actions[i], w.logits[i], w.values[i],
    )  # fmt: skip
    return AzSearchState(
        FULL if is_full else FAST, s.weights, work, s.ahead[i], s.end[i], s.returns[i],
        s.chances[i], s.points[i], s.logits[i], s.scores[i], s.ranking[i], s.progress[i],
    )  # fmt: skip


@inlined
def _begin_simulation(slot, tree, search, b, root_edge):
    """Walk to a leaf, and back up its returns unless the network must evaluate it."""
    leaf, depth = descend(tree, search, b, root_edge)
    g, work, everyone = search.ahead[0], search.work, all_seats(tree.nodes[0].game.players)
    is_proven = leaf >= 0 and tree.nodes[leaf].proven == everyone
    if is_proven or g.phase == Phase.OVER:
        if not is_proven:
            read_result(search)
        absorb(tree, search, leaf, depth)
        return
    slot.waits, slot.leaf, slot.depth = True, leaf, depth
    if search.weights.relative_types:
        write_relative(g, work.relative)
    else:
        work.relative[0] = g
    slot.num_legal = write_inputs(work.relative[0], b, search.weights, work.row, work)


@inlined
def _end_simulation(slot, tree, search, b, logits):
    """Back up the network's outputs for the leaf. logits: float32, (num_actions,)."""
    work, leaf = search.work, np.int64(slot.leaf)
    for k in range(slot.num_legal):
        action = work.actions[k]
        work.logits[k] = logits[action]
        if search.weights.relative_types:
            work.actions[k] = absolute_action(search.ahead[0], b, action)
    read_evaluation(tree, search, leaf, b, slot.num_legal)
    absorb(tree, search, leaf, slot.depth)
    slot.waits = False


@inlined
def _end_decision(a, slot, tree, search, b, samples, i):
    """Take the action that the search chooses, and keep its subtree in the slot's other tree."""
    g, is_full = a.games[i, 0], slot.is_full != 0
    explores, sample = slot.decisions < EXPLORED, samples[slot.samples]
    action = choose_action(tree, search, is_full, explores, a.policies[i], sample)
    slot.samples += is_full and slot.samples < MAX_SAMPLES
    step(g, b, action)
    pass_forced(g, b, a.search.work.bits[i])
    slot.decisions += 1
    child = child_of(tree, np.int64(0), action)
    slot.has_subtree = child >= 0
    if child >= 0:
        slot.tree = 1 - slot.tree
        reroot(tree, child, _tree(a, i, slot.tree))


@kernel
def advance_slot(a, play, games, board, samples, num_samples, i):
    """Consume the network's outputs for slot `i`, then play until it must evaluate a position.

    a: Slots. play: SearchPlay. games: GameSpecs of G games; slot `i` plays games i, i + N,
    i + 2N, ... and then does nothing. board: BOARD, (1,).
    samples: SAMPLE, (G, MAX_SAMPLES + 1), initially zeros; the last column is scratch space.
    num_samples: int64, (G,), written when a game ends.
    """
    slot, b, g = a.states[i], board[0], a.games[i, 0]
    while slot.game < games.seeds.shape[0]:
        k, tree = slot.game, _tree(a, i, slot.tree)
        if slot.stage == START:
            new_game(g, b, games.rules[k], games.first_players[k])
            tree.rng_state[0] = games.seeds[k]
            slot.samples = slot.decisions = slot.has_subtree = 0
            slot.stage = DECIDE
        if slot.stage == DECIDE:
            if not slot.has_subtree:
                set_root(tree, a.games[i])
            slot.is_full = uniform(tree.rng_state) < play.full_search_share
            slot.stage = EXPAND
        search = _search(a, slot.is_full != 0, i)
        simulations = play.num_simulations if slot.is_full else play.fast_simulations
        if slot.waits:
            _end_simulation(slot, tree, search, b, a.logits[i])
        edge = np.int64(-1)
        if slot.stage == EXPAND and tree.nodes[0].edges > 0:
            sample_logits(tree, search)
            begin_halving(tree, search, simulations)
            slot.stage = SIMULATE
        if slot.stage == SIMULATE:
            edge = next_candidate(tree, search, simulations)
            if edge < 0:
                _end_decision(a, slot, tree, search, b, samples[k], i)
                slot.stage = DECIDE
                if g.phase == Phase.OVER:
                    write_outcome(samples[k, : slot.samples], g)
                    num_samples[k] = slot.samples
                    slot.game += a.states.shape[0]
                    slot.stage = START
                continue
        _begin_simulation(slot, tree, search, b, edge)
        if slot.waits:
            return


@kernel
def advance_slots(a, play, games, board, samples, num_samples):
    """Call `advance_slot` for all slots, one after the other."""
    for i in range(a.states.shape[0]):
        advance_slot(a, play, games, board, samples, num_samples, i)


@functools.cache
def device_kernel():
    """Return the CUDA kernel that calls `advance_slot`, one thread per slot, to be compiled."""
    from numba import cuda

    @cuda.jit(lto=False)
    def advance(a, play, games, board, samples, num_samples):
        i = cuda.grid(1)
        if i < a.states.shape[0]:
            advance_slot(a, play, games, board, samples, num_samples, np.int64(i))

    return advance
