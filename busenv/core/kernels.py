"""Entry points from Python over one game or many.

Kernels take `games`, an array of GAME records, (N,), and `board`, an array of one BOARD record, and
trust their input. `legal_bytes` and `observe_seats` accept a board for each game, (N,), as well.
Kernels that take `game` work on an array of one record and hold the GIL (`gil_kernel`): two
threads that use one game by mistake cannot write beyond its record.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import GOLDEN, ONE, ZERO, lowest, mix, seeded
from busenv.core.jit import gil_kernel, kernel
from busenv.core.observation_cache import cache_size, update_cache
from busenv.core.observe import observation_size, observe
from busenv.core.relative_types import write_relative
from busenv.core.reward_kernels import write_reward
from busenv.core.rules.legal import is_legal, legal_bits, random_action
from busenv.core.rules.score import rank_of
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, Phase


@kernel
def new_games(games, board, rules, first):
    """Set up games (R1). rules: RULES, (1,). first: int64, (N,), the first players."""
    for i in range(games.shape[0]):
        new_game(games[i], board[0], rules[0], first[i])


@kernel
def expand(bits, mask):
    """Expand a bitset (uint64 words) into bytes (bool or uint8, one per action)."""
    mask[:] = 0
    for word in range(bits.shape[0]):
        rest = bits[word]
        while rest != ZERO:
            mask[np.uint64(64 * word) + lowest(rest)] = 1
            rest &= rest - ONE


@kernel
def legal_bytes(games, board, mask):
    """Write each game's legal actions into a row of `mask` (bool, (N, num_actions))."""
    bits = np.empty((mask.shape[1] + 63) // 64, np.uint64)
    for i in range(games.shape[0]):
        legal_bits(games[i], board[i % board.shape[0]], bits)
        expand(bits, mask[i])


@kernel
def first_illegal(games, board, actions):
    """Index of the first running game whose action is illegal; -1 without one."""
    for i in range(games.shape[0]):
        if games[i].phase != Phase.OVER and not is_legal(games[i], board[0], actions[i]):
            return i
    return -1


@kernel
def step_games(games, board, actions):
    """Take one action in every running game (int64, (N,)), or none if one is illegal.

    Returns the index of the first game whose action is illegal, -1 without one.
    """
    illegal = first_illegal(games, board, actions)
    if illegal < 0:
        for i in range(games.shape[0]):
            if games[i].phase != Phase.OVER:
                step(games[i], board[0], actions[i])
    return illegal


@gil_kernel
def try_step(game, board, action):
    """Take an action in one game if it is legal; return whether it was."""
    if not is_legal(game[0], board[0], action):
        return False
    step(game[0], board[0], action)
    return True


@gil_kernel
def replay(game, board, actions):
    """Take a list of actions (int64) in one game; return the first illegal ply, or -1."""
    for ply in range(actions.shape[0]):
        if not is_legal(game[0], board[0], actions[ply]):
            return ply
        step(game[0], board[0], actions[ply])
    return -1


@kernel
def replay_games(games, board, actions, lengths, positions):
    """Replay finished games, and write the position before each decision.

    games: GAME, (N,), after their setup; they become the final states. actions: int64, (D,), of all
    games in order, lengths[i] (int64) of game i. positions: GAME, (D,).

    Returns the index of the first illegal action, D for a game that is not over at its end, else
    -1. At an illegal action `positions` has its position.
    """
    k = 0
    for i in range(games.shape[0]):
        for _ in range(lengths[i]):
            positions[k] = games[i]
            if not is_legal(games[i], board[0], actions[k]):
                return k
            step(games[i], board[0], actions[k])
            k += 1
        if games[i].phase != Phase.OVER:
            return actions.shape[0]
    return -1


@kernel
def random_games(board, rules, count, seed, deliveries):
    """Play uniformly random games one after another.

    rules: RULES, (1,). count: number of games. deliveries: int64, (5,), by seat, is added to.
    Returns int64, (6,): decisions, rounds, and games by ending (4).
    """
    totals, scratch = np.zeros(6, np.int64), np.zeros(1, GAME)
    for i in range(count):
        g = scratch[0]  # in the loop, because a record does not keep its array alive
        counter = seeded(seed, i)
        new_game(g, board[0], rules[0], np.int64(counter % np.uint64(rules[0].players)))
        while g.phase != Phase.OVER:
            counter += GOLDEN
            step(g, board[0], random_action(g, board[0], mix(counter)))
            totals[0] += 1
        totals[1] += g.round
        totals[2 + g.ending] += 1
        for seat in range(MAX_PLAYERS):
            deliveries[seat] += g.deliveries[seat]
    return totals


@kernel
def random_returns(game, board, kind, seed, returns):
    """Finish one game by uniformly random play, repeatedly, and write the rewards of each playout.

    kind: of `core.reward_kernels`. returns: float64, (playouts, 5), rewards of the whole game.
    """
    scratch = np.zeros(2, GAME)  # the second stays all zeros, as points are at the start of a game
    for i in range(returns.shape[0]):
        scratch[0] = game[0]
        g = scratch[0]
        counter = seeded(seed, i)
        while g.phase != Phase.OVER:
            counter += GOLDEN
            step(g, board[0], random_action(g, board[0], mix(counter)))
        write_reward(kind, scratch[1], g, returns[i])


@kernel
def rankings(games, seats):
    """Return each seat's rank, 0 for the winner (R20): int64, (N, seats)."""
    ranks = np.zeros((games.shape[0], seats), np.int64)
    for i in range(games.shape[0]):
        for seat in range(seats):
            ranks[i, seat] = rank_of(games[i], seat)
    return ranks


@kernel
def observation_length(board):
    """Length of an observation on the board in bytes."""
    return np.int64(observation_size(board[0]))


@kernel
def observe_seats(games, board, seats, rows):
    """Write the observation of a seat of each game (int64, (N,)) into `rows` (uint8, (N, size))."""
    cache, cached = np.zeros(cache_size(board[0]), np.uint8), np.zeros(1, GAME)
    for i in range(games.shape[0]):
        b = board[i % board.shape[0]]
        cached[0].players = 0
        update_cache(games[i], b, cache, rows[i], cached[0])
        observe(games[i], b, cache, seats[i], rows[i], False)


@gil_kernel
def observe_and_mask(game, board, seat, relative_types, row, mask):
    """Write the observation of a seat of one game, and its mask: zeros out of turn.

    relative_types: bool, count building types from the clock (core.relative_types). row: uint8,
    (size,). mask: int8 or bool, (num_actions,).
    """
    seen = game
    if relative_types:
        seen = np.zeros(1, GAME)
        write_relative(game[0], seen)
    observe_seats(seen, board, np.array([seat]), row.reshape((1, row.shape[0])))
    if game[0].phase != Phase.OVER and game[0].seat == seat:
        bits = np.empty((mask.shape[0] + 63) // 64, np.uint64)
        legal_bits(game[0], board[0], bits)
        expand(bits, mask)
    else:
        mask[:] = 0


@kernel
def scale_rows(rows, scale, out):
    """Write observations (uint8, (N, size)) times `scale` (float32, (size,)), at most 1, to `out`.

    out: float32, (N, size).
    """
    for i in range(rows.shape[0]):
        row, scaled = rows[i], out[i]
        for j in range(scale.shape[0]):
            value = np.float32(row[j]) * scale[j]
            scaled[j] = value if value < np.float32(1) else np.float32(1)
