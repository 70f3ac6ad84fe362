"""Kernels of a batch of games: step, reward, reset, observe and mask, one decision per game.

a: Arrays. work: `core.bots.BotWorkspace` of the calling thread. first, end: the games from `first`
to before `end`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, below, mix, seeded
from busenv.core.bots import GREEDY, RANDOM, greedy_action
from busenv.core.jit import kernel
from busenv.core.kernels import expand
from busenv.core.observation_cache import update_cache
from busenv.core.observe import observe
from busenv.core.relative_types import rotate_types
from busenv.core.reward_kernels import write_reward
from busenv.core.rules.legal import forced_action, is_legal, legal_bits, random_action
from busenv.core.rules.score import points_version
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import Phase

# What an illegal action does (with RAISE the caller checks before the step), and when a game that
# has ended is reset.
RAISE, LOSE, REPLACE = 0, 1, 2
NEXT_STEP, SAME_STEP, DISABLED = 0, 1, 2

# Stages of a step. One call for ALL is fastest; agents that are not compiled decide between stages.
# CHECK precedes a step in which an illegal action must change nothing.
MOVE, REWARD, OBSERVE, ALL, CHECK = 1, 2, 4, 7, 8

NO_VIEWER = -1  # the row does not hold the cache's planes for any viewer
FIRST_AGENT = 3  # kinds of players from here on are agents that are not compiled
DRAWN = -1  # learner_seat: drawn for each episode


class Arrays(NamedTuple):
    """The arrays of a batch of N games; one entry per game unless stated otherwise.

    games: GAME, (N,). boards: BOARD, (K,), one drawn for each episode; their sizes are equal.
    board_index: int64, (N,), the board of each game.
    rules: RULES, (K,), one for each number of players that may be drawn.
    streams: uint64, (N,), random stream of each game. episodes: int64, (N,), games started in it.
    words_drawn: int64, (N,), random words used so far.
    needs_reset: bool, (N,), whether the game has ended and has not been reset.
    kinds: uint8, (5,), players clockwise from the learner: 0 for `actions`, else a kind of bot
        (core.bots) or FIRST_AGENT plus an agent's number. All zeros without opponents.
    seat_owners: uint8, (N, 5), the same by seat; written at the start of a game with opponents,
        and by the caller without.
    learner_seat: the learner's seat of all games, or DRAWN.
    skip_forced: whether decisions with one legal action are taken within the step, unless a
        compiled bot takes them.
    caches: uint8, (N, cache_size), observation caches. cached: GAME, (N,), the states they show.
    reward: kind of reward (core.reward_kernels). illegal: RAISE, LOSE or REPLACE.
    relative_types: whether observations count types from the clock (core.relative_types).
    autoreset: NEXT_STEP, SAME_STEP or DISABLED. stages: int64, (1,), stages of the open step.
    actions: int64, (N,), of this step. acting_seats: int64, (N,), the seats that took them.
    seats: int64, (N,), the seats that decide next.
    rewards: float32, (N, 5), by seat. acting_rewards: float64, (N,), those of the acting seats.
    terminations: bool, (N,), whether this step ended the game.
    illegal_actions: bool, (N,), whether its action was illegal.
    observations: uint8, (N, observation_size).
    viewers: int64, (N,), the seat that each observation is for, or NO_VIEWER.
    masks: bool, (N, num_actions).
    final_games: GAME, (N,), the final state of the last game that ended at each index.
    final_board_index: int64, (N,), the boards of those games.
    """

    games: np.ndarray
    boards: np.ndarray
    board_index: np.ndarray
    rules: np.ndarray
    streams: np.ndarray
    episodes: np.ndarray
    words_drawn: np.ndarray
    needs_reset: np.ndarray
    kinds: np.ndarray
    seat_owners: np.ndarray
    learner_seat: int
    skip_forced: bool
    caches: np.ndarray
    cached: np.ndarray
    reward: int
    illegal: int
    relative_types: bool
    autoreset: int
    stages: np.ndarray
    actions: np.ndarray
    acting_seats: np.ndarray
    seats: np.ndarray
    rewards: np.ndarray
    acting_rewards: np.ndarray
    terminations: np.ndarray
    illegal_actions: np.ndarray
    observations: np.ndarray
    viewers: np.ndarray
    masks: np.ndarray
    final_games: np.ndarray
    final_board_index: np.ndarray


# Kernels for one game take single arrays, which are read from the tuple once: numba passes a tuple
# by its content and counts references at each read.


@kernel
def _drawn_board(stream, episode, boards):
    """Index of the board of an episode, from the fourth word of `_start`. boards: their number."""
    return below(mix(mix(mix(mix(stream + GOLDEN * np.uint64(episode))))), boards)


@kernel
def write_drawn_boards(a, ahead, out):
    """Write the board that each game has `ahead` episodes later: int64, (N,), indices."""
    for i in range(out.shape[0]):
        out[i] = _drawn_board(a.streams[i], a.episodes[i] + ahead, a.boards.shape[0])


@kernel
def _start(g, boards, rules, stream, episode, learner_seat, kinds, owners):
    """Start a game, write the owners of its seats, and return the index of the board.

    Number of players, first player, drawn seat and board depend on the stream and episode only.
    """
    draw = mix(stream + GOLDEN * np.uint64(episode))
    game_rules = rules[below(draw, rules.shape[0])]
    draw = mix(draw)
    first = below(draw, game_rules.players)
    draw = mix(draw)
    board = _drawn_board(stream, episode, boards.shape[0])
    new_game(g, boards[board], game_rules, first)
    if kinds[1] != 0:  # with opponents
        players = np.int64(game_rules.players)
        learner = below(draw, players) if learner_seat == DRAWN else np.int64(learner_seat)
        for clockwise in range(players):
            owners[(learner + clockwise) % players] = kinds[clockwise]
    return board


@kernel
def _random_word(stream, words_drawn):
    """The next random word of a game's stream."""
    return mix(stream ^ mix(np.uint64(words_drawn) + GOLDEN))


@kernel
def _run_bots(g, b, owners, skip_forced, work, stream, words_drawn):
    """Let compiled bots decide until another player's turn; return the random words used so far.

    With `skip_forced`, decisions of other players with one legal action are taken as well.
    """
    while g.phase != Phase.OVER:
        owner = owners[g.seat]
        if owner == GREEDY:
            action = greedy_action(g, b, work, _random_word(stream, words_drawn))
            words_drawn += 1
        elif owner == RANDOM:
            action = random_action(g, b, _random_word(stream, words_drawn))
            words_drawn += 1
        else:
            action = forced_action(g, b, work.bits) if skip_forced else np.int64(-1)
            if action < 0:
                break
        step(g, b, action)
    return words_drawn


@kernel
def start_game(a, work, i):
    """Start game `i` of its stream and let bots decide up to the first other player."""
    g = a.games[i]
    a.board_index[i] = _start(
        g, a.boards, a.rules, a.streams[i], a.episodes[i], a.learner_seat, a.kinds,
        a.seat_owners[i],
    )  # fmt: skip
    b = a.boards[a.board_index[i]]
    a.words_drawn[i] = _run_bots(
        g, b, a.seat_owners[i], a.skip_forced, work, a.streams[i], a.words_drawn[i]
    )
    a.needs_reset[i] = a.terminations[i] = a.illegal_actions[i] = False
    a.rewards[i, :] = a.acting_rewards[i] = 0.0


@kernel
def start_games(a, work, selected):
    """Start the games of a mask (bool, (N,)) and let bots decide up to the first other player."""
    for i in range(a.games.shape[0]):
        if selected[i]:
            start_game(a, work, i)


@kernel
def _check(a, first, end):
    """Write which actions are illegal."""
    games, actions, boards, index = a.games, a.actions, a.boards, a.board_index
    illegal_actions = a.illegal_actions
    for i in range(first, end):
        legal = games[i].phase == Phase.OVER or is_legal(games[i], boards[index[i]], actions[i])
        illegal_actions[i] = not legal


@kernel
def first_illegal_action(a):
    """Index of the first game whose action was illegal; -1 without one."""
    for i in range(a.illegal_actions.shape[0]):
        if a.illegal_actions[i]:
            return i
    return -1


@kernel
def move_range(a, work, first, end):
    """Take one decision per game, which must be legal under RAISE, and let compiled bots decide.

    A game that has ended is reset instead, and its action is ignored.
    """
    games, rules, kinds, seat_owners = a.games, a.rules, a.kinds, a.seat_owners
    streams, episodes, words_drawn, actions = a.streams, a.episodes, a.words_drawn, a.actions
    acting_seats, illegal_actions, needs_reset = a.acting_seats, a.illegal_actions, a.needs_reset
    boards, index = a.boards, a.board_index
    checks, loses = a.illegal != RAISE, a.illegal == LOSE
    for i in range(first, end):
        g = games[i]
        illegal_actions[i] = False
        if needs_reset[i]:
            episodes[i] += 1
            index[i] = _start(
                g, boards, rules, streams[i], episodes[i], a.learner_seat, kinds, seat_owners[i]
            )
        b = boards[index[i]]
        # Where bots own every seat, a game ends within its reset; this step reports the end.
        if not needs_reset[i] and g.phase != Phase.OVER:
            acting_seats[i] = g.seat
            action = actions[i]
            if checks and not is_legal(g, b, action):
                illegal_actions[i] = True
                action = random_action(g, b, _random_word(streams[i], words_drawn[i]))
                words_drawn[i] += 1
            if not (illegal_actions[i] and loses):
                step(g, b, action)
        words_drawn[i] = _run_bots(
            g, b, seat_owners[i], a.skip_forced, work, streams[i], words_drawn[i]
        )


@kernel
def reward_range(a, work, first, end):
    """Write rewards and which games are over; under SAME_STEP, reset these."""
    games, rules, kinds, seat_owners, cached = (
        a.games, a.rules, a.kinds, a.seat_owners, a.cached,
    )  # fmt: skip
    streams, episodes, words_drawn = a.streams, a.episodes, a.words_drawn
    acting_seats, illegal_actions, needs_reset = a.acting_seats, a.illegal_actions, a.needs_reset
    terminations, rewards, acting_rewards = a.terminations, a.rewards, a.acting_rewards
    boards, index = a.boards, a.board_index
    final_games, final_board_index = a.final_games, a.final_board_index
    loses, same_step = a.illegal == LOSE, a.autoreset == SAME_STEP
    for i in range(first, end):
        g = games[i]
        rewards[i, :] = 0.0
        forfeited = illegal_actions[i] and loses
        terminations[i] = not needs_reset[i] and (g.phase == Phase.OVER or forfeited)
        if needs_reset[i]:
            needs_reset[i] = False
        elif forfeited:
            rewards[i, acting_seats[i]] = -1.0
        elif terminations[i] or points_version(g) != points_version(cached[i]):
            # The cache still shows the state before. Rewards depend on no building types.
            write_reward(a.reward, cached[i], g, rewards[i])
        acting_rewards[i] = rewards[i, acting_seats[i]]
        if terminations[i]:
            final_games[i], final_board_index[i] = g, index[i]
            needs_reset[i] = not same_step
        if terminations[i] and same_step:
            episodes[i] += 1
            index[i] = _start(
                g, boards, rules, streams[i], episodes[i], a.learner_seat, kinds, seat_owners[i]
            )
            b = boards[index[i]]
            words_drawn[i] = _run_bots(
                g, b, seat_owners[i], a.skip_forced, work, streams[i], words_drawn[i]
            )


@kernel
def observe_range(a, work, first, end):
    """Write observation and mask of the seat to decide; a mask of ones where a game is over."""
    games, caches, cached, boards, index = a.games, a.caches, a.cached, a.boards, a.board_index
    observations, viewers, masks = a.observations, a.viewers, a.masks
    seats, acting_seats = a.seats, a.acting_seats
    bits, relative_types = work.bits, a.relative_types
    # Relative types are written into the game and back, which takes less time than a copy.
    for i in range(first, end):
        g, b = games[i], boards[index[i]]
        if g.board_tag != cached[i].board_tag:  # the cache shows another board, or nothing yet
            cached[i].players, cached[i].board_tag = 0, g.board_tag
        clock = np.int64(g.clock)
        if relative_types:
            rotate_types(g, 3 - clock)
        if update_cache(g, b, caches[i], observations[i], cached[i]):
            viewers[i] = NO_VIEWER
        if relative_types:
            rotate_types(g, clock)
    for i in range(first, end):
        g, b = games[i], boards[index[i]]
        seat = np.int64(g.seat)
        if g.phase == Phase.OVER:
            # The view of the seat that decided last, if this game has that seat.
            seat = min(acting_seats[i], np.int64(g.players) - 1)
        clock = np.int64(g.clock)
        if relative_types:
            rotate_types(g, 3 - clock)
        observe(g, b, caches[i], seat, observations[i], seat == viewers[i])
        if relative_types:
            rotate_types(g, clock)
        seats[i] = viewers[i] = seat
    for i in range(first, end):
        g, mask = games[i], masks[i]
        if g.phase == Phase.OVER:
            mask[:] = 1
        else:
            legal_bits(g, boards[index[i]], bits)
            expand(bits, mask)


@kernel
def step_range(a, work, first, end):
    """Take the stages of the open step in the games from `first` to before `end`.

    Each stage runs over all of these games: a few games stay in the processor's cache, and so does
    the code of a stage.
    """
    stages = a.stages[0]
    if stages & CHECK:
        _check(a, first, end)
    if stages & MOVE:
        move_range(a, work, first, end)
    if stages & REWARD:
        reward_range(a, work, first, end)
    if stages & OBSERVE:
        observe_range(a, work, first, end)


@kernel
def apply_agent_actions(a, work, index, actions):
    """Take legal actions of agents in the games of an index, and run compiled bots.

    index: int64, (n,). actions: int64, (n,), one for each of these games.
    """
    for k in range(index.shape[0]):
        i = index[k]
        g, b = a.games[i], a.boards[a.board_index[i]]
        step(g, b, actions[k])
        a.words_drawn[i] = _run_bots(
            g, b, a.seat_owners[i], a.skip_forced, work, a.streams[i], a.words_drawn[i]
        )


@kernel
def game_streams(seed, out):
    """Write the random streams of the games 0, 1, ... of a seed (uint64)."""
    for i in range(out.shape[0]):
        out[i] = seeded(seed, i)
