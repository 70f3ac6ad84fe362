"""A batch of games, one decision of each in a call: step, pay, begin anew, observe, mask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, below, mix, seeded
from busenv.core.bots import GREEDY, RANDOM, greedy_action
from busenv.core.jit import kernel
from busenv.core.kernels import expand
from busenv.core.observation_cache import paint, scene_size
from busenv.core.observe import observe
from busenv.core.reward_kernels import pay
from busenv.core.rules.legal import is_legal, legal_bits, random_action
from busenv.core.rules.score import points_mark
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import OVER

# What an illegal action does (raising is up to the caller, who looks before the step), and when a
# game that has ended begins anew.
RAISE, LOSE, REPLACE = 0, 1, 2
NEXT_STEP, SAME_STEP, DISABLED = 0, 1, 2

# Stages of a step. All in one go is fastest; agents that are not compiled decide in between. To
# check is no part of it: it comes before, where an illegal action is to change nothing.
MOVE, SETTLE, SHOW, ALL, CHECK = 1, 2, 4, 7, 8

NOBODY = -1  # sees a picture
FIRST_AGENT = 3  # kinds of players from here on are agents that are not compiled
DRAWN = -1  # the learner's seat: another one each episode


class Arrays(NamedTuple):
    """What a batch of N games is made of; one row a game unless said otherwise.

    games: GAME, (N,). board: BOARD, (1,), of all games.
    rules: RULES, (K,), one for each number of players that may be drawn.
    streams: uint64, (N,), random stream of each game. episodes: int64, (N,), games begun in it.
    plies: int64, (N,), random words taken so far. ended: bool, (N,), whether the game has ended and
        none has begun in its place.
    kinds: uint8, (5,), who plays, clockwise from the learner: 0 decides by `actions`, else a kind
        of bot (core.bots) or FIRST_AGENT and more. learners: int64, (N,), the learner's seat.
    learner_seat: the same for all games, or DRAWN.
    scenes: uint8, (N, scene_size), pictures. painted: GAME, (N,), the states that they show.
    reward: kind of reward (core.reward_kernels). illegal: RAISE, LOSE or REPLACE. autoreset: NEXT_STEP,
        SAME_STEP or DISABLED. stages: int64, (1,), what the step that is open is to do.
    actions: int64, (N,), of this step. acted: int64, (N,), who decided in it.
    seats: int64, (N,), who decides next. rewards: float32, (N, 5), by seat. paid: float64, (N,),
        that of who decided.
    over: bool, (N,), whether this step ended the game. wrong: bool, (N,), whether its action was
        illegal. rows: uint8, (N, size), observations. viewers: int64, (N,), to whom they are
        turned, or NOBODY. masks: bool, (N, num_actions).
    finals: GAME, (N,), the final state of the last game that ended in each place.
    """

    games: np.ndarray
    board: np.ndarray
    rules: np.ndarray
    streams: np.ndarray
    episodes: np.ndarray
    plies: np.ndarray
    ended: np.ndarray
    kinds: np.ndarray
    learners: np.ndarray
    learner_seat: int
    scenes: np.ndarray
    painted: np.ndarray
    reward: int
    illegal: int
    autoreset: int
    stages: np.ndarray
    actions: np.ndarray
    acted: np.ndarray
    seats: np.ndarray
    rewards: np.ndarray
    paid: np.ndarray
    over: np.ndarray
    wrong: np.ndarray
    rows: np.ndarray
    viewers: np.ndarray
    masks: np.ndarray
    finals: np.ndarray


# Per game, kernels are handed what they need, and arrays are taken out of their tuple once: numba
# hands a tuple on by its content, and counts references each time that an array is taken out.


@kernel
def _begin(g, b, rules, stream, episode, learner_seat):
    """Begin a game; returns the learner's seat.

    Players, first player and a drawn seat depend on the game's stream and episode only.
    """
    draw = mix(stream + GOLDEN * np.uint64(episode))
    chosen = rules[below(draw, rules.shape[0])]
    draw = mix(draw)
    new_game(g, b, chosen, below(draw, chosen.players))
    return below(mix(draw), chosen.players) if learner_seat == DRAWN else np.int64(learner_seat)


@kernel
def _kind(g, kinds, learner):
    """Who plays the seat that is to decide."""
    place = np.int64(g.seat) - learner
    return kinds[place if place >= 0 else place + np.int64(g.players)]


@kernel
def _noise(stream, ply):
    """A random word of a game's own."""
    return mix(stream ^ mix(np.uint64(ply) + GOLDEN))


@kernel
def _run_bots(g, b, kinds, learner, work, stream, ply):
    """Let compiled bots decide until somebody else is to; returns the random words taken so far."""
    while g.phase != OVER:
        kind = _kind(g, kinds, learner)
        if kind == GREEDY:
            action = greedy_action(g, b, work, _noise(stream, ply))
        elif kind == RANDOM:
            action = random_action(g, b, _noise(stream, ply))
        else:
            break
        step(g, b, action)
        ply += 1
    return ply


@kernel
def begin_some(a, work, chosen):
    """Begin the games that are chosen (bool, (N,)) and let bots decide that are first."""
    b = a.board[0]
    for i in range(a.games.shape[0]):
        if chosen[i]:
            g = a.games[i]
            a.learners[i] = _begin(g, b, a.rules, a.streams[i], a.episodes[i], a.learner_seat)
            a.plies[i] = _run_bots(g, b, a.kinds, a.learners[i], work, a.streams[i], a.plies[i])
            a.ended[i] = a.over[i] = a.wrong[i] = False
            a.rewards[i, :] = a.paid[i] = 0.0


@kernel
def _check(a, first, end):
    """See which actions are illegal."""
    games, actions, wrong, b = a.games, a.actions, a.wrong, a.board[0]
    for i in range(first, end):
        wrong[i] = games[i].phase != OVER and not is_legal(games[i], b, actions[i])


@kernel
def first_wrong(a):
    """The first game whose action was illegal, -1 when there is none."""
    for i in range(a.wrong.shape[0]):
        if a.wrong[i]:
            return i
    return -1


@kernel
def _move(a, work, first, end):
    """Take one decision, which must be legal if others are to raise, and let compiled bots decide.
    A game that has ended begins anew instead: its action is ignored."""
    games, rules, kinds, learners = a.games, a.rules, a.kinds, a.learners
    streams, episodes, plies, actions = a.streams, a.episodes, a.plies, a.actions
    ended, wrong, acted, b = a.ended, a.wrong, a.acted, a.board[0]
    checks, loses = a.illegal != RAISE, a.illegal == LOSE
    for i in range(first, end):
        g = games[i]
        wrong[i] = False
        if ended[i]:
            episodes[i] += 1
            learners[i] = _begin(g, b, rules, streams[i], episodes[i], a.learner_seat)
        else:
            acted[i] = g.seat
            action = actions[i]
            if checks and not is_legal(g, b, action):
                wrong[i] = True
                action = random_action(g, b, _noise(streams[i], plies[i]))
                plies[i] += 1
            if not (wrong[i] and loses):
                step(g, b, action)
        plies[i] = _run_bots(g, b, kinds, learners[i], work, streams[i], plies[i])


@kernel
def _settle(a, work, first, end):
    """Pay, see what has ended, and begin it anew if that is to be in the same step."""
    games, painted, finals, kinds, learners = a.games, a.painted, a.finals, a.kinds, a.learners
    streams, episodes, plies = a.streams, a.episodes, a.plies
    ended, wrong, acted, over, rewards, paid = a.ended, a.wrong, a.acted, a.over, a.rewards, a.paid
    rules, b, loses, same_step = a.rules, a.board[0], a.illegal == LOSE, a.autoreset == SAME_STEP
    for i in range(first, end):
        g = games[i]
        rewards[i, :] = 0.0
        over[i] = not ended[i] and (g.phase == OVER or (wrong[i] and loses))
        if ended[i]:
            ended[i] = False
        elif wrong[i] and loses:
            rewards[i, acted[i]] = -1.0
        elif over[i] or points_mark(g) != points_mark(painted[i]):
            pay(a.reward, painted[i], g, rewards[i])  # a picture shows the state before
        paid[i] = rewards[i, acted[i]]
        if over[i]:
            finals[i] = g
            ended[i] = not same_step
        if over[i] and same_step:
            episodes[i] += 1
            learners[i] = _begin(g, b, rules, streams[i], episodes[i], a.learner_seat)
            plies[i] = _run_bots(g, b, kinds, learners[i], work, streams[i], plies[i])


@kernel
def _show(a, work, first, end):
    """Write observation and mask of whoever is to decide; a mask of ones where a game is over."""
    games, scenes, painted, rows, viewers = a.games, a.scenes, a.painted, a.rows, a.viewers
    seats, masks, acted, b, bits = a.seats, a.masks, a.acted, a.board[0], work.bits
    for i in range(first, end):
        g = games[i]
        if paint(g, b, scenes[i], rows[i], painted[i]):
            viewers[i] = NOBODY
    for i in range(first, end):
        g = games[i]
        seat = np.int64(g.seat) if g.phase != OVER else acted[i]  # who decided last sees the end
        observe(g, b, scenes[i], seat, rows[i], seat == viewers[i])
        seats[i] = viewers[i] = seat
    for i in range(first, end):
        g, mask = games[i], masks[i]
        if g.phase == OVER:
            mask[:] = 1
        else:
            legal_bits(g, b, bits)
            expand(bits, mask)


@kernel
def step_some(a, work, first, end):
    """Take the stages of a step that is open in the games from `first` to before `end`, stage by
    stage: some games stay in the processor's cache, as does the code of a stage."""
    stages = a.stages[0]
    if stages & CHECK:
        _check(a, first, end)
    if stages & MOVE:
        _move(a, work, first, end)
    if stages & SETTLE:
        _settle(a, work, first, end)
    if stages & SHOW:
        _show(a, work, first, end)


@kernel
def waiting(a, agents):
    """Which agent that is not compiled is to decide in each game: int64 into `agents`, or -1;
    returns in how many games one is."""
    number = 0
    for i in range(a.games.shape[0]):
        g = a.games[i]
        agents[i] = -1
        if g.phase != OVER:
            agents[i] = max(np.int64(_kind(g, a.kinds, a.learners[i])) - FIRST_AGENT, -1)
        number += agents[i] >= 0
    return number


@kernel
def answer(a, work, index, actions):
    """Take decisions of agents, which must be legal, in the games of an index (int64), and let
    compiled bots go on."""
    b = a.board[0]
    for k in range(index.shape[0]):
        i = index[k]
        g = a.games[i]
        step(g, b, actions[k])
        a.plies[i] = _run_bots(g, b, a.kinds, a.learners[i], work, a.streams[i], a.plies[i])


@kernel
def streams_of(seed, first, out):
    """Random stream of each game of a batch; game `first + i` of a seed has one of its own."""
    for i in range(out.shape[0]):
        out[i] = seeded(seed, first + i)


@kernel
def scene_length(board):
    """Length of a picture of a game (core.observation_cache)."""
    return np.int64(scene_size(board[0]))
