"""The first layer of a network on the CPU: rows of bytes, nine in ten of them zeros.

Torch sums the weights of the inputs that are not zero (`embedding_bag`), which takes a quarter of
the time of a dense product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from busenv.core.jit import kernel
from busenv.networks.compiled_layers import list_changes


def byte_layer(
    rows: torch.Tensor, scale: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Return `(rows * scale) @ weight.T + bias`, float32, (N, width).

    rows: uint8, (N, size), on the CPU. scale: float32, (size,), without gradient. weight: float32,
    (width, size), fastest where the weights of an input are contiguous. bias: float32, (width,).
    """
    sums: torch.Tensor = _ByteLayer.apply(rows, scale, weight)
    return sums + bias


class _ByteLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, scale: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        # One place more than the worst case needs; only memory that is written is allocated.
        places = rows.numel() + 1
        inputs, values = np.empty(places, np.int32), np.empty(places, np.float32)
        starts = np.empty(len(rows) + 1, np.int32)
        count = _list_nonzero(rows.contiguous().numpy(), scale.numpy(), inputs, values, starts)
        inputs, values = inputs[:count], values[:count]
        ctx.nonzero = inputs, values, starts, weight.shape[1]
        return _weighted_sums(inputs, values, starts, weight.T)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, None, torch.Tensor]:
        inputs, values, starts, size = ctx.nonzero
        transposed = np.empty_like(inputs), np.empty_like(values), np.zeros(size + 1, np.int32)
        _transpose(inputs, values, starts, *transposed)
        return None, None, _weighted_sums(*transposed, gradients[0]).T


def _weighted_sums(
    index: np.ndarray, values: np.ndarray, starts: np.ndarray, vectors: torch.Tensor
) -> torch.Tensor:
    """Return for each i the sum of `values[k] * vectors[index[k]]`, k from `starts[i]` on."""
    return embedding_bag(
        torch.from_numpy(index),
        vectors,
        torch.from_numpy(starts[:-1]),
        mode="sum",
        per_sample_weights=torch.from_numpy(values),
    )


@kernel
def _list_nonzero(rows, scale, inputs, values, starts):
    """List the inputs that are not zero, row by row, and return their number.

    One element of `inputs` after the last may be overwritten.
    """
    count, zeros = 0, np.zeros(rows.shape[1], np.uint8)
    for i in range(rows.shape[0]):
        starts[i] = count
        count += list_changes(rows[i], zeros, scale, inputs[count:], values[count:])
    starts[rows.shape[0]] = count
    return count


@kernel
def _transpose(inputs, values, starts, rows, values_by_input, starts_by_input):
    """List the rows of each input from the inputs of each row; `starts_by_input` holds zeros."""
    for k in range(inputs.shape[0]):
        starts_by_input[inputs[k] + 1] += 1
    for j in range(1, starts_by_input.shape[0]):
        starts_by_input[j] += starts_by_input[j - 1]
    following = starts_by_input.copy()
    for i in range(starts.shape[0] - 1):
        for k in range(starts[i], starts[i + 1]):
            place = following[inputs[k]]
            rows[place], values_by_input[place] = i, values[k]
            following[inputs[k]] = place + 1
