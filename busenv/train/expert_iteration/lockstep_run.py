"""Runs self-play in lockstep: the network on a device of torch, and slots on the same device."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from busenv import Board
from busenv.batch.cuda_batch import kernel_array
from busenv.core.cuda_kernels import BLOCK, compiled
from busenv.networks.inputs import Inputs
from busenv.networks.logits import VALUES_NOT_FINITE
from busenv.networks.network import Network
from busenv.train.expert_iteration import lockstep
from busenv.train.expert_iteration.expert_selfplay import MAX_SAMPLES, GameSpecs, SearchPlay
from busenv.train.expert_iteration.samples import SAMPLE

CALLS_PER_CHECK = 64  # network calls between two checks whether games are unfinished


def play_in_lockstep(
    games: GameSpecs,
    network: Network,
    play: SearchPlay,
    board: Board,
    *,
    slots: int,
    device: torch.device,
) -> list[np.ndarray]:
    """Play games of the search alone on a device: the samples, SAMPLE, (n,), of each.

    network: of kind `seats` or `features`. slots: games at a time.

    Raises ValueError when the network's outputs are not finite.
    """
    network = copy.deepcopy(network).to(device).eval()
    put = functools.partial(_put, device)
    row_size, nodes = network.scale.numel(), 4 * max(play[:2]) + 64
    a = lockstep.make_slots(slots, board, row_size, nodes, lambda *spec: put(np.zeros(*spec)))
    states = np.zeros(slots, lockstep.SLOT)
    states["game"] = np.arange(slots)
    a = a._replace(states=put(states))
    samples = put(np.zeros((len(games.seeds), MAX_SAMPLES + 1), SAMPLE))
    num_samples = put(np.zeros(len(games.seeds), np.int64))
    inputs = Inputs(network.relative_types, put(network.inputs.eval_weights))
    arguments = (
        a, inputs, play, GameSpecs(*map(put, games)), put(board.array), samples, num_samples
    )  # fmt: skip
    advance = _make_advance(device, slots, arguments)
    rows, logits, values = (torch.as_tensor(one, device=device) for one in (a.rows, a.logits, a.values))
    while (_get(a.states)["game"] < len(games.seeds)).any():
        for _ in range(CALLS_PER_CHECK):
            advance(*arguments)
            with torch.no_grad():
                outputs = network(rows)
            logits.copy_(outputs[0])
            values.copy_(outputs[1])
        if not (logits.isfinite().all() and values.isfinite().all()):
            raise ValueError(VALUES_NOT_FINITE)
    parts = zip(_get(samples), _get(num_samples), strict=True)
    return [part[:count].copy() for part, count in parts]


def _put(device: torch.device, array: np.ndarray) -> Any:
    """Copy an array to the device of kernels."""
    if device.type == "cpu":
        return np.array(array)
    content = torch.from_numpy(np.array(array, order="C").reshape(-1).view(np.uint8))
    return kernel_array(content.to(device), array.dtype, array.shape)


def _get(array: Any) -> np.ndarray:
    """Return the content of an array of kernels as an array on the CPU."""
    return array if isinstance(array, np.ndarray) else array.copy_to_host()


def _make_advance(
    device: torch.device, slots: int, arguments: tuple[Any, ...]
) -> Callable[..., None]:
    """Return `lockstep.advance_slots` for a device, compiled for types of arguments."""
    if device.type == "cpu":
        return lockstep.advance_slots
    from numba import cuda

    kernel = compiled(device_kernel(), arguments)
    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    advance: Callable[..., None] = kernel[(slots + BLOCK - 1) // BLOCK, BLOCK, stream]
    return advance


@functools.cache
def device_kernel() -> Any:
    """Return the CUDA kernel that advances all slots, to be compiled."""
    from numba import cuda

    @cuda.jit(lto=False)
    def advance(a, inputs, play, games, board, samples, num_samples):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < a.states.shape[0]:
            lockstep.advance_slot(a, inputs, play, games, board, samples, num_samples, np.int64(i))

    return advance
