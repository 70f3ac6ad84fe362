"""Uniformly random play to the end, as a kernel."""

from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import kernel
from busenv.core.rules.legal import random_action
from busenv.core.rules.step import step
from busenv.core.state import OVER


@kernel
def play_out(games, board, noise):
    """Finish every game; `noise` (uint64, (N,)) holds the counters of their random streams."""
    for i in range(games.shape[0]):
        counter = noise[i]
        while games[i].phase != OVER:
            counter += GOLDEN
            step(games[i], board[0], random_action(games[i], board[0], mix(counter)))
