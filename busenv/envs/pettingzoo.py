"""PettingZoo's AEC environment: agents act in turns.

| | |
|---|---|
| Import | `from busenv import bus_v0`, or `pettingzoo.make("aec", "busenv/bus-v0")` |
| Make | `bus_v0.env()`, or `bus_v0.raw_env()` without PettingZoo's checks |
| Agents | `player_0` ... `player_4`: 3 to 5 seats, clockwise |
| Action space | Discrete; ids as in `busenv.game.actions` (375 on the city) |
| Observation | `{"observation": uint8 (size,), "action_mask": int8 (num_actions,)}`, or the row |
| State | uint8 (size,): the view of `player_0`, in every turn |
| Rewards | see `busenv.rewards`; by default +1 for the winner, -1/(n-1) for the others |

**Observation.** The view of the observing seat (`busenv.observation`): itself first, the others
clockwise. Every agent can observe in every turn; the mask is all zeros unless it is the agent's
turn. An agent that does not take part (in a game of 3 in an environment for 4) observes zeros.

**Turns.** A seat with several decisions in a row is selected again. Games of scripted agents have
about 75 to 340 decisions.

**Rewards** go to every seat in the step that earns them.

**Illegal actions** have the effect that `illegal` sets (`busenv.envs.illegal_actions`). With
"lose", the agent's reward is -1, the others' 0, and the episode ends for all. `infos` report for
each agent whether its last action was illegal.

**Options** of `reset`: `num_players` (at most the environment's), `rules`, `board` (of the same
sizes), `first_player`.

    from busenv import bus_v0

    env = bus_v0.env(num_players=4)
    env.reset(seed=42)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        done = termination or truncation
        action = None if done else env.action_space(agent).sample(observation["action_mask"])
        env.step(action)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from busenv.core import kernels
from busenv.core.state import MAX_PLAYERS
from busenv.envs.illegal_actions import replacement_action
from busenv.envs.observation_format import Observation, ObservationFormat
from busenv.errors import IllegalActionError
from busenv.game.board_specs import Boards, as_board, as_boards, sizes_of
from busenv.game.game import Game
from busenv.game.rules import Rules, as_rules, check_players
from busenv.game.states import copy_state
from busenv.observation import absolute_action, observe
from busenv.render.render_modes import RENDER_FPS, RENDER_MODES, Renderer
from busenv.rewards import Reward, as_reward
from busenv.validation import (
    Illegal,
    check_illegal,
    check_options,
    check_seed,
    check_whole,
    with_mask_hint,
)

KEYS = ("observation", "action_mask")  # PettingZoo's names
OPTIONS = ("num_players", "rules", "board", "first_player", "options")  # the last: its API test's


def env(num_players: int = 4, **settings: Any) -> AECEnv:
    """Make the environment with PettingZoo's checks; arguments as for `raw_env`."""
    return wrappers.OrderEnforcingWrapper(raw_env(num_players, **settings))


class raw_env(AECEnv[str, Observation, int]):  # noqa: N801 - PettingZoo's name
    """The environment without PettingZoo's checks.

    num_players: 3, 4 (default) or 5. The other arguments are keyword-only.
    rules, board: as for `busenv.Game`. Default "capstone-2024" and "city". board may also be a set
        such as "generated:city:train", or a list of boards of equal sizes, from which each game
        draws its board.
    reward: a name in `busenv.REWARDS` or a function (`busenv.rewards`). Default "win".
    illegal: "raise" (default), "lose" or "replace" (`busenv.envs.illegal_actions`).
    observation_keys: names of row and mask in an observation, default
        ("observation", "action_mask"); None for flat rows, with the mask in
        `infos[agent]["action_mask"]`.
    observation_dtype: "uint8" (default), or "float32" for values scaled to 0..1, in `state` too.
    relative_types: count building types from the clock in observations and actions
        (`busenv.observation`). Default False.
    render_mode: None (default), "ansi", "rgb_array" or "human" (`busenv.render.render_modes`).

    Raises ValueError for an invalid setting, FileNotFoundError for an unknown board, and
    ModuleNotFoundError if a render mode needs an extra.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - PettingZoo's attribute
        "name": "bus_v0",
        "render_modes": RENDER_MODES,
        "render_fps": RENDER_FPS,
        "is_parallelizable": False,  # PettingZoo's conversion lets every agent act in every cycle
    }

    def __init__(
        self,
        num_players: int = 4,
        *,
        rules: str | Path | Rules = "capstone-2024",
        board: Boards = "city",
        reward: str | Reward = "win",
        illegal: Illegal = "raise",
        observation_keys: Sequence[str] | None = KEYS,
        observation_dtype: DTypeLike = "uint8",
        relative_types: bool = False,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self._max_players, self._illegal = check_players(num_players), check_illegal(illegal)
        self._rules, self._boards = as_rules(rules), as_boards(board)
        self.board = self._boards[0]
        self._relative_types = bool(relative_types)
        self._reward, self._reward_is_custom = as_reward(reward), callable(reward)
        self.observation_format = ObservationFormat(self.board, observation_keys, observation_dtype)
        self._state_format = ObservationFormat(self.board, None, observation_dtype)
        self._renderer, self.render_mode = Renderer(render_mode), render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(self._max_players)]
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._num_actions = self.board.num_actions
        # Every agent has spaces of its own, since libraries seed them.
        self.observation_spaces = {
            agent: copy.deepcopy(self.observation_format.observation_space)
            for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: copy.deepcopy(self.observation_format.action_space)
            for agent in self.possible_agents
        }
        self.state_space = self._state_format.observation_space
        self._observation_size = kernels.observation_length(self.board.array)
        self._reward_row = np.zeros((1, MAX_PLAYERS), np.float32)
        self._seed_generator = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the observation space, equal for all agents."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space, equal for all agents."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game.

        seed: 0 to 2**64 - 1, seeds the first player of this game and of later ones without a seed.
        options: see the top of this module.

        Raises ValueError for another seed, an unknown option or an invalid value.
        """
        options = check_options(options, OPTIONS)
        players = check_players(options.get("num_players", self._max_players))
        if players > self._max_players:
            raise ValueError(
                f"num_players is {players}; allowed: at most {self._max_players}, as in the "
                "environment's constructor"
            )
        first = self._boards[0]
        board = as_board(options.get("board", first))
        if sizes_of(board) != sizes_of(first):
            raise ValueError(f"{board!r} has other sizes than {first!r}; make another env")
        rules = as_rules(options.get("rules", self._rules))
        first_player = options.get("first_player")
        if first_player is not None:
            check_whole("first_player", first_player, 0, players - 1)
        if seed is not None:
            self._seed_generator = np.random.default_rng(check_seed(seed))
        game_seed = int(self._seed_generator.integers(2**63))
        if len(self._boards) > 1 and "board" not in options:
            board = self._boards[int(self._seed_generator.integers(len(self._boards)))]
        self.game = Game(players, rules, board, first_player, game_seed)
        self.board = board
        state = self.game.arrays()[0]
        self._rewarded_state = copy_state(state)  # the state at the last payment of rewards
        self._score = int(state[0]["delivered"]), int(state[0]["clock_stones"])
        self._has_rewards = False
        self.agents = self.possible_agents[:players]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._last_illegal: frozenset[str] = frozenset()  # agents whose last action was illegal
        self._write_infos()
        self.agent_selection = self.agents[self.game.current_player]
        if self.render_mode == "human":
            self.render()

    def _write_infos(self) -> None:
        """Write whether the last actions were illegal, and with observation_keys=None the masks."""
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        for agent, info in self.infos.items():
            if self._illegal != "raise":
                info["illegal_action"] = np.array(agent in self._last_illegal)
            if self.observation_format.keys is None:
                info["action_mask"] = self._mask(agent)

    def _mask(self, agent: str) -> np.ndarray:
        if self._seats[agent] == self.game.current_player:
            return self.game.action_mask().view(np.int8)
        return np.zeros(self._num_actions, np.int8)

    def observe(self, agent: str) -> Observation:
        """Return an agent's observation and mask, as fresh arrays.

        "observation": uint8, (size,). "action_mask": int8, (num_actions,), all zeros unless it is
        the agent's turn. Both are zeros for an agent that does not take part.
        """
        seat = self._seats[agent]
        row = np.zeros(self._observation_size, np.uint8)
        mask = np.zeros(self._num_actions, np.int8)
        if seat < self.game.num_players:
            games, board = self.game.arrays()
            kernels.observe_and_mask(games, board, seat, self._relative_types, row, mask)
        return self.observation_format.convert(row, mask)

    def state(self) -> np.ndarray:
        """Return the observation of seat 0, which encodes the seat to move.

        Its shape is (size,), its dtype `observation_dtype`; the array is fresh.

        Bus has no hidden information, so the agents' observations differ only in the seats' order.
        """
        row = observe(self.game, 0, self._relative_types)
        return self._state_format.convert(row, np.empty(0))  # type: ignore[return-value]

    def step(self, action: int | None) -> None:
        """Take the selected agent's action; None for an agent that has terminated.

        Raises IllegalActionError for an illegal action with illegal="raise", without any change.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if self._relative_types:
            action = absolute_action(self.game, action)  # type: ignore[arg-type]
        illegal = False
        try:
            self.game.step(action)  # type: ignore[arg-type]
        except IllegalActionError as error:
            if self._illegal == "raise":
                raise with_mask_hint(error) from None
            if self._illegal == "lose":
                self._forfeit(agent)
                return
            illegal = True
            self.game.step(replacement_action(self.game))
        if illegal or self._last_illegal:
            self._last_illegal = (self._last_illegal - {agent}) | ({agent} if illegal else set())
        self._cumulative_rewards[agent] = 0.0
        self._update()
        if self.render_mode == "human":
            self.render()

    def _update(self) -> None:
        """Update terminations, the selected agent and rewards after a decision."""
        games, _ = self.game.arrays()
        state, over = games[0], self.game.is_over
        if over:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = self.possible_agents[int(state["seat"])]
        self._write_infos()
        # Named rewards are zero unless points change or the game ends, both of which are rare.
        score = int(state["delivered"]), int(state["clock_stones"])
        if self._reward_is_custom or over or score != self._score:
            self._score = score
            self._compute_rewards(copy_state(games))
        elif self._has_rewards:
            self.rewards = dict.fromkeys(self.agents, 0.0)
            self._has_rewards = False

    def _compute_rewards(self, after: np.ndarray) -> None:
        """Compute the rewards since they were last computed."""
        self._reward_row[:] = 0
        self._reward(self._rewarded_state, after, self._reward_row)
        self._rewarded_state = after
        rewards = self._reward_row[0].tolist()
        self._set_rewards({agent: rewards[self._seats[agent]] for agent in self.agents})

    def _set_rewards(self, rewards: dict[str, float]) -> None:
        self.rewards = rewards
        self._accumulate_rewards()
        self._has_rewards = True

    def _forfeit(self, loser: str) -> None:
        """End the episode for all agents, with a reward of -1 for one and 0 for the others."""
        self._last_illegal = frozenset([loser])
        self._cumulative_rewards[loser] = 0.0
        self.terminations = dict.fromkeys(self.agents, True)
        self._write_infos()
        self._set_rewards({agent: -1.0 if agent == loser else 0.0 for agent in self.agents})

    def render(self) -> str | np.ndarray | None:
        """Render the game (`busenv.render.render_modes`)."""
        return self._renderer.render(self.game)

    def close(self) -> None:
        """Close the window."""
        self._renderer.close()
