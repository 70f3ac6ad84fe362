"""Whole self-play games of the learner, for a rollout of PPO. Nothing here needs torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from busenv import Board, Rules
from busenv.agents import Agent
from busenv.agents.game_histories import GameHistories
from busenv.agents.networks.compiled_layers import softmax
from busenv.agents.networks.compiled_network import (
    Weights,
    Workspace,
    clear_previous_rows,
    evaluate,
    make_workspace,
    read_weights,
)
from busenv.agents.networks.inference import draw_action
from busenv.agents.networks.logits import LOWEST_TEMPERATURE
from busenv.agents.search.search import pass_forced
from busenv.core import kernels
from busenv.core.jit import fast_kernel, gil_kernel
from busenv.core.relative_types import (
    absolute_action,
    relative_action,
    write_relative_policies,
)
from busenv.core.reward_kernels import copy_points, pay
from busenv.core.rules.legal import is_legal
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, OVER
from busenv.game.board_specs import GeneratedBoards
from busenv.game.rules import as_rules
from busenv.rewards import reward_kind
from busenv.validation import illegal_action

if TYPE_CHECKING:  # weights play without torch
    from busenv.agents.networks.network import Network

GAMES_PER_BOARD = 8  # of a part of a rollout on a set of boards


@gil_kernel  # short: a thread that releases the GIL would wait longer to get it back
def _advance(
    games: np.ndarray,
    board: np.ndarray,
    indices: np.ndarray,
    actions: np.ndarray,
    kind: int,
    unit: float,
    cumulative_rewards: np.ndarray,
) -> int:
    """Take one action in some games and all forced ones after it; add up the seats' rewards.

    games: GAME, (N,). indices, actions: int64, (n,). cumulative_rewards: float64, (N, 5), in units.

    Returns the position in `indices` of the first illegal action, no game changed; -1 without one.
    """
    b = board[0]
    for k, i in enumerate(indices):
        if not is_legal(games[i], b, actions[k]):
            return k
    before = np.zeros(1, GAME)
    rewards = np.zeros(MAX_PLAYERS)
    bits = np.zeros((b.actions + 63) // 64, np.uint64)
    for k, i in enumerate(indices):
        g = games[i]
        copy_points(g, before[0])
        step(g, b, actions[k])
        pass_forced(g, b, bits)
        pay(kind, before[0], g, rewards)
        for seat in range(MAX_PLAYERS):
            cumulative_rewards[i, seat] += rewards[seat] / unit
    return -1


class SelfPlayGames:
    """N parallel games on a board, which stop only at decisions with several legal actions.

    states: GAME, (N,). cumulative_rewards: float64, (N, 5), of each seat so far, in units.

    num_players, first_players: number of players and first seat of each game, int64, (N,).
    rules: an edition, a file of rules, or rules. reward: a name in `busenv.rewards.REWARDS`, in
    units of `unit`.
    """

    def __init__(
        self,
        board: Board,
        rules: str | Rules,
        *,
        reward: str,
        unit: float,
        num_players: np.ndarray,
        first_players: np.ndarray,
    ) -> None:
        self.board = board
        self.states = np.zeros(len(num_players), GAME)
        self.cumulative_rewards = np.zeros((len(num_players), MAX_PLAYERS))
        self._kind, self._unit = reward_kind(reward), unit
        self.rules = as_rules(rules)
        for count in np.unique(num_players):
            indices = np.flatnonzero(num_players == count)
            fresh = np.zeros(len(indices), GAME)
            kernels.new_games(fresh, board.array, self.rules.record(count), first_players[indices])
            self.states[indices] = fresh

    def running(self) -> np.ndarray:
        """Return the indices of the games that are not over: int64."""
        return np.flatnonzero(self.states["phase"] != OVER)

    def step(self, indices: np.ndarray, actions: np.ndarray) -> None:
        """Take one action in each of some games, and all forced ones after it.

        IllegalActionError, the games unchanged, when an action is not legal.
        """
        illegal = _advance(
            self.states, self.board.array, indices, actions.astype(np.int64),
            self._kind, self._unit, self.cumulative_rewards,
        )  # fmt: skip
        if illegal >= 0:
            raise illegal_action(self.states[indices], illegal, self.board, int(actions[illegal]))


class Decisions(NamedTuple):
    """Decisions of the learner, R of them, in the order of time.

    trajectories: int64, game * 5 + seat of each decision. rewards: float64, what the seat receives
    from this decision until its next one, or until the end of the game, including rewards from the
    actions of other seats.
    observations: uint8, (R, size), the network's input. masks: bool, (R, num_actions). actions:
    int64. values: float32. log_probs: float32, of the sampled action, also where the teacher's was
    taken. teacher_probabilities: float32, (R, num_actions), or (R, 0) without one. Observations,
    masks, actions and teacher_probabilities count building types from the clock if the network
    does.
    """

    trajectories: np.ndarray
    rewards: np.ndarray
    observations: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    values: np.ndarray
    log_probs: np.ndarray
    teacher_probabilities: np.ndarray


@fast_kernel
def _choose_actions(
    games: np.ndarray,
    board: np.ndarray,
    indices: np.ndarray,
    teacher_actions: np.ndarray,
    weights: Weights,
    work: Workspace,
    temperature: np.float32,
    rng_state: np.ndarray,
    out: tuple[np.ndarray, ...],
    game_actions: np.ndarray,
) -> None:
    """Sample the network's actions in some games and record the decisions.

    games: GAME, (N,). indices: int64, (n,), of the games to decide. teacher_actions: int64, (n,),
    taken instead of the sampled actions; -1 for none. work, rng_state: overwritten. out:
    observations, masks (all False), actions, values and log_probs of `Decisions`. game_actions:
    int64, (n,), receives the action ids of the games, whose building types are absolute.

    Raises ValueError when logits are not finite.
    """
    observations, masks, actions, values, log_probs = out
    b, relative = board[0], weights.inputs.relative_types
    for i in range(indices.shape[0]):
        g = games[indices[i]]
        clear_previous_rows(work)  # so that rows do not depend on their neighbours
        num_legal = evaluate(g, b, weights, work)
        softmax(work.logits, num_legal, temperature)
        for k in range(num_legal):
            legal = work.actions[k]
            masks[i, relative_action(g, b, legal) if relative else legal] = True
        draw = draw_action(work.logits[:num_legal], rng_state)
        sampled = work.actions[draw]
        action = relative_action(g, b, sampled) if relative else sampled
        if teacher_actions[i] >= 0:
            action = teacher_actions[i]
        actions[i] = action
        game_actions[i] = absolute_action(g, b, action) if relative else action
        observations[i] = work.row
        values[i] = work.values[0]
        log_probs[i] = np.log(work.logits[draw])


def play_rollout(
    network: Network | Weights,
    games: SelfPlayGames,
    seat_owner: np.ndarray,
    opponents: Sequence[Agent],
    seed: int,
    *,
    teacher: Agent | None = None,
    temperature: float = 1.0,
    interrupted: threading.Event | None = None,
) -> Decisions:
    """Play games to their ends and return the learner's decisions.

    Each step takes one decision in every game that is not over.

    network: the learner, on the CPU. seat_owner: int64, (N, 5), 0 where the network plays, k where
    opponents[k - 1] does. seed: of all randomness.
    teacher: its action probabilities at the learner's decisions are recorded. In the first half of
    the games its most likely action is taken, in the second half the action that the network
    samples at `temperature`, so that the network learns from positions that its own play reaches
    (DAgger, Ross et al. 2011). PPO requires temperature 1.
    interrupted: set by another thread to end the games early, by KeyboardInterrupt.

    Raises ValueError when the network's logits are not finite.
    """
    rng = np.random.default_rng(seed)
    for agent in (*opponents, *([teacher] if teacher else [])):
        agent.reset(int(rng.integers(2**62)))
    rng_state = rng.integers(2**62, size=1, dtype=np.uint64)
    weights = network if isinstance(network, Weights) else read_weights(network)
    sampler = _Sampler(
        weights, make_workspace(weights), max(temperature, LOWEST_TEMPERATURE), rng_state, teacher
    )
    histories = GameHistories(opponents, games.states, games.rules, games.board)
    steps: list[Decisions] = []
    while (running := games.running()).size:
        if interrupted and interrupted.is_set():
            raise KeyboardInterrupt
        owner = seat_owner[running, games.states["seat"][running]]
        actions = np.zeros(len(running), np.int64)
        for k, opponent in enumerate(opponents, 1):
            rows = np.flatnonzero(owner == k)
            if rows.size:
                actions[rows] = histories.choose(opponent, running[rows])
        rows = np.flatnonzero(owner == 0)
        if rows.size:
            decisions, actions[rows] = _decide(sampler, games, running[rows])
            steps.append(decisions)
        games.step(running, actions)
        histories.step(running, actions)
    decisions = Decisions(*map(np.concatenate, zip(*steps, strict=True)))
    return decisions._replace(
        rewards=_differences(
            decisions.trajectories, decisions.rewards, games.cumulative_rewards.ravel()
        )
    )


class _Sampler(NamedTuple):
    """The learner's weights, workspace and random stream, and the teacher."""

    weights: Weights
    work: Workspace
    temperature: float
    rng_state: np.ndarray
    teacher: Agent | None


def _decide(
    sampler: _Sampler, games: SelfPlayGames, indices: np.ndarray
) -> tuple[Decisions, np.ndarray]:
    """Take the learner's decisions in some games.

    Returns the decisions, with the cumulative rewards so far as rewards, whose differences are
    taken when the games are over, and the action ids in the games, int64, (n,).
    """
    weights, count = sampler.weights, len(indices)
    size, num_actions, _ = weights.sizes
    teacher_actions = np.full(count, -1, np.int64)
    teacher_policies = np.zeros((count, 0), np.float32)
    if sampler.teacher is not None:
        relative_types = weights.inputs.relative_types
        states = games.states[indices]
        teacher_policies = _teacher_policies(sampler.teacher, states, games.board, relative_types)
        teachers_game = indices < len(games.states) // 2
        teacher_actions = np.where(teachers_game, teacher_policies.argmax(axis=1), -1)
    observations = np.empty((count, size), np.uint8)
    masks = np.zeros((count, num_actions), np.bool_)
    actions, game_actions = np.empty(count, np.int64), np.empty(count, np.int64)
    values, log_probs = np.empty(count, np.float32), np.empty(count, np.float32)
    _choose_actions(
        games.states, games.board.array, indices, teacher_actions, weights, sampler.work,
        np.float32(sampler.temperature), sampler.rng_state,
        (observations, masks, actions, values, log_probs), game_actions,
    )  # fmt: skip
    seats = games.states["seat"][indices].astype(np.int64)
    decisions = Decisions(
        indices * MAX_PLAYERS + seats, games.cumulative_rewards[indices, seats],
        observations, masks, actions, values, log_probs, teacher_policies,
    )  # fmt: skip
    return decisions, game_actions


def _teacher_policies(
    teacher: Agent, states: np.ndarray, board: Board, relative_types: bool
) -> np.ndarray:
    """Return a teacher's action probabilities in games: float32, (n, num_actions)."""
    policies: np.ndarray = teacher.action_probabilities(states, board)
    if not relative_types:
        return policies
    relative = np.zeros_like(policies)
    write_relative_policies(states, board.array, policies, relative)
    return relative


def _differences(trajectories: np.ndarray, before: np.ndarray, final: np.ndarray) -> np.ndarray:
    """Return how much each seat's cumulative reward grows until its next decision, or the end.

    trajectories: int64, (R,). before: float64, (R,), cumulative rewards. final: float64, those at
    the end, by trajectory.
    """
    order = np.argsort(trajectories, kind="stable")
    trajectories, before = trajectories[order], before[order]
    after = final[trajectories]
    same = trajectories[1:] == trajectories[:-1]
    after[:-1][same] = before[1:][same]
    differences = np.empty_like(before)
    differences[order] = after - before
    return differences


def draw_boards(
    boards: Board | GeneratedBoards, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw the indices of boards of a set uniformly at random: int64, (count,).

    Zeros, and no random numbers are drawn, with one board.
    """
    if isinstance(boards, Board):
        return np.zeros(count, np.int64)
    return rng.integers(len(boards), size=count)


def join(
    parts: Sequence[tuple[SelfPlayGames, Decisions]],
) -> tuple[np.ndarray, Decisions]:
    """Return the final states of games that were played in parts, GAME, (N,), and all decisions."""
    joined, first = [], 0
    for games, decisions in parts:
        joined.append(decisions._replace(trajectories=decisions.trajectories + first * MAX_PLAYERS))
        first += len(games.states)
    states = np.concatenate([games.states for games, _ in parts])
    return states, Decisions(*map(np.concatenate, zip(*joined, strict=True)))
