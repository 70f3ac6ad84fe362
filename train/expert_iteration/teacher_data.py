"""Games of a teacher to begin with: its policy, and how its games end."""

from __future__ import annotations

import numpy as np

from busenv import Board, Rules
from busenv.agents import Agent
from busenv.agents.networks.inference import draw_actions
from busenv.core.jit import kernel
from busenv.core.state import OVER
from busenv.train.expert_iteration.training_rows import ROW, finish_rows, write_row
from busenv.train.selfplay import SelfPlayGames


@kernel
def _write_rows(games, policies, rows):
    for i in range(games.shape[0]):
        write_row(rows[i], games[i], policies[i])


@kernel
def _finish_rows(rows, owners, games):
    for i in range(rows.shape[0]):
        finish_rows(rows[i : i + 1], games[owners[i]], True)


def taught_rows(
    teacher: Agent,
    board: Board,
    rules: str | Rules,
    players: tuple[int, ...],
    games: int,
    kept: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows (ROW) of whole games that a teacher plays against itself, side by side.

    It draws by the probabilities that it gives, which are to be learned. kept: share of decisions
    that become rows. It tells no chances: who wins has all of them.
    """
    counts = np.resize(players, games).astype(np.int64)
    played = SelfPlayGames(board, rules, "win", 1.0, counts, rng.integers(0, counts))
    noise = rng.integers(2**62, size=1, dtype=np.uint64)
    found, owners = [], []
    teacher.reset(int(rng.integers(2**62)))
    while (running := played.running()).size:
        states = played.states[running]
        policies = teacher.action_probabilities(states, board)
        actions = np.zeros(len(running), np.int64)
        draw_actions(policies, noise, actions)
        chosen = np.flatnonzero(rng.random(len(running)) < kept)
        rows = np.zeros(len(chosen), ROW)
        _write_rows(states[chosen], policies[chosen], rows)
        found.append(rows)
        owners.append(running[chosen])
        played.step(running, actions)
    assert (played.states["phase"] == OVER).all()
    rows, owner = np.concatenate(found), np.concatenate(owners)
    _finish_rows(rows, owner, played.states)
    return rows
