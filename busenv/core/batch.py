"""A batch of games, one decision of each in a call: step, pay, begin anew, observe, mask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, below, mix, seeded
from busenv.core.bots import GREEDY, greedy_action
from busenv.core.jit import kernel
from busenv.core.kernels import expand
from busenv.core.observe import observe
from busenv.core.rewards import keep_points, pay
from busenv.core.rules.legal import legal_bits, random_action
from busenv.core.rules.score import points_mark
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.scene import paint, scene_size
from busenv.core.state import OVER


class Arrays(NamedTuple):
    """What a batch of N games is made of; one row a game unless said otherwise.

    games: GAME, (N,). board: BOARD, (1,), of all games.
    rules: RULES, (K,), one for each number of players that may be drawn.
    streams: uint64, (N,), random stream of each game. episodes: int64, (N,), games begun in it.
    plies: int64, (N,), decisions of bots so far. bots: uint8, (N, 5), kind of bot by seat, 0: none.
    scenes: uint8, (N, scene_size), pictures. painted: GAME, (N,), the states that they show.
    kind: of reward (core.rewards). same_step: begin a new game in the step that ends one.
    actions: int64, (N,), of this step. seats: int64, (N,), who decides next.
    rewards: float32, (N, 5), by seat. over: bool, (N,), whether this step ended the game.
    rows: uint8, (2, N, size), observations, in two buffers that take turns.
    turn: int64, (1,), which of them is written to. masks: bool, (N, num_actions).
    finals: GAME, (N,), the final state of the last game that ended in each place.
    """

    games: np.ndarray
    board: np.ndarray
    rules: np.ndarray
    streams: np.ndarray
    episodes: np.ndarray
    plies: np.ndarray
    bots: np.ndarray
    scenes: np.ndarray
    painted: np.ndarray
    kind: int
    same_step: bool
    actions: np.ndarray
    seats: np.ndarray
    rewards: np.ndarray
    over: np.ndarray
    rows: np.ndarray
    turn: np.ndarray
    masks: np.ndarray
    finals: np.ndarray


# Per game, kernels are handed what they need, and arrays are taken out of their tuple once: numba
# hands a tuple on by its content, and counts references each time that an array is taken out.


@kernel
def _begin(g, b, rules, stream, episode):
    """Begin a game; players and first player depend on its stream and episode only."""
    draw = mix(stream + GOLDEN * np.uint64(episode))
    chosen = rules[below(draw, rules.shape[0])]
    new_game(g, b, chosen, below(mix(draw), chosen.players))


@kernel
def _run_bots(g, b, bots, work, stream, ply):
    """Let bots decide until a seat without one is to; returns the number of their decisions."""
    while g.phase != OVER and bots[g.seat] != 0:
        noise = mix(stream ^ mix(np.uint64(ply) + GOLDEN))
        if bots[g.seat] == GREEDY:
            action = greedy_action(g, b, work, noise)
        else:
            action = random_action(g, b, noise)
        step(g, b, action)
        ply += 1
    return ply


@kernel
def _show(g, b, bits, scene, painted, seat, row, mask):
    """Write what a seat sees, and its mask if it is to decide: all ones when the game is over."""
    paint(g, b, scene, painted)
    observe(g, b, scene, seat, row)
    if g.phase == OVER:
        mask[:] = 1
    else:
        legal_bits(g, b, bits)
        expand(bits, mask)


@kernel
def begin_all(a, work):
    """Begin every game, let bots decide that are first, and show it."""
    b, rows = a.board[0], a.rows[a.turn[0]]
    for i in range(a.games.shape[0]):
        g = a.games[i]
        _begin(g, b, a.rules, a.streams[i], a.episodes[i])
        a.plies[i] = _run_bots(g, b, a.bots[i], work, a.streams[i], a.plies[i])
        a.seats[i] = g.seat
        _show(g, b, work.bits, a.scenes[i], a.painted[i], a.seats[i], rows[i], a.masks[i])


@kernel
def step_some(a, work, first, end):
    """Take one decision in the games from `first` to before `end`; the actions must be legal.

    Seats with a bot decide by themselves until one without is to. A game that was over begins anew
    instead: its action is ignored, its rewards are 0.
    """
    games, rules, bots = a.games, a.rules, a.bots
    streams, episodes, plies, actions = a.streams, a.episodes, a.plies, a.actions
    scenes, painted, seats, masks = a.scenes, a.painted, a.seats, a.masks
    rewards, over, finals = a.rewards, a.over, a.finals
    b, rows = a.board[0], a.rows[a.turn[0]]
    bits, before = work.bits, work.before[0]
    for i in range(first, end):
        g = games[i]
        fresh = g.phase == OVER
        rewards[i, :] = 0.0
        over[i] = False
        if not fresh:
            points = points_mark(g)
            keep_points(g, before)
            step(g, b, actions[i])
            plies[i] = _run_bots(g, b, bots[i], work, streams[i], plies[i])
            over[i] = g.phase == OVER
            if over[i] or points_mark(g) != points:
                pay(a.kind, before, g, rewards[i])
            if over[i]:
                finals[i] = g
        if fresh or (over[i] and a.same_step):
            episodes[i] += 1
            _begin(g, b, rules, streams[i], episodes[i])
            plies[i] = _run_bots(g, b, bots[i], work, streams[i], plies[i])
        if g.phase != OVER:  # else who decided last sees the end, not a bot after it
            seats[i] = g.seat
        _show(g, b, bits, scenes[i], painted[i], seats[i], rows[i], masks[i])


@kernel
def streams_of(seed, first, out):
    """Random stream of each game of a batch; game `first + i` of a seed has one of its own."""
    for i in range(out.shape[0]):
        out[i] = seeded(seed, first + i)


@kernel
def scene_length(board):
    """Length of a picture of a game (core.scene)."""
    return np.int64(scene_size(board[0]))
