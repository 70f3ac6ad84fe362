"""Gymnasium's single-agent environment: one learner's seat, the other seats played by agents.

`gymnasium.make("busenv:busenv/Bus-v0")` imports busenv and makes a `BusEnv`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import DTypeLike

from busenv.batch.opponents import OpponentPool, Player
from busenv.core import kernels
from busenv.core.state import MAX_PLAYERS
from busenv.envs.illegal_actions import replacement_action
from busenv.envs.observation_format import Observation, ObservationFormat
from busenv.errors import IllegalActionError
from busenv.game.board_specs import Boards, as_boards
from busenv.game.game import Game
from busenv.game.rules import Rules, as_rules, player_counts
from busenv.game.states import copy_state
from busenv.observation import absolute_action
from busenv.render.render_modes import RENDER_FPS, RENDER_MODES, Renderer
from busenv.rewards import Reward, as_reward
from busenv.validation import Illegal, check_illegal, check_options, check_whole, with_mask_hint


class BusEnv(gymnasium.Env[Observation, np.int64]):
    """One seat of a game of Bus; agents play the other seats within `step`.

    Observation: a row from the learner's view (`busenv.observation`). Action: an id of
    `busenv.game.actions`. Reward: the learner's, from its decision to its next one. All returned
    arrays are fresh. `info` holds:

    - `action_mask`: int8, (num_actions,), the legal actions; all ones when the game is over.
    - `seat`: int64, the learner's seat.
    - `illegal_action`: bool, (), whether the last action was illegal; absent with illegal="raise".

    num_players: 3, 4 or 5, or a sequence of them to draw from in each episode. Default 4.
    opponents: an agent spec ("random", "greedy", ...), or an object with `act(game)` or
        `choose(games, board)`, for all other seats; or a sequence of them, clockwise from the
        learner. Default "greedy". Agents given by spec are reset with a new seed in each episode;
        objects are never reset.
    learner_seat: the learner's seat, or None (default) to draw it in each episode.
    rules, board: as for `busenv.Game`. Default "capstone-2024" and "city". board may also be a set
        such as "generated:city:train", or a list of boards of equal sizes, from which each episode
        draws its board (`env.unwrapped.board`).
    reward: a name in `busenv.REWARDS` or a function (`busenv.rewards`). Default "win".
    illegal: "raise" (default), "lose" or "replace" (`busenv.envs.illegal_actions`).
    observation_keys: None (default) for flat rows, or the names of row and mask in a dict.
    observation_dtype: "uint8" (default), or "float32" for values scaled to 0..1.
    relative_types: count building types from the clock in observations and actions
        (`busenv.observation`). Default False.
    render_mode: None (default), "ansi", "rgb_array" or "human" (`busenv.render.render_modes`).

    Raises ValueError for an invalid setting, FileNotFoundError for an unknown board, and
    ModuleNotFoundError if a render mode needs an extra.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's attribute
        "render_modes": RENDER_MODES,
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        num_players: int | Sequence[int] = 4,
        *,
        opponents: str | Player | Sequence[str | Player] = "greedy",
        learner_seat: int | None = None,
        rules: str | Path | Rules = "capstone-2024",
        board: Boards = "city",
        reward: str | Reward = "win",
        illegal: Illegal = "raise",
        observation_keys: Sequence[str] | None = None,
        observation_dtype: DTypeLike = "uint8",
        relative_types: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self._player_counts = player_counts(num_players)
        if learner_seat is not None:
            learner_seat = check_whole(
                "learner_seat", learner_seat, 0, min(self._player_counts) - 1
            )
        self._learner_seat, self._illegal = learner_seat, check_illegal(illegal)
        self._rules, self._boards = as_rules(rules), as_boards(board)
        self.board = self._boards[0]
        self._format = ObservationFormat(self.board, observation_keys, observation_dtype)
        self.observation_space = self._format.observation_space
        self.action_space = self._format.action_space
        self._reward, self._relative_types = as_reward(reward), bool(relative_types)
        self._renderer, self.render_mode = Renderer(render_mode), render_mode
        if opponents is None:
            raise ValueError(
                "opponents is None: name agents for the other seats, or use "
                "busenv/BusSelfPlay-v0 (make_vec) or busenv.bus_v0 for the decisions of every seat"
            )
        self._num_opponents = max(self._player_counts) - 1
        self._opponents = OpponentPool(opponents, self._num_opponents)
        self._observation_size = kernels.observation_length(self.board.array)
        self._rewards = np.zeros((1, MAX_PLAYERS), np.float32)
        self._forfeited = False
        self.game: Game | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a game and play up to the learner's first decision.

        options: "first_player" sets the starting seat, which every number of players must have.

        Returns the observation and `info`. Raises ValueError for another option or seat.
        """
        option = check_options(options, ["first_player"]).get("first_player")
        if option is not None:
            check_whole("first_player", option, 0, min(self._player_counts) - 1)
        super().reset(seed=seed)
        random = self.np_random
        num_players = self._player_counts[int(random.integers(len(self._player_counts)))]
        seat, first_player = (int(random.integers(num_players)) for _ in range(2))
        if self._learner_seat is not None:
            seat = self._learner_seat
        first_player = first_player if option is None else option
        game_seed = int(random.integers(2**63))
        board = self.board
        if len(self._boards) > 1:
            board = self._boards[int(random.integers(len(self._boards)))]
        game = Game(num_players, self._rules, board, first_player, game_seed)
        self.game = None  # until the opponents have moved
        seeds = random.integers(2**32, size=self._num_opponents, dtype=np.uint64)
        self._opponents.reset(seeds)
        rng_states = np.zeros(MAX_PLAYERS, np.uint64)
        rng_states[(seat + 1 + np.arange(num_players - 1)) % num_players] = seeds[: num_players - 1]
        self._opponents.play_game(game, seat, rng_states)
        self.board = board
        self.game, self.seat, self._rng_states, self._forfeited = game, seat, rng_states, False
        if self.render_mode == "human":
            self.render()
        return self._observe()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take the learner's action and play up to its next decision or the end.

        Returns observation, reward, terminated, truncated (always False) and `info`.

        Raises IllegalActionError for an illegal action with illegal="raise" and for any action
        after the end, and ResetNeeded before the first `reset`; the game is unchanged then. Raises
        AgentError if an opponent chooses an illegal action or one given as a spec fails, and the
        exceptions of a reward function and of an opponent passed as an object: call `reset` then.
        """
        game = self.game
        if game is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if self._forfeited:
            raise IllegalActionError("an illegal action has ended the episode: call reset()")
        if not game.is_over and game.current_player != self.seat:
            raise gymnasium.error.ResetNeeded("an opponent has failed: call reset()")
        if self._relative_types:
            action = absolute_action(game, action)  # type: ignore[arg-type]
        before, illegal = copy_state(game.arrays()[0]), False
        try:
            game.step(action)  # type: ignore[arg-type]  # accepts NumPy integers
        except IllegalActionError as error:
            if game.is_over:
                raise
            if self._illegal == "raise":
                raise with_mask_hint(error) from None
            if self._illegal == "lose":
                self._forfeited = True
                observation, info = self._observe(illegal=True)
                return observation, -1.0, True, False, info
            game.step(replacement_action(game))
            illegal = True
        self._opponents.play_game(game, self.seat, self._rng_states)
        self._rewards[:] = 0
        self._reward(before, game.arrays()[0], self._rewards)
        if self.render_mode == "human":
            self.render()
        observation, info = self._observe(illegal)
        return observation, float(self._rewards[0, self.seat]), game.is_over, False, info

    def action_masks(self) -> np.ndarray:
        """Return the legal actions: bool, (num_actions,); all true when the game is over."""
        if self.game is None:
            raise gymnasium.error.ResetNeeded("call reset() before action_masks()")
        if self.game.is_over:
            return np.ones(self.board.num_actions, np.bool_)
        return self.game.action_mask()

    def render(self) -> str | np.ndarray | None:
        """Render the game (`busenv.render.render_modes`); returns None before `reset`."""
        return self._renderer.render(self.game) if self.game else None

    def close(self) -> None:
        """Close the window and the opponents built from specs."""
        self._renderer.close()
        self._opponents.close()

    def _observe(self, illegal: bool = False) -> tuple[Observation, dict[str, Any]]:
        assert self.game is not None
        row = np.empty(self._observation_size, np.uint8)
        mask = np.empty(self.board.num_actions, np.int8)
        games, board = self.game.arrays()
        relative = self._relative_types
        kernels.observe_and_mask(games, board, self.seat, relative, row, mask)
        if self.game.is_over:
            mask[:] = 1
        info: dict[str, Any] = {"action_mask": mask, "seat": np.int64(self.seat)}
        if self._illegal != "raise":
            info["illegal_action"] = np.array(illegal)
        return self._format.convert(row, mask.copy() if self._format.keys else mask), info
