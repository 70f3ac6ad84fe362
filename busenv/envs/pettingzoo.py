"""PettingZoo's multi-agent interface (AEC).

| | |
|---|---|
| Import | `from busenv import bus_v0` |
| Agents | `player_0` ... `player_4`: the seats, 3 to 5 of them, clockwise |
| Actions | Discrete, ids as in `busenv.actions` (375 on the city) |
| Observation | `{"observation": uint8 (size,), "action_mask": int8 (num_actions,)}` |
| Rewards | see `busenv.rewards`; by default +1 for the winner, -1/(n-1) for the others |

**Observation.** What the observing seat sees (`busenv.observation`): itself first, the others
clockwise. Any seat may look at any time; the mask is zeros for seats that are not to move.

**Turns.** A seat that has several decisions in a row is simply selected again. The game has about
80 to 340 decisions.

**Rewards** reach every seat, the losers too, at the step that earns them.

**Illegal actions** raise `busenv.IllegalActionError` and change nothing.

**Options** of `reset`: `num_players` (up to the environment's), `rules`, `board` (of the same
sizes), `first_player`. Others are ignored, as PettingZoo's own check wants it.

    from busenv.envs import pettingzoo as bus_v0

    env = bus_v0.env(num_players=4)
    env.reset(seed=42)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        done = termination or truncation
        action = None if done else env.action_space(agent).sample(observation["action_mask"])
        env.step(action)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from busenv.board import Board, as_board
from busenv.core import kernels
from busenv.core.state import MAX_PLAYERS
from busenv.game import Game
from busenv.observation import ObservationLayout
from busenv.render.modes import FRAMES_A_SECOND, RENDER_MODES, Renderer
from busenv.rewards import Reward, as_reward
from busenv.rules import Rules, as_rules, check_players


def env(**settings: Any) -> AECEnv:
    """The environment with PettingZoo's checks; settings as for `raw_env`."""
    return wrappers.OrderEnforcingWrapper(raw_env(**settings))


class raw_env(AECEnv[str, dict[str, np.ndarray], int]):  # noqa: N801 - PettingZoo's own name
    """The environment itself.

    num_players: 3, 4 or 5. rules, board: as for `busenv.Game`. reward: a name in
    `busenv.rewards.REWARDS`, or a function (see there). render_mode: None, "ansi", "rgb_array" or
    "human" (`busenv.render.modes`).

    ValueError says what is allowed instead; ModuleNotFoundError names what a render mode lacks.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - PettingZoo's own name and form
        "name": "bus_v0",
        "render_modes": RENDER_MODES,
        "render_fps": FRAMES_A_SECOND,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        num_players: int = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self._renderer = Renderer(render_mode)
        self.render_mode = render_mode
        self._players = check_players(num_players)
        self._rules, self._board = as_rules(rules), as_board(board)
        self._pay, self._pays_always = as_reward(reward), callable(reward)
        self.possible_agents = [f"player_{seat}" for seat in range(self._players)]
        actions, size = self._board.num_actions, ObservationLayout(self._board).size
        self._actions, self._size = actions, size
        self.observation_spaces = {
            agent: spaces.Dict(
                observation=spaces.Box(0, 255, (size,), np.uint8),
                action_mask=spaces.Box(0, 1, (actions,), np.int8),
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(actions) for agent in self.possible_agents}
        self._bits = np.zeros((actions + 63) // 64, np.uint64)
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
        board = as_board(chosen.get("board", self._board))
        if board.num_actions != self._board.num_actions or (
            ObservationLayout(board).size != ObservationLayout(self._board).size
        ):
            raise ValueError(f"{board!r} has other sizes than {self._board!r}; make another env")
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        number = int(self._seeds.integers(2**63))
        rules = chosen.get("rules", self._rules)
        self.game = Game(players, rules, board, chosen.get("first_player"), number)
        state = self.game.arrays()[0][0]
        self._last_paid = self.game.arrays()[0].copy()
        self._score = int(state["delivered"]), int(state["clock_stones"])
        self._paid = False
        self.agents = self.possible_agents[:players]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._numbers = {agent: seat for seat, agent in enumerate(self.agents)}
        self.agent_selection = self.agents[self.game.current_player]
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """What an agent sees, and what it may do if it is to move.

        "observation": uint8 (size,). "action_mask": int8 (num_actions,), zeros for an agent that
        is not to move. Fresh arrays.
        """
        seat = self._numbers[agent]
        row, mask = np.empty(self._size, np.uint8), np.empty(self._actions, np.int8)
        games, board = self.game.arrays()
        kernels.observe_and_mask(games, board, seat, self._bits, row, mask)
        return {"observation": row, "action_mask": mask}

    def step(self, action: int | None) -> None:
        """Take the selected agent's decision; None for one whose game is over.

        Raises IllegalActionError, nothing changed, when the action is not legal now.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        games, _ = self.game.arrays()
        self.game.step(action)  # type: ignore[arg-type]
        state, over = games[0], self.game.is_over
        if over:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = self.agents[int(state["seat"])]
        self._cumulative_rewards[agent] = 0.0
        # Points change seldom, and only then, or at the end, a named reward is paid.
        score = int(state["delivered"]), int(state["clock_stones"])
        if self._pays_always or over or score != self._score:
            self._score = score
            self._credit(games.copy())
        elif self._paid:
            self.rewards = dict.fromkeys(self.agents, 0.0)
            self._paid = False
        if self.render_mode == "human":
            self.render()

    def _credit(self, after: np.ndarray) -> None:
        """Hand out what is paid for what happened since it was paid last."""
        self._payment[:] = 0
        self._pay(self._last_paid, after, self._payment)
        self._last_paid = after
        paid = self._payment[0].tolist()
        self.rewards = {name: paid[seat] for seat, name in enumerate(self.agents)}
        self._accumulate_rewards()
        self._paid = True

    def render(self) -> str | np.ndarray | None:
        """The table as the render mode has it (`busenv.render.modes`)."""
        return self._renderer.render(self.game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._renderer.close()
