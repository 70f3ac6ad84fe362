"""Gymnasium's single-agent interface: one learner's seat, the others played by agents.

`gymnasium.make("busenv:busenv/Bus-v0")` makes a `BusEnv`, importing busenv by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np

from busenv.board import Board, as_board
from busenv.checks import check_whole
from busenv.core.state import MAX_PLAYERS
from busenv.errors import IllegalActionError
from busenv.game import Game
from busenv.observation import observe, spaces_of
from busenv.opponents import Player, as_player
from busenv.render.modes import FRAMES_A_SECOND, RENDER_MODES, Renderer
from busenv.rewards import Reward, as_reward
from busenv.rules import Rules, as_rules, player_counts


class BusEnv(gymnasium.Env[np.ndarray, np.int64]):
    """One seat of a game of Bus, whose other seats are played by agents.

    Observations are uint8 rows as the learner sees the game (`busenv.observation`), actions the
    ids of `busenv.actions`. What is legal stands in `info["action_mask"]` (int8, as
    `Discrete.sample(mask=...)` wants it; all ones once the game is over) and in `action_masks()`
    (bool). `info["seat"]` is the learner's seat. The reward of a step is what the learner's seat is
    paid from its decision to its next one.

    num_players: 3, 4 or 5, or several of them to draw from for each episode.
    seat: the learner's, by default drawn for each episode.
    opponents: for the other seats clockwise from the learner: spec strings of agents ("random",
        "greedy", ...) or objects with a method `act(game)`. One alone plays all of them.
    reward: a name in `busenv.rewards.REWARDS`, or a function (see there).
    illegal: what an illegal action does. "raise": IllegalActionError, and nothing has changed.
        "lose": the episode ends, pays -1 and says so in `info["illegal_action"]`.
    render_mode: None, "ansi", "rgb_array" or "human" (`busenv.render.modes`).

    ValueError says what is allowed instead; ModuleNotFoundError names what a render mode lacks.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's own name
        "render_modes": RENDER_MODES,
        "render_fps": FRAMES_A_SECOND,
    }

    def __init__(
        self,
        num_players: int | Sequence[int] = 4,
        seat: int | None = None,
        opponents: str | Player | Sequence[str | Player] = "random",
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        illegal: Literal["raise", "lose"] = "raise",
        render_mode: str | None = None,
    ) -> None:
        self._counts = player_counts(num_players)
        if seat is not None:
            seat = check_whole("seat", seat, 0, min(self._counts) - 1)
        if illegal not in ("raise", "lose"):
            raise ValueError(f'illegal is {illegal!r}; allowed: "raise" or "lose"')
        self._renderer = Renderer(render_mode)
        self._specs = _one_each(opponents)
        if len(self._specs) < max(self._counts) - 1:
            raise ValueError(
                f"{len(self._specs)} opponents; allowed: one for all, or one for each of the "
                f"{max(self._counts) - 1} other seats"
            )
        for spec in self._specs:
            as_player(spec, 0)
        self._seat, self._illegal, self.render_mode = seat, illegal, render_mode
        self._rules, self._board = as_rules(rules), as_board(board)
        self._pay = as_reward(reward)
        self.observation_space, self.action_space = spaces_of(self._board)
        self._payment = np.zeros((1, MAX_PLAYERS), np.float32)
        self.game: Game | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a game and play up to the learner's first decision.

        options: "first_player" may name the seat that starts. Returns the observation, uint8
        (size,), and `info`; both are fresh.
        """
        super().reset(seed=seed)
        players = self._counts[int(self.np_random.integers(len(self._counts)))]
        drawn_seat, drawn_first = (int(self.np_random.integers(players)) for _ in range(2))
        chosen = (options or {}).get("first_player")
        first = drawn_first if chosen is None else chosen
        seat = drawn_seat if self._seat is None else self._seat
        game = Game(players, self._rules, self._board, first, seed=0)
        seeds = self.np_random.integers(2**32, size=len(self._specs))
        agents = [as_player(spec, int(s)) for spec, s in zip(self._specs, seeds, strict=True)]
        others = {(seat + 1 + k) % players: agents[k] for k in range(players - 1)}
        _play_on(game, others)
        self.game, self.seat, self._players = game, seat, others
        if self.render_mode == "human":
            self.render()
        return observe(self.game, self.seat), self._info(self.game)

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take the learner's decision and play up to its next one, or to the end.

        Returns observation (uint8, (size,)), reward, whether the game is over, False (no game is
        cut off), and `info`. Raises IllegalActionError as `illegal` says, and always once the game
        is over; ResetNeeded before the first `reset`.
        """
        if self.game is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        game = self.game.clone()  # so that nothing has changed when an opponent fails
        before = game.arrays()[0].copy()
        try:
            game.step(action)  # type: ignore[arg-type]  # takes numpy's whole numbers too
        except IllegalActionError:
            if self._illegal == "raise" or game.is_over:
                raise
            info = {**self._info(game), "illegal_action": True}
            return observe(game, self.seat), -1.0, True, False, info
        _play_on(game, self._players)
        self._payment[:] = 0
        self._pay(before, game.arrays()[0].copy(), self._payment)
        reward = float(self._payment[0, self.seat])
        self.game = game
        if self.render_mode == "human":
            self.render()
        return observe(game, self.seat), reward, game.is_over, False, self._info(game)

    def action_masks(self) -> np.ndarray:
        """What the learner may do: bool, (num_actions,); all true once the game is over."""
        if self.game is None:
            raise gymnasium.error.ResetNeeded("call reset() before action_masks()")
        if self.game.is_over:
            return np.ones(self._board.num_actions, np.bool_)
        return self.game.action_mask()

    def render(self) -> str | np.ndarray | None:
        """The table as the render mode has it (`busenv.render.modes`); None before `reset`."""
        return self._renderer.render(self.game) if self.game else None

    def close(self) -> None:
        """Close the window, if there is one."""
        self._renderer.close()

    def _info(self, game: Game) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8), "seat": self.seat}


def _play_on(game: Game, others: dict[int, Player]) -> None:
    """Let the agents of some seats decide until another is to, or the game is over.

    RuntimeError when one chooses what is illegal.
    """
    while not game.is_over and game.current_player in others:
        seat = game.current_player
        action = others[seat].act(game)
        try:
            game.step(action)
        except IllegalActionError as error:
            raise RuntimeError(f"the opponent at seat {seat}: {error}") from error


def _one_each(opponents: str | Player | Sequence[str | Player]) -> list[str | Player]:
    """A list of opponents; one alone plays every other seat."""
    if isinstance(opponents, Sequence) and not isinstance(opponents, str):
        return list(opponents)
    return [opponents] * (MAX_PLAYERS - 1)
