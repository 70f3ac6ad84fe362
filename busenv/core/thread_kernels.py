"""Kernels by which several threads share a step of a batch: each claims a few games at a time.

claimed: int64, one row per thread, counts the games claimed of each thread's part. finished: int64,
counts the finished games in its first entry. Both are changed by atomic operations only.
"""

from __future__ import annotations

import numpy as np

from busenv.core.batch_kernels import CHECK, first_illegal_action, step_range
from busenv.core.bits import exchange, fetch_add
from busenv.core.jit import kernel

CHUNK = 64  # games that a thread claims at once
LATE = -2  # another thread has not finished its games
SPINS = 60_000  # polls before a waiting thread gives up, a fraction of a millisecond


@kernel
def _part(games, parts, part):
    """First game of a thread's part of the games, and the one after its last."""
    return np.int64(games * part // parts), np.int64(games * (part + 1) // parts)


@kernel
def open_step(claimed, finished, open_stages, stages):
    """Open some stages of a step (core.batch_kernels) for all threads.

    The actions must be written before: a thread that looks for the last games of one step may
    claim the first games of the next.
    """
    open_stages[0] = stages
    exchange(finished, 0)
    for part in range(claimed.shape[0]):
        exchange(claimed[part], 0)


@kernel
def advance(arrays, claimed, finished, work, thread):
    """Claim games and take the open stages in them until all are claimed.

    thread: number of the calling thread, from 0. It claims games of its own part first, which are
    in its core's cache since the last step, then those of the other parts.
    """
    parts = claimed.shape[0]
    for later in range(parts):
        part = (thread + later) % parts
        first, end = _part(arrays.games.shape[0], parts, part)
        start = first + fetch_add(claimed[part], CHUNK)
        while start < end:
            until = min(start + CHUNK, end)
            step_range(arrays, work, start, until)
            fetch_add(finished, until - start)
            start = first + fetch_add(claimed[part], CHUNK)


@kernel
def close_step(claimed, finished, games):
    """Stop threads from claiming games; unclaimed games count as finished."""
    for part in range(claimed.shape[0]):
        first, end = _part(games, claimed.shape[0], part)
        done = min(exchange(claimed[part], end - first), end - first)
        fetch_add(finished, end - first - done)


@kernel
def help_steps(arrays, claimed, finished, work, thread):
    """Help with steps until none has been opened for SPINS polls.

    Polling avoids waking a thread for each step, which takes a good part of a step's time. No step
    depends on a helper: the other threads take all games that it does not claim.
    """
    first, end = _part(arrays.games.shape[0], claimed.shape[0], thread)
    polls = 0
    while polls < SPINS:
        polls += 1
        if fetch_add(claimed[thread], 0) < end - first:
            advance(arrays, claimed, finished, work, thread)
            polls = 0


@kernel
def wait_for(finished, number):
    """Wait at most SPINS polls until a number of games is finished; return whether it is."""
    polls = 0
    while polls < SPINS and fetch_add(finished, 0) < number:
        polls += 1
    return polls < SPINS


@kernel
def advance_checked(arrays, claimed, finished, work, stages):
    """Check the actions of all games, and take some stages of a step if all are legal.

    Returns the first game with an illegal action, -1 without one, or LATE; in the first and last
    case nothing has changed. One call, because passing the arrays takes a hundredth of a step.
    """
    open_step(claimed, finished, arrays.stages, CHECK)
    advance(arrays, claimed, finished, work, np.int64(0))
    if not wait_for(finished, arrays.games.shape[0]):
        return LATE
    illegal = first_illegal_action(arrays)
    if illegal < 0:
        open_step(claimed, finished, arrays.stages, stages)
        advance(arrays, claimed, finished, work, np.int64(0))
    return illegal
