"""Layers in compiled code, for one position at a time.

Libraries multiply matrices of many rows; a search has one row, whose inputs are mostly zeros. A
layer here adds up the weights of inputs that are not zero, UNROLL inputs at a time along all
outputs.
"""

from __future__ import annotations

import math

import numpy as np

from busenv.core.bits import load_word
from busenv.core.jit import fast_kernel
from busenv.networks.logits import LOGITS_NOT_FINITE

UNROLL = 8  # inputs added up per loop


@fast_kernel
def list_changes(row, before, scale, index, value):
    """List the indices at which two rows of bytes differ, and the differences times `scale`.

    Returns their number. One element of `index` after the last may be overwritten.
    """
    count, size = 0, row.shape[0]
    for first in range(0, size - UNROLL + 1, UNROLL):
        if load_word(row, first) != load_word(before, first):
            for k in range(first, first + UNROLL):  # without a branch
                index[count] = k
                count += row[k] != before[k]
    for k in range(size - size % UNROLL, size):
        index[count] = k
        count += row[k] != before[k]
    for k in range(count):
        at = index[k]
        value[k] = (np.float32(row[at]) - np.float32(before[at])) * scale[at]
    return count


@fast_kernel
def list_positive(inputs, index, value):
    """List the inputs above zero and their indices; return how many."""
    count = 0
    for k in range(inputs.shape[0]):
        index[count] = k
        value[count] = inputs[k]
        count += inputs[k] > np.float32(0.0)
    return count


@fast_kernel
def add_rows(count, index, value, matrix, out):
    """Add the rows of a matrix at `index`, each times its `value`, to `out`."""
    width = matrix.shape[1]
    whole = count - count % UNROLL
    for k in range(0, whole, UNROLL):
        i0, i1, i2, i3 = index[k], index[k + 1], index[k + 2], index[k + 3]
        i4, i5, i6, i7 = index[k + 4], index[k + 5], index[k + 6], index[k + 7]
        v0, v1, v2, v3 = value[k], value[k + 1], value[k + 2], value[k + 3]
        v4, v5, v6, v7 = value[k + 4], value[k + 5], value[k + 6], value[k + 7]
        for j in range(width):
            low = v0 * matrix[i0, j] + v1 * matrix[i1, j] + v2 * matrix[i2, j] + v3 * matrix[i3, j]
            high = v4 * matrix[i4, j] + v5 * matrix[i5, j] + v6 * matrix[i6, j] + v7 * matrix[i7, j]
            out[j] += low + high
    for k in range(whole, count):
        i0, v0 = index[k], value[k]
        for j in range(width):
            out[j] += v0 * matrix[i0, j]


@fast_kernel
def relu(out, width):
    """Replace negative values by 0 in the first `width` of `out`."""
    for j in range(width):
        out[j] = max(out[j], np.float32(0.0))


@fast_kernel
def softmax(logits, count, temperature):
    """Turn the first `count` logits into probabilities; ValueError unless they are finite."""
    best, total = logits[0], np.float32(0.0)
    for k in range(count):
        best = max(best, logits[k])
    for k in range(count):
        if not math.isfinite(logits[k]):
            raise ValueError(LOGITS_NOT_FINITE)
        logits[k] = math.exp((logits[k] - best) / temperature)
        total += logits[k]
    for k in range(count):
        logits[k] /= total
