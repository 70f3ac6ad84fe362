"""Uniformly random play to the end, as a kernel."""

from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import kernel
from busenv.core.rules.legal import random_action
from busenv.core.rules.step import step
from busenv.core.state import Phase


@kernel
def play_out(games, board, rng_states):
    """Finish every game; `rng_states` (uint64, (N,)) holds the states of their random streams."""
    for i in range(games.shape[0]):
        counter = rng_states[i]
        while games[i].phase != Phase.OVER:
            counter += GOLDEN
            step(games[i], board[0], random_action(games[i], board[0], mix(counter)))
