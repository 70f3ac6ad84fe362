"""Networks on the CPU as functions, in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numba import typeof

from busenv import Board
from busenv.core.bits import uniform
from busenv.core.jit import fast_kernel, gil_kernel, kernel
from busenv.core.state import Phase
from busenv.networks.compiled_layers import softmax
from busenv.networks.compiled_network import (
    Weights,
    clear_previous_rows,
    evaluate,
    forward,
    make_workspace,
    read_weights,
)
from busenv.networks.logits import GAME_OVER

if TYPE_CHECKING:  # weights play without torch
    from busenv.networks.network import Network

Policy = Callable[[np.ndarray, Board, float], np.ndarray]


@fast_kernel
def _policies(games, board, weights, work, temperature, out):
    """Write the probabilities of each game's actions into `out`, zeros before."""
    for i in range(games.shape[0]):
        if games[i].phase == Phase.OVER:
            raise ValueError(GAME_OVER)
        clear_previous_rows(work)  # so that rows do not depend on their neighbours
        num_legal = evaluate(games[i], board[0], weights, work)
        softmax(work.logits, num_legal, temperature)
        for k in range(num_legal):
            out[i, work.actions[k]] = work.logits[k]


@kernel
def draw_action(probabilities, rng_state):
    """Draw an index by probabilities, float32, (n,); never one of probability 0.

    rng_state: uint64, (1,), state of the random stream.
    """
    total, last = 0.0, 0
    for action in range(probabilities.shape[0]):
        total += probabilities[action]
    rest = total * uniform(rng_state)
    for action in range(probabilities.shape[0]):
        if probabilities[action] > 0.0:
            last = action
            rest -= probabilities[action]
            if rest < 0.0:
                break
    return last


@gil_kernel  # short: a thread that releases the GIL would wait longer to get it back
def draw_actions(probabilities, rng_state):
    """Draw an action for each row of probabilities: int64, (N,)."""
    actions = np.zeros(probabilities.shape[0], np.int64)
    for i in range(probabilities.shape[0]):
        actions[i] = draw_action(probabilities[i], rng_state)
    return actions


def make_policy(network: Network | Weights) -> Policy:
    """Return the policy of a network as a function of games, their board, and a temperature.

    It takes games, GAME, (N,), which it does not validate, and a temperature above 0. It returns
    the probability of each action, float32, (N, num_actions), and raises ValueError for a finished
    game and for logits that are not finite. It owns its arrays: one thread at a time may call it.
    """
    weights = network if isinstance(network, Weights) else read_weights(network)
    work = make_workspace(weights)
    call: Callable[..., None] | None = None

    def compiled(games: np.ndarray, board: Board, temperature: float) -> np.ndarray:
        nonlocal call
        out = np.zeros((len(games), board.num_actions), np.float32)
        arguments = (
            np.ascontiguousarray(games), board.array, weights, work, np.float32(temperature), out
        )  # fmt: skip
        if call is None:  # numba would find the types of some fifty arrays again in every call
            call = _policies.compile(tuple(map(typeof, arguments)))
        call(*arguments)
        return out

    return compiled


@fast_kernel
def act_on_rows(rows, masks, index, weights, work, rng_state, actions, log_probs, values):
    """Sample an action in the rows at `index`; write it, its log-probability and the first value.

    rows: uint8, (N, size). masks: bool, (N, num_actions). index: int64, (n,), rows that each have a
    legal action. rng_state: uint64, (1,). actions: int64, log_probs and values: float32, (n,).
    ValueError for logits that are not finite.
    """
    for i in range(index.shape[0]):
        row, mask = rows[index[i]], masks[index[i]]
        for j in range(row.shape[0]):
            work.row[j] = row[j]
        num_legal = 0
        for action in range(mask.shape[0]):
            if mask[action]:
                work.actions[num_legal] = action
                num_legal += 1
        work.has_previous[0] = False  # the row before is another game's
        forward(weights, work, num_legal, 0)
        softmax(work.logits, num_legal, np.float32(1.0))
        drawn = draw_action(work.logits[:num_legal], rng_state)
        actions[i] = work.actions[drawn]
        log_probs[i] = np.log(work.logits[drawn])
        values[i] = work.values[0]
