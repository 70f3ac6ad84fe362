"""Kernels that step and reset the games of a batch on a GPU, one thread per game.

`step_game` and `reset_game` are the work of one thread. They call the kernels of
`core.batch_kernels`, run on the CPU as well, and use no CUDA functions. `device_kernels` wraps them
in CUDA kernels; only this function imports numba-cuda.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from busenv.core.batch_kernels import SAME_STEP, move_range, observe_range, reward_range, start_game
from busenv.core.bits import copy_bytes, seeded
from busenv.core.bots import BotWorkspace
from busenv.core.jit import kernel
from busenv.core.relative_types import absolute_action

BLOCK = 64  # threads of a CUDA block: small blocks spread some thousand games over all processors


class GameWorkspaces(NamedTuple):
    """Arrays in which the thread of each game works, and the ends of games under SAME_STEP.

    bits: uint64, (N, words). ids: int64, (N, num_actions). ahead: GAME, (N,). These are one
        `core.bots.BotWorkspace` per game.
    final_observations: uint8, (N, size), and final_masks: bool, (N, num_actions), of the last game
        that ended at each index. In other modes than SAME_STEP they have one row, which is unused.
    """

    bits: np.ndarray
    ids: np.ndarray
    ahead: np.ndarray
    final_observations: np.ndarray
    final_masks: np.ndarray


@kernel
def _workspace(spaces, i):
    return BotWorkspace(spaces.bits[i], spaces.ids[i], spaces.ahead[i : i + 1])


@kernel
def _swap_final(a, work, i):
    """Exchange the game at index `i` and its board for the last game that ended there, or back."""
    work.ahead[0] = a.games[i]
    a.games[i] = a.final_games[i]
    a.final_games[i] = work.ahead[0]
    a.board_index[i], a.final_board_index[i] = a.final_board_index[i], a.board_index[i]


@kernel
def step_game(a, spaces, i):
    """Take one decision in game `i`, as a step of `busenv.Batch` does in all games.

    With relative types `a.actions` holds relative actions, which are replaced by absolute ones.
    Under SAME_STEP, a game that ends is observed before the next one, in the same row.
    """
    work = _workspace(spaces, i)
    if a.relative_types:
        board = a.boards[a.board_index[i]]
        a.actions[i] = absolute_action(a.games[i], board, a.actions[i])
    move_range(a, work, i, i + 1)
    reward_range(a, work, i, i + 1)
    ends = a.autoreset == SAME_STEP and a.terminations[i]
    if ends:
        _swap_final(a, work, i)
    for observation in range(2 if ends else 1):  # a loop, so that the code is compiled once
        observe_range(a, work, i, i + 1)
        if ends and observation == 0:
            row, mask = spaces.final_observations[i], spaces.final_masks[i]
            copy_bytes(row, 0, a.observations[i], 0, row.shape[0])
            for action in range(mask.shape[0]):
                mask[action] = a.masks[i, action]
            _swap_final(a, work, i)


@kernel
def reset_game(a, spaces, selected, reseeds, seed, i):
    """Start game `i` if `selected[i]`, from a seed (uint64) or as its stream continues."""
    work = _workspace(spaces, i)
    if selected[i]:
        if reseeds:
            a.streams[i] = seeded(seed, i)
            a.episodes[i] = a.words_drawn[i] = 0
        else:
            a.episodes[i] += 1
        start_game(a, work, i)
    observe_range(a, work, i, i + 1)
    if selected[i]:
        a.acting_seats[i] = a.seats[i]


@functools.cache
def device_kernels():
    """Return the CUDA kernels (step, reset), to be compiled by `compiled`.

    step: arguments Arrays, GameWorkspaces. reset: the arguments of `reset_game` without the index.
    """
    from numba import cuda

    @cuda.jit(lto=False)
    def step(a, spaces):
        i = cuda.grid(1)
        if i < a.games.shape[0]:
            step_game(a, spaces, np.int64(i))

    @cuda.jit(lto=False)
    def reset(a, spaces, selected, reseeds, seed):
        i = cuda.grid(1)
        if i < a.games.shape[0]:
            reset_game(a, spaces, selected, reseeds, seed, np.int64(i))

    return step, reset


@contextlib.contextmanager
def exact_floats() -> Iterator[None]:
    """Compile CUDA kernels without fused multiply-add, as the CPU's kernels are compiled.

    A fused operation rounds once instead of twice: rewards and the values of `greedy` would differ
    in their last bit. `cuda.jit` has no option for it, and NVVM fuses by default. With link-time
    optimisation (lto) the option would not reach the compiler.
    """
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = functools.partial(compile_ir, fma=False)
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir


def compiled(device_kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """Compile a CUDA kernel for its arguments; later launches never compile."""
    with exact_floats():
        return device_kernel.specialize(*arguments)
