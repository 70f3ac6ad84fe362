"""A batch of games, one decision of each in a call: step, pay, begin anew, observe, mask."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import GOLDEN, below, mix, seeded
from busenv.core.cache import kernel
from busenv.core.layout import MAX_PLAYERS, OVER
from busenv.core.legal import is_legal, legal_bits
from busenv.core.observe import observe
from busenv.core.playout import expand
from busenv.core.scene import paint, scene_size
from busenv.core.score import place
from busenv.core.step import new_game, step

# Kinds of reward (busenv.rewards).
PAY_WIN, PAY_PLACE, PAY_MARGIN, PAY_DELIVERIES = 0, 1, 2, 3


@kernel
def begin(g, b, rules, stream, episode, painted):
    """Begin a game of a stream; players and first player depend on stream and episode only.

    `rules` holds one RULES record for each number of players that may be drawn, with that number
    in its field `players`.
    """
    draw = mix(stream + GOLDEN * np.uint64(episode))
    chosen = rules[below(draw, rules.shape[0])]
    new_game(g, b, chosen, below(mix(draw), chosen.players))
    painted[:] = -1


@kernel
def _pay(g, kind, deliveries, stones, out):
    """Rewards by seat for one decision, given deliveries and stones before it."""
    out[:] = 0.0
    players = g.players
    if kind == PAY_WIN or kind == PAY_PLACE:
        if g.phase == OVER:
            for seat in range(players):
                rank = place(g, seat)
                if kind == PAY_PLACE:
                    out[seat] = 1.0 - 2.0 * rank / (players - 1.0)
                else:
                    out[seat] = 1.0 if rank == 0 else -1.0 / (players - 1.0)
        return
    total = 0.0
    for seat in range(players):
        gain = np.float64(g.deliveries[seat]) - np.float64(deliveries[seat])
        if kind == PAY_MARGIN:
            gain -= np.float64(g.stones[seat]) - np.float64(stones[seat])
        out[seat] = gain
        total += gain
    if kind == PAY_MARGIN:
        for seat in range(players):
            out[seat] -= (total - out[seat]) / (players - 1.0)


@kernel
def _look(g, b, bits, scene, painted, row, mask):
    """Write what the seat to decide sees, and its mask: all ones when the game is over."""
    paint(g, b, scene, painted)
    observe(g, b, scene, g.seat, row)
    if g.phase == OVER:
        mask[:] = 1
    else:
        legal_bits(g, b, bits)
        expand(bits, mask)


@kernel
def begin_all(games, board, rules, streams, episodes, scenes, painted, seats, rows, masks, bits):
    """Begin every game and look at it."""
    for i in range(games.shape[0]):
        begin(games[i], board[0], rules, streams[i], episodes[i], painted[i])
        _look(games[i], board[0], bits, scenes[i], painted[i], rows[i], masks[i])
        seats[i] = games[i].seat


@kernel
def first_illegal(games, board, actions):
    """Index of the first game whose action is illegal; -1 when there is none."""
    for i in range(games.shape[0]):
        if games[i].phase != OVER and not is_legal(games[i], board[0], actions[i]):
            return i
    return -1


@kernel
def advance(
    games,
    board,
    rules,
    streams,
    episodes,
    scenes,
    painted,
    kind,
    same_step,
    actions,
    seats,
    rewards,
    over,
    rows,
    masks,
    last,
    bits,
):
    """Take one decision in every game; the actions must be legal.

    A game that was over begins anew instead (its action is ignored, its rewards are 0); with
    `same_step` it does so at once after its last decision. `rewards` (float32, one row a game, by
    seat) and `over` tell of this decision, `seats`, `rows` and `masks` of the next one. `last`
    keeps the final state of each game that ended.
    """
    deliveries = np.empty(MAX_PLAYERS, np.int64)
    stones = np.empty(MAX_PLAYERS, np.int64)
    for i in range(games.shape[0]):
        g = games[i]
        if g.phase == OVER:
            episodes[i] += 1
            begin(g, board[0], rules, streams[i], episodes[i], painted[i])
            rewards[i, :] = 0.0
            over[i] = False
        else:
            for seat in range(MAX_PLAYERS):
                deliveries[seat] = g.deliveries[seat]
                stones[seat] = g.stones[seat]
            step(g, board[0], actions[i])
            _pay(g, kind, deliveries, stones, rewards[i])
            over[i] = g.phase == OVER
            if over[i]:
                last[i] = g
                if same_step:
                    episodes[i] += 1
                    begin(g, board[0], rules, streams[i], episodes[i], painted[i])
        _look(g, board[0], bits, scenes[i], painted[i], rows[i], masks[i])
        seats[i] = g.seat


@kernel
def streams_of(seed, first, out):
    """Random stream of each game of a batch; game `first + i` of a seed has one of its own."""
    for i in range(out.shape[0]):
        out[i] = seeded(seed, first + i)


@kernel
def scene_length(board):
    """Length of a picture of a game (core.scene)."""
    return np.int64(scene_size(board[0]))
