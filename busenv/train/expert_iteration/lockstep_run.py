"""Runs self-play in lockstep: slots and network on one device."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch

from busenv import Board
from busenv.batch.cuda_batch import bytes_on_device, kernel_array
from busenv.core.cuda_kernels import compiled
from busenv.networks.compiled_mlp import read_weights
from busenv.networks.inputs import Inputs
from busenv.networks.logits import VALUES_NOT_FINITE
from busenv.networks.mlp import Mlp
from busenv.networks.network import Network
from busenv.train.expert_iteration import lockstep
from busenv.train.expert_iteration.expert_selfplay import MAX_SAMPLES, GameSpecs, SearchPlay
from busenv.train.expert_iteration.samples import SAMPLE

CALLS_PER_CHECK = 64  # network calls between checks for finished games and finite outputs
BLOCK = 32  # threads of a CUDA block: one warp, since each thread works on its own


def play_in_lockstep(
    games: GameSpecs,
    network: Network,
    play: SearchPlay,
    board: Board,
    *,
    slots: int,
    device: torch.device,
) -> list[np.ndarray]:
    """Play games without bots on a device; returns the samples of each game, SAMPLE, (n,).

    network: of kind `seats` or `features`. slots: number of games played concurrently. With 96
    simulations, each slot takes 1 MB on the device. The samples of a game take 0.4 MB there, and
    the same again in main memory. On a GPU, the first call takes a few minutes to compile.

    Raises ValueError when the network's outputs are not finite.
    """
    on_device = cast(Mlp, copy.deepcopy(network)).to(device).eval()
    put, zeros = functools.partial(_put, device), functools.partial(_zeros, device)
    inputs = Inputs(network.relative_types, put(network.inputs.eval_weights))
    a = lockstep.make_slots(slots, read_weights(cast(Mlp, network)), inputs, play, zeros)
    states = np.zeros(slots, lockstep.SLOT)
    states["game"] = np.arange(slots)
    a = a._replace(states=put(states))
    count = len(games.seeds)
    samples, num_samples = zeros((count, MAX_SAMPLES + 1), SAMPLE), zeros((count,), np.int64)
    arguments = a, play, GameSpecs(*map(put, games)), put(board.array), samples, num_samples
    advance = _make_advance(device, arguments)
    # Views of the same memory: without `device`, torch would copy arrays of a GPU to the CPU.
    rows, logits, values = (
        torch.as_tensor(one, device=device)
        for one in (a.search.work.row, a.logits, a.search.work.values)
    )
    with torch.no_grad():
        while (_get(a.states)["game"] < count).any():
            for _ in range(CALLS_PER_CHECK):
                advance(*arguments)
                for output, target in zip(on_device(rows), (logits, values), strict=True):
                    target.copy_(output)
            if not (logits.isfinite().all() and values.isfinite().all()):
                raise ValueError(VALUES_NOT_FINITE)
    parts = zip(_get(samples), _get(num_samples), strict=True)
    return [part[:size].copy() for part, size in parts]


def _put(device: torch.device, array: np.ndarray) -> Any:
    """Copy an array to a device, for kernels."""
    return kernel_array(bytes_on_device(array, device), array.dtype, array.shape)


def _zeros(device: torch.device, shape: tuple[int, ...], dtype: Any) -> Any:
    """Allocate an array of zeros on a device, for kernels."""
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    return kernel_array(torch.zeros(size, dtype=torch.uint8, device=device), dtype, shape)


def _get(array: Any) -> np.ndarray:
    """Return an array of kernels as an array on the CPU."""
    return array if isinstance(array, np.ndarray) else array.copy_to_host()


def _make_advance(device: torch.device, arguments: tuple[Any, ...]) -> Callable[..., None]:
    """Return `lockstep.advance_slots` for a device, compiled for the types of the arguments."""
    if device.type == "cpu":
        advance: Callable[..., None] = lockstep.advance_slots
        return advance
    from numba import cuda

    kernel, slots = compiled(lockstep.device_kernel(), arguments), arguments[0].states.shape[0]
    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    with warnings.catch_warnings():  # numba warns of fewer than 128 blocks
        warnings.simplefilter("ignore")
        advance = kernel[(slots + BLOCK - 1) // BLOCK, BLOCK, stream]
    return advance
