"""Whole self-play games of the learner, for a rollout of PPO. Nothing here needs torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from busenv import Board, Rules
from busenv.agents import Agent
from busenv.agents.game_histories import GameHistories
from busenv.agents.networks.inference import Forward, draw_actions
from busenv.agents.networks.logits import LOWEST_TEMPERATURE, action_probabilities
from busenv.agents.search.search import pass_forced
from busenv.core import kernels
from busenv.core.jit import kernel
from busenv.core.relative_types import write_absolute_actions, write_relative_policies
from busenv.core.reward_kernels import copy_points, pay
from busenv.core.rules.legal import is_legal
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, OVER
from busenv.game.board_specs import GeneratedBoards
from busenv.game.rules import as_rules
from busenv.observation import observe_games
from busenv.rewards import reward_kind
from busenv.validation import illegal_action

GAMES_PER_BOARD = 8  # of a part of a rollout on a set of boards


@kernel
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
    units of `unit`. relative_types: of observations, and of the action ids of `play_rollout`
    (`busenv.core.relative_types`).
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
        relative_types: bool = False,
    ) -> None:
        self.board, self.relative_types = board, relative_types
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

    def observe(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return observations (uint8) and action masks (bool) of the seats to decide."""
        states = self.states[indices]
        return observe_games(states, self.board, True, relative_types=self.relative_types)

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
    observations: uint8, (R, size). masks: bool, (R, num_actions). actions: int64. values,
    log_probs: float32. teacher_probabilities: float32, (R, num_actions), or (R, 0) without one.
    """

    trajectories: np.ndarray
    rewards: np.ndarray
    observations: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    values: np.ndarray
    log_probs: np.ndarray
    teacher_probabilities: np.ndarray


def play_rollout(
    forward: Forward,
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

    forward: the network (`busenv.agents.networks.inference.make_forward`). seat_owner: int64,
    (N, 5), 0 where the network plays, k where opponents[k - 1] does. seed: of all randomness.
    teacher: its action probabilities at the learner's decisions are recorded. In the first half of
    the games its most likely action is taken, in the second half the action that the network
    samples at `temperature`, so that the network learns from positions that its own play reaches
    (DAgger, Ross et al. 2011). PPO requires temperature 1.
    interrupted: set by another thread to end the games early, by KeyboardInterrupt.
    """
    rng = np.random.default_rng(seed)
    for agent in (*opponents, *([teacher] if teacher else [])):
        agent.reset(int(rng.integers(2**62)))
    rng_state = rng.integers(2**62, size=1, dtype=np.uint64)
    histories = GameHistories(opponents, games.states, games.rules, games.board)
    steps: list[Decisions] = []
    while (running := games.running()).size:
        if interrupted and interrupted.is_set():
            raise KeyboardInterrupt
        owner = seat_owner[running, games.states["seat"][running]]
        actions = np.zeros(len(running), np.int64)
        for k in np.unique(owner[owner > 0]):
            rows = owner == k
            actions[rows] = histories.choose(opponents[k - 1], running[rows])
        if not owner.all():
            decided, actions[owner == 0] = _decide(
                forward, games, running[owner == 0],
                rng_state=rng_state, teacher=teacher, temperature=temperature,
            )  # fmt: skip
            steps.append(decided)
        games.step(running, actions)
        histories.step(running, actions)
    decisions = Decisions(*map(np.concatenate, zip(*steps, strict=True)))
    return decisions._replace(
        rewards=_differences(
            decisions.trajectories, decisions.rewards, games.cumulative_rewards.ravel()
        )
    )


def _decide(
    forward: Forward,
    games: SelfPlayGames,
    indices: np.ndarray,
    *,
    rng_state: np.ndarray,
    teacher: Agent | None,
    temperature: float,
) -> tuple[Decisions, np.ndarray]:
    """Take the learner's decisions in some games; arguments are those of `play_rollout`.

    Returns the decisions, with the cumulative rewards so far as rewards, whose differences are
    taken when the games are over, and the action ids, int64, (n,).
    """
    states = games.states[indices]
    seats = states["seat"].astype(np.int64)
    observations, masks = games.observe(indices)
    logits, values = forward(observations, masks)
    policy = action_probabilities(logits, masks, max(temperature, LOWEST_TEMPERATURE))
    actions = draw_actions(policy, rng_state)
    log_probs = np.log(policy[np.arange(len(actions)), actions])
    teaching = np.zeros((len(actions), 0), np.float32)
    if teacher is not None:
        teaching = _teacher_policies(teacher, games, indices)
        teachers_game = indices < len(games.states) // 2
        actions = np.where(teachers_game, teaching.argmax(axis=1), actions)
    decisions = Decisions(
        indices * MAX_PLAYERS + seats, games.cumulative_rewards[indices, seats],
        observations, masks, actions, values[:, 0], log_probs, teaching,
    )  # fmt: skip
    absolute = actions.copy()
    if games.relative_types:
        write_absolute_actions(states, games.board.array, absolute)
    return decisions, absolute


def _teacher_policies(teacher: Agent, games: SelfPlayGames, indices: np.ndarray) -> np.ndarray:
    """Return a teacher's action probabilities in some games: float32, (n, num_actions)."""
    states = games.states[indices]
    policies: np.ndarray = teacher.action_probabilities(states, games.board)
    if not games.relative_types:
        return policies
    relative = np.zeros_like(policies)
    write_relative_policies(states, games.board.array, policies, relative)
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
