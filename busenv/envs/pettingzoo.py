"""PettingZoo's multi-agent interface: agents in turns (AEC).

| | |
|---|---|
| Import | `from busenv import bus_v0` |
| Make | `bus_v0.env()`, or `bus_v0.raw_env()` without PettingZoo's checks |
| Agents | `player_0` ... `player_4`: the seats, 3 to 5 of them, clockwise |
| Actions | Discrete, ids as in `busenv.game.actions` (375 on the city) |
| Observation | `{"observation": uint8 (size,), "action_mask": int8 (num_actions,)}` |
| State | uint8 (size,): the table as `player_0` sees it, whoever is to move |
| Rewards | see `busenv.rewards`; by default +1 for the winner, -1/(n-1) for the others |

**Observation.** What the observing seat sees (`busenv.observation`): itself first, the others
clockwise. Any seat may look at any time; the mask is zeros for seats that are not to move. Who does
not take part (a game of 3 in an environment made for 4) sees zeros.

**Turns.** A seat that has several decisions in a row is simply selected again. The game has about
80 to 340 decisions.

**Rewards** reach every seat, the losers too, at the step that earns them.

**Illegal actions** do as `illegal` says (`busenv.envs.observation_format`). Who loses by one is paid -1, the
others nothing, and the episode ends for all; `infos` tell of each agent whether its last decision
was illegal.

**Options** of `reset`: `num_players` (up to the environment's), `rules`, `board` (of the same
sizes), `first_player`. Others are ignored, as PettingZoo's own check wants it.

    from busenv import bus_v0

    env = bus_v0.env(num_players=4)
    env.reset(seed=42)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        done = termination or truncation
        action = None if done else env.action_space(agent).sample(observation["action_mask"])
        env.step(action)

**Settings.** num_players: 3, 4 or 5. rules, board: as for `busenv.Game`. reward: a name in
`busenv.rewards.REWARDS`, or a function (see there). illegal: "raise", "lose" or "replace".
observation_keys: the names of row and mask in an observation. observation_dtype: "uint8", or
"float32" for values scaled to 0..1, in the state too. render_mode: None, "ansi", "rgb_array" or
"human" (`busenv.render.render_modes`). ValueError says what is allowed instead; ModuleNotFoundError names
what a render mode lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

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
from busenv.game.initial_state import copy_state
from busenv.game.rules import Rules, as_rules, check_players
from busenv.observation import ObservationLayout
from busenv.render.render_modes import FRAMES_A_SECOND, RENDER_MODES, Renderer
from busenv.rewards import Reward, as_reward

KEYS = ("observation", "action_mask")  # where PettingZoo looks

Observation = dict[str, np.ndarray]


def env(
    num_players: int = 4,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
    reward: str | Reward = "win",
    illegal: Illegal = "raise",
    observation_keys: Sequence[str] = KEYS,
    observation_dtype: DTypeLike = "uint8",
    render_mode: str | None = None,
) -> AECEnv:
    """The environment with PettingZoo's checks; settings as at the top of this module."""
    return wrappers.OrderEnforcingWrapper(
        raw_env(
            num_players,
            rules,
            board,
            reward,
            illegal,
            observation_keys,
            observation_dtype,
            render_mode,
        )
    )


class raw_env(AECEnv[str, Observation, int]):  # noqa: N801 - PettingZoo's own name
    """The environment itself; settings as at the top of this module."""

    metadata: dict[str, Any] = {  # noqa: RUF012 - PettingZoo's own name and form
        "name": "bus_v0",
        "render_modes": RENDER_MODES,
        "render_fps": FRAMES_A_SECOND,
        "is_parallelizable": False,  # as PettingZoo does it: every agent deciding in every cycle
    }

    def __init__(
        self,
        num_players: int = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        illegal: Illegal = "raise",
        observation_keys: Sequence[str] = KEYS,
        observation_dtype: DTypeLike = "uint8",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self._players, self._illegal = check_players(num_players), check_illegal(illegal)
        self._rules, self.board = as_rules(rules), as_board(board)
        self._pay, self._pays_freely = as_reward(reward), callable(reward)
        self._form = as_observation_format(self.board, observation_keys, observation_dtype)
        if self._form.keys is None:
            raise ValueError(
                "observation_keys is None; allowed: two names for the row and its mask"
            )
        self._flat = as_observation_format(self.board, None, observation_dtype)
        self._renderer, self.render_mode = Renderer(render_mode), render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(self._players)]
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        # A space of its own for each, since libraries seed them.
        forms = [
            as_observation_format(self.board, observation_keys, observation_dtype)
            for _ in self._seats
        ]
        self.observation_spaces = {
            agent: form.observation_space for agent, form in zip(self._seats, forms, strict=True)
        }
        self.action_spaces = {
            agent: form.action_space for agent, form in zip(self._seats, forms, strict=True)
        }
        self.state_space = self._flat.observation_space
        self._actions, self._size = self.board.num_actions, ObservationLayout(self.board).size
        self._bits = np.zeros((self._actions + 63) // 64, np.uint64)
        self._payment = np.zeros((1, MAX_PLAYERS), np.float32)
        self._seeds = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Space:
        """What an agent sees: the same for all."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """What an agent may do: the same for all."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a game. The seed draws the first player; without one it is drawn anew.

        options: see the top of this module. ValueError when they do not fit the environment.
        """
        chosen = options or {}
        players = check_players(chosen.get("num_players", self._players))
        if players > self._players:
            raise ValueError(
                f"num_players is {players}, but the environment was made for {self._players}"
            )
        board = as_board(chosen.get("board", self.board))
        if board.num_actions != self.board.num_actions or (
            ObservationLayout(board).size != ObservationLayout(self.board).size
        ):
            raise ValueError(f"{board!r} has other sizes than {self.board!r}; make another env")
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        number = int(self._seeds.integers(2**63))
        rules = chosen.get("rules", self._rules)
        self.game = Game(players, rules, board, chosen.get("first_player"), number)
        state = self.game.arrays()[0][0]
        self._last_paid = copy_state(self.game.arrays()[0])
        self._score = int(state["delivered"]), int(state["clock_stones"])
        self._paid = False
        self.agents = self.possible_agents[:players]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._playing = players
        self._wrong: frozenset[str] = frozenset()  # whose last decision was illegal
        self.agent_selection = self.agents[self.game.current_player]
        if self.render_mode == "human":
            self.render()

    @property
    def infos(self) -> dict[str, dict[str, Any]]:
        """For every agent, made anew: "illegal_action", unless illegal actions raise."""
        if self._illegal == "raise":
            return {agent: {} for agent in self.agents}
        return {agent: {"illegal_action": np.bool_(agent in self._wrong)} for agent in self.agents}

    def observe(self, agent: str) -> Observation:
        """What an agent sees, and what it may do if it is to move.

        "observation": uint8 (size,). "action_mask": int8 (num_actions,), zeros for an agent that
        is not to move. Fresh arrays; all zeros for an agent that does not take part.
        """
        seat = self._seats[agent]
        if seat >= self._playing:
            row, mask = np.zeros(self._size, np.uint8), np.zeros(self._actions, np.int8)
        else:
            row, mask = self._look(seat)
        return self._form.show(row, mask)  # type: ignore[return-value]

    def state(self) -> np.ndarray:
        """The whole table as seat 0 sees it, with who is to move: uint8 (size,), a fresh array.

        Nothing in Bus is hidden, so each agent's observation is the same from where it sits.
        """
        return self._flat.show(*self._look(0))  # type: ignore[return-value]

    def _look(self, seat: int) -> tuple[np.ndarray, np.ndarray]:
        row, mask = np.empty(self._size, np.uint8), np.empty(self._actions, np.int8)
        games, board = self.game.arrays()
        kernels.observe_and_mask(games, board, seat, self._bits, row, mask)
        return row, mask

    def step(self, action: int | None) -> None:
        """Take the selected agent's decision; None for one whose game is over.

        Raises IllegalActionError as `illegal` says, nothing changed.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        wrong = False
        try:
            self.game.step(action)  # type: ignore[arg-type]
        except IllegalActionError:
            if self._illegal == "raise":
                raise
            if self._illegal == "lose":
                self.forfeit([agent])
                return
            wrong = True
            self.game.step(legal_instead(self.game))
        if wrong or self._wrong:
            self._wrong = (self._wrong | {agent}) if wrong else (self._wrong - {agent})
        self._cumulative_rewards[agent] = 0.0
        self._go_on()
        if self.render_mode == "human":
            self.render()

    def _go_on(self) -> None:
        """Whose turn it is after a decision, and what it has paid."""
        games, _ = self.game.arrays()
        state, over = games[0], self.game.is_over
        if over:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = self.possible_agents[int(state["seat"])]
        # Points change seldom, and only then, or at the end, a named reward is paid.
        score = int(state["delivered"]), int(state["clock_stones"])
        if self._pays_freely or over or score != self._score:
            self._score = score
            self._credit(copy_state(games))
        elif self._paid:
            self.rewards = dict.fromkeys(self.agents, 0.0)
            self._paid = False

    def _credit(self, after: np.ndarray) -> None:
        """Hand out what is paid for what happened since it was paid last."""
        states = self._last_paid, after
        if self._pays_freely:  # a caller's function gets arrays of its own
            states = copy_state(states[0]), copy_state(states[1])
        self._payment[:] = 0
        self._pay(*states, self._payment)
        self._last_paid = after
        paid = self._payment[0].tolist()
        self._hand_out({agent: paid[self._seats[agent]] for agent in self.agents})

    def _hand_out(self, rewards: dict[str, float]) -> None:
        self.rewards = rewards
        self._accumulate_rewards()
        self._paid = True

    def forfeit(self, agents: Collection[str]) -> None:
        """End the episode for all: these agents lose it, and are paid -1, the others nothing."""
        self._wrong = frozenset(agents)
        self._cumulative_rewards[self.agent_selection] = 0.0
        self.terminations = dict.fromkeys(self.agents, True)
        self._hand_out({agent: -1.0 if agent in agents else 0.0 for agent in self.agents})

    def render(self) -> str | np.ndarray | None:
        """The table as the render mode has it (`busenv.render.render_modes`)."""
        return self._renderer.render(self.game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._renderer.close()
