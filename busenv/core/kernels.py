"""Entry points from Python, over one game (an array of length one) or many; random play.

Every kernel takes `games`, a one-dimensional array of GAME records, and `board`, an array with one
BOARD record, so that a single game and a batch are the same code. They trust their input.

What a `busenv.Game` is played and looked at by keeps the GIL (`exclusive`): two threads that use
one game by mistake never meet within a step, where they could write beyond its record.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import GOLDEN, ONE, ZERO, lowest, mix, seeded
from busenv.core.jit import exclusive, kernel
from busenv.core.observation_cache import paint, scene_size
from busenv.core.observe import observe, size
from busenv.core.reward_kernels import pay
from busenv.core.rules.legal import is_legal, legal_bits, random_action
from busenv.core.rules.score import rank_of
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, OVER


@kernel
def first_players(seed, players, out):
    """Starting player of each game of a batch, drawn from the seed (R1): int64 into `out`."""
    for i in range(out.shape[0]):
        out[i] = np.int64(seeded(seed, i) % np.uint64(players))


@kernel
def new_games(games, board, rules, first):
    """Set up every game; `first` (int64, one a game) holds the starting players."""
    for i in range(games.shape[0]):
        new_game(games[i], board[0], rules[0], first[i])


@kernel
def legal_masks(games, board, bits):
    """Write each game's legal actions into a row of `bits` (uint64, one bit an action)."""
    for i in range(games.shape[0]):
        legal_bits(games[i], board[0], bits[i])


@kernel
def expand(bits, mask):
    """Turn a bitset (uint64 words) into bytes (bool or uint8, one an action)."""
    mask[:] = 0
    for word in range(bits.shape[0]):
        rest = bits[word]
        while rest != ZERO:
            mask[np.uint64(64 * word) + lowest(rest)] = 1
            rest &= rest - ONE


@kernel
def legal_bytes(games, board, bits, mask):
    """Write each game's legal actions into a row of `mask` (bool, one an action).

    `bits` (uint64, shape (words,)) is scratch space.
    """
    for i in range(games.shape[0]):
        legal_bits(games[i], board[0], bits)
        expand(bits, mask[i])


@kernel
def first_illegal(games, board, actions):
    """Index of the first game whose action is illegal; -1 when there is none."""
    for i in range(games.shape[0]):
        if games[i].phase != OVER and not is_legal(games[i], board[0], actions[i]):
            return i
    return -1


@kernel
def step_games(games, board, actions):
    """Apply one action a game; games that are over are passed by.

    All are checked first: if any is illegal, the index of the first such game is returned and
    nothing has changed; -1 says that all were applied.
    """
    wrong = first_illegal(games, board, actions)
    if wrong >= 0:
        return wrong
    for i in range(games.shape[0]):
        if games[i].phase != OVER:
            step(games[i], board[0], actions[i])
    return -1


@exclusive
def replay(game, board, actions):
    """Apply a list of actions to one game; the ply of the first illegal one, or -1 when all fit."""
    for ply in range(actions.shape[0]):
        if not is_legal(game[0], board[0], actions[ply]):
            return ply
        step(game[0], board[0], actions[ply])
    return -1


@kernel
def play_out(games, board, noise):
    """Finish every game by uniformly random legal play; the number of decisions taken.

    `noise` (uint64, one a game) is the state of each game's random stream and is moved on.
    """
    decisions = 0
    for i in range(games.shape[0]):
        g, counter = games[i], noise[i]
        while g.phase != OVER:
            counter += GOLDEN
            step(g, board[0], random_action(g, board[0], mix(counter)))
            decisions += 1
        noise[i] = counter
    return decisions


@kernel
def random_games(board, rules, seed, scratch, sums, deliveries):
    """Play whole random games one after another in one record.

    `sums` (int64): games wanted in [0]; then decisions, rounds, and games by ending (4) are added.
    `deliveries` (int64 by seat) is added to.
    """
    g = scratch[0]
    for i in range(sums[0]):
        counter = seeded(seed, i)
        new_game(g, board[0], rules[0], np.int64(counter % np.uint64(rules[0].players)))
        while g.phase != OVER:
            counter += GOLDEN
            step(g, board[0], random_action(g, board[0], mix(counter)))
            sums[1] += 1
        sums[2] += g.round
        sums[3 + g.ending] += 1
        for seat in range(MAX_PLAYERS):
            deliveries[seat] += g.deliveries[seat]


@kernel
def random_returns(game, board, kind, seed, scratch, returns):
    """Play one game on to its end again and again, and write what it pays in all.

    `kind` is of `busenv.core.reward_kernels`. `scratch`: two GAME records; the second is all zeros, which
    is what a game begins with as far as pay goes. `returns` (float64): a row of 5 for each time.
    """
    g = scratch[0]
    for i in range(returns.shape[0]):
        scratch[0] = game[0]
        counter = seeded(seed, i)
        while g.phase != OVER:
            counter += GOLDEN
            step(g, board[0], random_action(g, board[0], mix(counter)))
        pay(kind, scratch[1], g, returns[i])


@kernel
def rankings(games, places):
    """Write each seat's place (0 is the winner) into rows of `places` (int64, players wide)."""
    for i in range(games.shape[0]):
        for seat in range(places.shape[1]):
            places[i, seat] = rank_of(games[i], seat)


@exclusive
def try_step(game, board, action):
    """Apply an action to one game if it is legal, and the game not over; whether it was."""
    if game[0].phase == OVER or not is_legal(game[0], board[0], action):
        return False
    step(game[0], board[0], action)
    return True


@kernel
def observation_size(board):
    """Length of an observation on the board."""
    return np.int64(size(board[0]))


@kernel
def observe_seats(games, board, seats, rows):
    """Write what one seat of each game sees into rows of bytes (uint8, one row a game)."""
    scene = np.zeros(scene_size(board[0]), np.uint8)
    painted = np.zeros(1, GAME)
    for i in range(games.shape[0]):
        painted[0].players = 0
        paint(games[i], board[0], scene, rows[i], painted[0])
        observe(games[i], board[0], scene, seats[i], rows[i], False)


@kernel
def scale_rows(rows, scale, out):
    """Write observations (uint8, (N, size)) times `scale` (float32, (size,)), at most 1, to `out`.

    `out` is float32, (N, size).
    """
    for i in range(rows.shape[0]):
        row, scaled = rows[i], out[i]
        for j in range(scale.shape[0]):
            value = np.float32(row[j]) * scale[j]
            scaled[j] = value if value < np.float32(1) else np.float32(1)


@exclusive
def observe_one(game, board, seat, row):
    """Write what a seat of one game sees into a row of bytes (uint8)."""
    observe_seats(game, board, np.array([seat]), row.reshape((1, row.shape[0])))


@exclusive
def observe_and_mask(game, board, seat, bits, row, mask):
    """Write what a seat of one game sees, and its mask: zeros when it is not to move."""
    observe_one(game, board, seat, row)
    if game[0].phase != OVER and game[0].seat == seat:
        legal_bits(game[0], board[0], bits)
        expand(bits, mask)
    else:
        mask[:] = 0
