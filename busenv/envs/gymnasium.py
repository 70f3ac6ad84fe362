"""Gymnasium's single-agent interface: one learner's seat, the others played by agents.

`gymnasium.make("busenv:busenv/Bus-v0")` makes a `BusEnv`, importing busenv by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import DTypeLike

from busenv.core import kernels
from busenv.core.state import MAX_PLAYERS
from busenv.envs.observation_format import (
    Illegal,
    as_observation_format,
    check_illegal,
    legal_instead,
)
from busenv.errors import IllegalActionError
from busenv.game.board import Board, as_board
from busenv.game.game import Game
from busenv.game.rules import Rules, as_rules, player_counts
from busenv.opponents import Opponents, Player, Table
from busenv.render.render_modes import FRAMES_A_SECOND, RENDER_MODES, Renderer
from busenv.rewards import Reward, as_reward
from busenv.validation import check_whole

Observation = np.ndarray | dict[str, np.ndarray]


class BusEnv(gymnasium.Env[Observation, np.int64]):
    """One seat of a game of Bus, whose other seats are played by agents.

    Observations are rows as the learner sees the game (`busenv.observation`), actions the ids of
    `busenv.game.actions`. What is legal stands in `info["action_mask"]` (int8, as
    `Discrete.sample(mask=...)` wants it; all ones once the game is over) and in `action_masks()`
    (bool). `info["seat"]` is the learner's seat. The reward of a step is what the learner's seat is
    paid from its decision to its next one. All that is handed out is the caller's own.

    num_players: 3, 4 or 5, or several of them to draw from for each episode.
    opponents: who plays the other seats: the spec of an agent ("random", "greedy", ...) or an
        object with a method `act(game)` for all, or a sequence of them, clockwise from the learner.
        Agents given by spec begin each episode anew from a seed that is drawn; objects go on as
        they are.
    learner_seat: the learner's seat; None: drawn for each episode.
    rules, board: as for `busenv.Game`.
    reward: a name in `busenv.rewards.REWARDS`, or a function (see there).
    illegal: what an illegal action does: "raise", "lose" or "replace" (`busenv.envs.observation_format`).
    observation_keys: None for the flat row, or the names of row and mask in a dict, such as
        ("observation", "action_mask").
    observation_dtype: "uint8", or "float32" for values scaled to 0..1.
    render_mode: None, "ansi", "rgb_array" or "human" (`busenv.render.render_modes`).

    ValueError says what is allowed instead; ModuleNotFoundError names what a render mode lacks.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's own name
        "render_modes": RENDER_MODES,
        "render_fps": FRAMES_A_SECOND,
    }

    def __init__(
        self,
        num_players: int | Sequence[int] = 4,
        opponents: str | Player | Sequence[str | Player] = "random",
        learner_seat: int | None = None,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        illegal: Illegal = "raise",
        observation_keys: Sequence[str] | None = None,
        observation_dtype: DTypeLike = "uint8",
        render_mode: str | None = None,
    ) -> None:
        self._counts = player_counts(num_players)
        if learner_seat is not None:
            learner_seat = check_whole("learner_seat", learner_seat, 0, min(self._counts) - 1)
        self._learner_seat, self._illegal = learner_seat, check_illegal(illegal)
        self._rules, self.board = as_rules(rules), as_board(board)
        self._form = as_observation_format(self.board, observation_keys, observation_dtype)
        self.observation_space = self._form.observation_space
        self.action_space = self._form.action_space
        self._pay, self._pays_freely = as_reward(reward), callable(reward)
        self._renderer, self.render_mode = Renderer(render_mode), render_mode
        self._opponents = Opponents(opponents, max(self._counts) - 1)
        self._size = kernels.observation_length(self.board.array)
        self._bits = np.zeros((self.board.num_actions + 63) // 64, np.uint64)
        self._payment = np.zeros((1, MAX_PLAYERS), np.float32)
        self._lost = False
        self.game: Game | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a game and play up to the learner's first decision.

        options: "first_player" may name the seat that starts. Returns the observation and `info`.
        """
        super().reset(seed=seed)
        random = self.np_random
        players = self._counts[int(random.integers(len(self._counts)))]
        drawn_seat, drawn_first = (int(random.integers(players)) for _ in range(2))
        chosen = (options or {}).get("first_player")
        first = drawn_first if chosen is None else chosen
        seat = drawn_seat if self._learner_seat is None else self._learner_seat
        game = Game(players, self._rules, self.board, first, int(random.integers(2**63)))
        table = self._opponents.sit(seat, players, random)
        self._settle(game, table, table.play_on(game), seat)
        if self.render_mode == "human":
            self.render()
        return self._look()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take the learner's decision and play up to its next one, or to the end.

        Returns observation, reward, whether the game is over, False (no game is cut off), and
        `info`. Raises IllegalActionError as `illegal` says, and always once the episode is over;
        ResetNeeded before the first `reset`. Nothing has changed then, nor when an opponent fails.
        """
        if self.game is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if self._lost:
            raise IllegalActionError("an illegal action has ended the episode: call reset()")
        game, table = self.game.clone(), self._table
        illegal = False
        try:
            game.step(action)  # type: ignore[arg-type]  # takes numpy's whole numbers too
        except IllegalActionError:
            if self._illegal == "raise" or game.is_over:
                raise
            if self._illegal == "lose":
                self._lost = True
                observation, info = self._look(illegal=True)
                return observation, -1.0, True, False, info
            game.step(legal_instead(game))
            illegal = True
        noise = table.play_on(game)
        reward = self._paid(self.game, game)
        self._settle(game, table, noise, self.seat)
        if self.render_mode == "human":
            self.render()
        observation, info = self._look(illegal)
        return observation, reward, game.is_over, False, info

    def action_masks(self) -> np.ndarray:
        """What the learner may do: bool, (num_actions,); all true once the game is over."""
        if self.game is None:
            raise gymnasium.error.ResetNeeded("call reset() before action_masks()")
        if self.game.is_over:
            return np.ones(self.board.num_actions, np.bool_)
        return self.game.action_mask()

    def render(self) -> str | np.ndarray | None:
        """The table as the render mode has it (`busenv.render.render_modes`); None before `reset`."""
        return self._renderer.render(self.game) if self.game else None

    def close(self) -> None:
        """Close the window, if there is one, and the opponents that were given by spec."""
        self._renderer.close()
        self._opponents.close()

    def _settle(self, game: Game, table: Table, noise: np.ndarray, seat: int) -> None:
        """What has been played is the environment's from now on."""
        table.noise = noise
        self.game, self._table, self.seat, self._lost = game, table, seat, False

    def _paid(self, before: Game, after: Game) -> float:
        """What the learner is paid between two of its decisions."""
        games = before.arrays()[0], after.arrays()[0]
        if self._pays_freely:  # a caller's function gets arrays of its own
            games = games[0].copy(), games[1].copy()
        self._payment[:] = 0
        self._pay(*games, self._payment)
        return float(self._payment[0, self.seat])

    def _look(self, illegal: bool = False) -> tuple[Observation, dict[str, Any]]:
        """Observation and info, of fresh arrays."""
        assert self.game is not None
        row, mask = np.empty(self._size, np.uint8), np.empty(self.board.num_actions, np.int8)
        games, board = self.game.arrays()
        kernels.observe_and_mask(games, board, self.seat, self._bits, row, mask)
        if self.game.is_over:
            mask[:] = 1
        info: dict[str, Any] = {"action_mask": mask, "seat": np.int64(self.seat)}
        if self._illegal != "raise":
            info["illegal_action"] = np.bool_(illegal)
        return self._form.show(row, mask.copy() if self._form.keys else mask), info
