"""Several threads share the work of a step: they claim games, few at a time.

`claimed` (int64, a row a thread) counts what is claimed of each thread's part of the games,
`finished` (int64, first number) the games done; both are changed by atomic operations only.
"""

from __future__ import annotations

import numpy as np

from busenv.core.batch_kernels import CHECK, first_wrong, step_some
from busenv.core.bits import exchange, fetch_add
from busenv.core.jit import kernel

SHARE = 64  # games that a thread claims at once
LATE = -2  # a helping thread is not done with its part
PATIENCE = 60_000  # looks for the next step before a helping thread leaves, a fraction of a ms


@kernel
def _part(games, parts, part):
    """First game of a thread's part, and the one after its last."""
    return np.int64(games * part // parts), np.int64(games * (part + 1) // parts)


@kernel
def open_step(claimed, finished, stages, chosen):
    """Let threads claim the games of a step, or of some stages of it (core.batch_kernels).

    All that the step is about must be in place before: a thread that looks for the last games of
    one step may find the first ones of the next.
    """
    stages[0] = chosen
    exchange(finished, 0)
    for part in range(claimed.shape[0]):
        exchange(claimed[part], 0)


@kernel
def advance(arrays, claimed, finished, work, thread):
    """Claim games and take one decision in each until all are claimed.

    A thread, numbered from 0, first takes games of its own part, which are in its core's cache
    from the step before, then what is left of the others'.
    """
    parts = claimed.shape[0]
    for later in range(parts):
        part = (thread + later) % parts
        first, end = _part(arrays.games.shape[0], parts, part)
        begun = first + fetch_add(claimed[part], SHARE)
        while begun < end:
            until = min(begun + SHARE, end)
            step_some(arrays, work, begun, until)
            fetch_add(finished, until - begun)
            begun = first + fetch_add(claimed[part], SHARE)


@kernel
def close_step(claimed, finished, games):
    """Let no thread claim any more; what nobody has claimed counts as finished."""
    for part in range(claimed.shape[0]):
        first, end = _part(games, claimed.shape[0], part)
        begun = min(exchange(claimed[part], end - first), end - first)
        fetch_add(finished, end - first - begun)


@kernel
def help_on(arrays, claimed, finished, work, thread):
    """Help with one step after another, until none has come for a while.

    To be woken takes a thread a good part of the time of a step, hence the wait. Nobody relies on
    a helper: the others do all of a step that begins as this ends.
    """
    first, end = _part(arrays.games.shape[0], claimed.shape[0], thread)
    looks = 0
    while looks < PATIENCE:
        looks += 1
        if fetch_add(claimed[thread], 0) < end - first:
            advance(arrays, claimed, finished, work, thread)
            looks = 0


@kernel
def wait_for(finished, number):
    """Wait until so many games are finished, for a while; whether they are."""
    looks = 0
    while looks < PATIENCE and fetch_add(finished, 0) < number:
        looks += 1
    return looks < PATIENCE


@kernel
def advance_checked(arrays, claimed, finished, work, chosen):
    """Check the actions of all games, and then advance some stages of a step unless one is illegal:
    the first such game, -1, or LATE, nothing changed. One call, since a call with so many arrays
    takes a hundredth of a step."""
    open_step(claimed, finished, arrays.stages, CHECK)
    advance(arrays, claimed, finished, work, 0)
    if not wait_for(finished, arrays.games.shape[0]):
        return LATE
    wrong = first_wrong(arrays)
    if wrong < 0:
        open_step(claimed, finished, arrays.stages, chosen)
        advance(arrays, claimed, finished, work, 0)
    return wrong
