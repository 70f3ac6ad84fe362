"""Self-play games side by side; forced decisions are taken at once, so only choices come up."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from busenv import Board, Rules
from busenv.core import kernels
from busenv.core.bits import ONE, ZERO
from busenv.core.jit import kernel
from busenv.core.reward_kernels import copy_points, pay
from busenv.core.rules.legal import legal_bits, random_action
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, OVER
from busenv.game.rules import as_rules
from busenv.observation import observe_games
from busenv.rewards import reward_kind
from busenv.validation import illegal_action


@kernel
def _forced(g: Any, b: Any, bits: np.ndarray) -> bool:
    """Whether only one action is legal."""
    legal_bits(g, b, bits)
    found = False
    for word in bits:
        if word != ZERO:
            if found or word & (word - ONE) != ZERO:
                return False
            found = True
    return True


@kernel
def advance(
    games: np.ndarray,
    board: np.ndarray,
    which: np.ndarray,
    actions: np.ndarray,
    kind: int,
    unit: float,
    cumulative_rewards: np.ndarray,
) -> None:
    """Take one decision in some games, then all that are forced, and add the seats' rewards.

    games: GAME, (N,). which, actions: int64, (n,). cumulative_rewards: float64, (N, 5), in units.
    """
    b = board[0]
    before = np.zeros(1, GAME)
    rewards = np.zeros(MAX_PLAYERS)
    bits = np.zeros((b.actions + 63) // 64, np.uint64)
    for k, i in enumerate(which):
        g = games[i]
        copy_points(g, before[0])
        step(g, b, actions[k])
        while g.phase != OVER and _forced(g, b, bits):
            step(g, b, random_action(g, b, ZERO))
        pay(kind, before[0], g, rewards)
        for seat in range(MAX_PLAYERS):
            cumulative_rewards[i, seat] += rewards[seat] / unit


class SelfPlayGames:
    """N games of a board side by side.

    states: GAME, (N,). cumulative_rewards: float64, (N, 5), of each seat so far, in units.

    players: how many play each game, int64, (N,). first: the seat that begins it, int64, (N,).
    rules: an edition, a file of rules, or rules. reward: a name in `busenv.rewards.REWARDS`, in
    units of `unit`.
    """

    def __init__(
        self,
        board: Board,
        rules: str | Rules,
        reward: str,
        unit: float,
        players: np.ndarray,
        first: np.ndarray,
    ) -> None:
        self.board = board
        self.players = players
        self.states = np.zeros(len(players), GAME)
        self.cumulative_rewards = np.zeros((len(players), MAX_PLAYERS))
        self._kind, self._unit = reward_kind(reward), unit
        played = as_rules(rules)
        for count in np.unique(players):
            which = np.flatnonzero(players == count)
            fresh = np.zeros(len(which), GAME)
            kernels.new_games(fresh, board.array, played.record(count), first[which])
            self.states[which] = fresh

    def part(self, which: slice) -> SelfPlayGames:
        """Some of the games by themselves, as they are now."""
        found = copy(self)
        found.players = self.players[which].copy()
        found.states = self.states[which].copy()
        found.cumulative_rewards = self.cumulative_rewards[which].copy()
        return found

    def running(self) -> np.ndarray:
        """Indices of the games that are not over: int64."""
        return np.flatnonzero(self.states["phase"] != OVER)

    def seats(self, which: np.ndarray) -> np.ndarray:
        """The seat that decides in each of some games: int64."""
        return self.states["seat"][which].astype(np.int64)

    def observe(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the deciding seats of some games see, uint8, and what is legal, bool."""
        return observe_games(self.states[which], self.board, trusted=True)

    def step(self, which: np.ndarray, actions: np.ndarray) -> None:
        """Take one decision in each of some games, and all forced ones after it.

        IllegalActionError, the games unchanged, when an action is not legal.
        """
        wrong = kernels.first_illegal(self.states[which], self.board.array, actions)
        if wrong >= 0:
            raise illegal_action(self.states[which], wrong, self.board, int(actions[wrong]))
        board, actions = self.board.array, actions.astype(np.int64)
        advance(self.states, board, which, actions, self._kind, self._unit, self.cumulative_rewards)

    def places(self) -> np.ndarray:
        """Place of each seat so far, 0 is the lead: int64, (N, 5)."""
        places = np.zeros((len(self.states), MAX_PLAYERS), np.int64)
        kernels.rankings(self.states, places)
        return places
