"""The policy of a network on the CPU for rows of observations, in compiled code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from busenv.core.jit import fast_kernel
from busenv.networks.compiled_layers import softmax
from busenv.networks.compiled_network import forward, make_workspace, read_weights
from busenv.networks.inference import draw_action
from busenv.networks.network import Network

RowPolicy = Callable[
    [np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]
]


@fast_kernel
def _act(rows, masks, index, weights, work, rng_state, actions, log_probs, values):
    """Sample an action in the rows at `index`; write it, its log-probability and the value."""
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


def make_row_policy(network: Network, seed: int) -> RowPolicy:
    """Return a function that samples from a network's policy at temperature 1.

    It takes observations, uint8, (N, size), masks, bool, (N, num_actions), and the rows to decide,
    int64, (n,), each with a legal action. It returns actions, int64, (n,), their log-probabilities
    and the first values, both float32, (n,), and raises ValueError for logits that are not finite.
    It follows changes of the weights in place, and releases the GIL. It owns its arrays: one thread
    at a time may call it.
    """
    weights = read_weights(network)
    work, rng_state = make_workspace(weights), np.array([seed], np.uint64)

    def act(
        rows: np.ndarray, masks: np.ndarray, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        count = len(index)
        drawn = np.empty(count, np.int64), np.empty(count, np.float32), np.empty(count, np.float32)
        _act(rows, masks, index, weights, work, rng_state, *drawn)
        return drawn

    return act
