"""Relative building types: counted from the clock, type 0 is the one that it shows, 1 the next.

The rules treat houses, offices and pubs alike: renaming them cyclically and moving the clock with
them changes nothing else. Three positions that differ only by this renaming are the same position
in relative types. The set of legal action ids is the same in both, since any type may be built on
an open site (R14), but ids of buildings name other types.
"""

from __future__ import annotations

import numpy as np

from busenv.core.jit import kernel
from busenv.core.state import FIRST_BUILD


@kernel
def rotate_types(g, steps):
    """Move the types of a game's buildings and its clock on by a number of steps, 0 or more."""
    sites, built = g.type_sites, g.built
    for _ in range(steps % 3):
        sites[0], sites[1], sites[2] = sites[2], sites[0], sites[1]
        built[0], built[1], built[2] = built[2], built[0], built[1]
    g.clock = (g.clock + steps) % 3


@kernel
def write_relative(g, relative):
    """Write a game with types counted from the clock into `relative` (GAME, (1,))."""
    relative[0] = g
    rotate_types(relative[0], 3 - np.int64(g.clock))


@kernel
def write_relative_games(games, relative):
    """Write games (GAME, (N,)) with types counted from their clocks into `relative`."""
    for i in range(games.shape[0]):
        write_relative(games[i], relative[i : i + 1])


@kernel
def _rotate(b, action, steps):
    if FIRST_BUILD <= action < b.first_street:
        kind = (action - FIRST_BUILD) % 3
        return action - kind + (kind + steps) % 3
    return action


@kernel
def relative_action(g, b, action):
    """An action id (int64) whose building, if it names one, is counted from the game's clock."""
    return _rotate(b, action, 3 - np.int64(g.clock))


@kernel
def absolute_action(g, b, action):
    """The inverse of `relative_action`; other numbers than build ids are returned as they are."""
    return _rotate(b, action, np.int64(g.clock))


@kernel
def write_absolute_actions(games, board, actions):
    """Replace the relative action of each game (int64, (N,)) by the absolute one."""
    for i in range(games.shape[0]):
        actions[i] = absolute_action(games[i], board[0], actions[i])


@kernel
def write_relative_actions(games, board, actions):
    """The inverse of `write_absolute_actions`."""
    for i in range(games.shape[0]):
        actions[i] = relative_action(games[i], board[0], actions[i])


@kernel
def write_absolute_policies(games, board, policies, out):
    """Write the columns of policies (float32, (N, num_actions)) by absolute action ids to `out`."""
    for i in range(games.shape[0]):
        for action in range(policies.shape[1]):
            out[i, absolute_action(games[i], board[0], action)] = policies[i, action]
