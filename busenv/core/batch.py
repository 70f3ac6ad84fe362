"""A batch of games, one decision of each in a call: step, pay, begin anew, observe, mask."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import GOLDEN, below, exchange, fetch_add, mix, seeded
from busenv.core.bots import GREEDY, greedy_action
from busenv.core.jit import kernel
from busenv.core.kernels import expand
from busenv.core.observe import observe
from busenv.core.rules.legal import legal_bits, random_action
from busenv.core.rules.score import place, points_mark
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.scene import paint, scene_size
from busenv.core.state import MAX_PLAYERS, OVER

# Kinds of reward (busenv.rewards). PAY_NOTHING leaves paying to the caller.
PAY_WIN, PAY_PLACE, PAY_MARGIN, PAY_DELIVERIES, PAY_SHAPED, PAY_NOTHING = range(6)
SHARE = 32  # games that a thread claims at once
PATIENCE = 60_000  # looks for the next step before a helping thread leaves, a fraction of a ms
SHAPING = 0.1  # weight of the margin in the potential of PAY_SHAPED


@kernel
def begin(g, b, rules, stream, episode):
    """Begin a game of a stream; players and first player depend on stream and episode only.

    `rules` holds one RULES record for each number of players that may be drawn, with that number
    in its field `players`.
    """
    draw = mix(stream + GOLDEN * np.uint64(episode))
    chosen = rules[below(draw, rules.shape[0])]
    new_game(g, b, chosen, below(mix(draw), chosen.players))


@kernel
def _pay_end(g, kind, out):
    """Add what the end of a game pays for the places."""
    last = g.players - 1.0
    for seat in range(g.players):
        rank = place(g, seat)
        if kind == PAY_PLACE:
            out[seat] += 1.0 - 2.0 * rank / last
        else:
            out[seat] += 1.0 if rank == 0 else -1.0 / last


@kernel
def _margin(points, seat, players):
    """Points of a seat less the mean of the others'."""
    others = 0.0
    for other in range(players):
        others += points[other]
    return points[seat] - (others - points[seat]) / (players - 1.0)


@kernel
def pay(g, kind, deliveries, stones, out):
    """Write the rewards by seat for what happened since `deliveries` and `stones` (float64)."""
    out[:] = 0.0
    if kind == PAY_NOTHING:
        return
    if kind == PAY_DELIVERIES:
        for seat in range(g.players):
            out[seat] = g.deliveries[seat] - deliveries[seat]
        return
    over = g.phase == OVER
    if over and kind != PAY_MARGIN:
        _pay_end(g, kind, out)
    if kind == PAY_MARGIN or kind == PAY_SHAPED:
        weight = 1.0 if kind == PAY_MARGIN else SHAPING
        for seat in range(g.players):
            stones[seat] = deliveries[seat] - stones[seat]
            deliveries[seat] = np.float64(g.deliveries[seat]) - np.float64(g.stones[seat])
        for seat in range(g.players):
            # The potential of a finished game is 0, or shaping would change what is best.
            after = 0.0 if over and kind == PAY_SHAPED else _margin(deliveries, seat, g.players)
            out[seat] += weight * (after - _margin(stones, seat, g.players))


@kernel
def _run_bots(g, b, bots, scratch, bits, stream, ply):
    """Let bots decide until a seat without one is to; returns the number of their decisions."""
    while g.phase != OVER and bots[g.seat] != 0:
        noise = mix(stream ^ mix(np.uint64(ply) + GOLDEN))
        if bots[g.seat] == GREEDY:
            action = greedy_action(g, b, scratch, bits, noise)
        else:
            action = random_action(g, b, noise)
        step(g, b, action)
        ply += 1
    return ply


@kernel
def _look(g, b, bits, scene, painted, seat, row, mask):
    """Write what a seat sees, and its mask if it is to decide: all ones when the game is over."""
    paint(g, b, scene, painted)
    observe(g, b, scene, seat, row)
    if g.phase == OVER:
        mask[:] = 1
    else:
        legal_bits(g, b, bits)
        expand(bits, mask)


@kernel
def _decide(g, b, action, bots, stream, ply, kind, rewards, bits, scratch, before):
    """Take a decision and the bots' after it, and pay; returns the number of bots' decisions."""
    points = points_mark(g)
    for seat in range(MAX_PLAYERS):
        before[0, seat] = g.deliveries[seat]
        before[1, seat] = g.stones[seat]
    step(g, b, action)
    ply = _run_bots(g, b, bots, scratch, bits, stream, ply)
    if g.phase == OVER or points_mark(g) != points:
        pay(g, kind, before[0], before[1], rewards)
    return ply


@kernel
def begin_all(
    games,
    board,
    rules,
    streams,
    episodes,
    plies,
    bots,
    scenes,
    painted,
    seats,
    rows,
    masks,
    bits,
    scratch,
):
    """Begin every game, let bots decide that are first, and look."""
    for i in range(games.shape[0]):
        begin(games[i], board[0], rules, streams[i], episodes[i])
        plies[i] = _run_bots(games[i], board[0], bots[i], scratch, bits, streams[i], plies[i])
        seats[i] = games[i].seat
        _look(games[i], board[0], bits, scenes[i], painted[i], seats[i], rows[i], masks[i])


@kernel
def advance(
    games,
    board,
    rules,
    streams,
    episodes,
    plies,
    bots,
    scenes,
    painted,
    kind,
    same_step,
    actions,
    seats,
    rewards,
    over,
    rows,
    turn,
    masks,
    last,
    claimed,
    finished,
    thread,
    bits,
    scratch,
    before,
):
    """Take one decision in every game; the actions must be legal.

    Seats with a bot (`bots`, uint8, one row a game, by seat; 0 for none) decide by themselves
    until one without is to. A game that was over begins anew instead (its action is ignored, its
    rewards are 0); with `same_step` it does so at once after its last decision. `rewards` (float32,
    one row a game, by seat) and `over` tell of this decision and those of bots after it, `seats`,
    `rows[turn[0]]` and `masks` of the next one. `last` keeps the final state of each game that
    ended.

    Several threads, numbered from 0, may call this for the same step. Each claims SHARE games after
    another: those of its own part first, which are in its core's cache from the step before, then
    what is left of the others'. `claimed` (int64, a row a thread) counts claims by part, `finished`
    (int64, one) the games done; `bits`, `scratch` (GAME, one) and `before` (float64, 2 by 5) are a
    thread's own room to work in. All that a step is about must be in place before `open_step`: a
    thread that looks for the last games of one step may find the first of the next.
    """
    parts = claimed.shape[0]
    for later in range(parts):
        part = (thread + later) % parts
        first, end = _part(games.shape[0], parts, part)
        begun = first + fetch_add(claimed[part], SHARE)
        while begun < end:
            seen, until = rows[turn[0]], min(begun + SHARE, end)
            for i in range(begun, until):
                g = games[i]
                fresh = g.phase == OVER
                rewards[i, :] = 0.0
                over[i] = False
                if not fresh:
                    plies[i] = _decide(
                        g, board[0], actions[i], bots[i], streams[i], plies[i], kind, rewards[i],
                        bits, scratch, before,
                    )  # fmt: skip
                    over[i] = g.phase == OVER
                    if over[i]:
                        last[i] = g
                if fresh or (over[i] and same_step):
                    episodes[i] += 1
                    begin(g, board[0], rules, streams[i], episodes[i])
                    plies[i] = _run_bots(g, board[0], bots[i], scratch, bits, streams[i], plies[i])
                if g.phase != OVER:  # else who decided last sees the end, not a bot after it
                    seats[i] = g.seat
                _look(g, board[0], bits, scenes[i], painted[i], seats[i], seen[i], masks[i])
            fetch_add(finished, until - begun)
            begun = first + fetch_add(claimed[part], SHARE)


@kernel
def _part(games, parts, part):
    """First game of a thread's part, and the one after its last."""
    return np.int64(games * part // parts), np.int64(games * (part + 1) // parts)


@kernel
def open_step(claimed, finished, turn):
    """Let threads claim the games of a step, which goes into the other of the two buffers."""
    turn[0] = 1 - turn[0]
    exchange(finished, 0)
    for part in range(claimed.shape[0]):
        exchange(claimed[part], 0)


@kernel
def close_step(claimed, finished, games):
    """Let no thread claim any more; what nobody has claimed counts as finished."""
    for part in range(claimed.shape[0]):
        first, end = _part(games, claimed.shape[0], part)
        begun = min(exchange(claimed[part], end - first), end - first)
        fetch_add(finished, end - first - begun)


@kernel
def help_on(shared, own):
    """Help with one step after another, until none has come for a while.

    shared, own: what `advance` takes, `own` from `thread` on. To be woken takes a thread a good
    part of the time of a step, hence the wait. Nobody relies on a helper: the others do all of a
    step that begins as this ends.
    """
    games, claimed, thread = shared[0].shape[0], shared[-2], own[0]
    first, end = _part(games, claimed.shape[0], thread)
    looks = 0
    while looks < PATIENCE:
        looks += 1
        if fetch_add(claimed[thread], 0) < end - first:
            advance(*shared, *own)
            looks = 0


@kernel
def wait_for(finished, number):
    """Wait until so many games are finished, for a while; whether they are."""
    looks = 0
    while looks < PATIENCE and fetch_add(finished, 0) < number:
        looks += 1
    return looks < PATIENCE


@kernel
def streams_of(seed, first, out):
    """Random stream of each game of a batch; game `first + i` of a seed has one of its own."""
    for i in range(out.shape[0]):
        out[i] = seeded(seed, first + i)


@kernel
def scene_length(board):
    """Length of a picture of a game (core.scene)."""
    return np.int64(scene_size(board[0]))


@kernel
def pay_one(game, kind, deliveries, stones, out):
    """`pay` for one game (an array of length one)."""
    pay(game[0], kind, deliveries, stones, out)
