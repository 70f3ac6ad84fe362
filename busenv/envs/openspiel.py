"""OpenSpiel: Bus as a Python game, and a compiled evaluator for OpenSpiel's tree search.

Importing this module registers the game; requires the extra `openspiel`.

    import pyspiel
    import busenv.envs.openspiel

    game = pyspiel.load_game("busenv(players=3,rules=splotter-1999)")

| parameter | default | allowed |
|---|---|---|
| `players` | 4 | 3, 4, 5 |
| `rules` | capstone-2024 | the name of an edition, the path of a file of rules |
| `board` | city | the name of a board, the path of a board file |
| `first_player` | 0 | the seat that starts (R1) |
| `reward` | win | a name in `busenv.REWARDS` |
| `relative_types` | False | True, to count building types from the clock (`busenv.observation`) |

A path must not contain a comma or bracket. Invalid values raise ValueError.

The game is sequential and deterministic, with perfect information. The starting player is a
parameter, since algorithms for deterministic games reject chance nodes. Seats differ only in who
starts (and in line markers in splotter-1999). The reward of a game is given at its end, as
OpenSpiel's tree search requires. All rewards except `deliveries` are zero-sum.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms.mcts import Evaluator
from open_spiel.python.observation import IIGObserverForPublicInfoGame

from busenv.game.bounds import longest_game, most_deliveries
from busenv.game.game import Game
from busenv.game.random_playouts import random_returns
from busenv.observation import ObservationLayout, absolute_action, observe
from busenv.render.game_drawing import game_text
from busenv.rewards import REWARDS
from busenv.validation import check_whole

PARAMETERS: dict[str, Any] = {
    "players": 4,
    "rules": "capstone-2024",
    "board": "city",
    "first_player": 0,
    "reward": "win",
    "relative_types": False,
}


def _game_type(zero_sum: bool) -> pyspiel.GameType:
    utility = pyspiel.GameType.Utility
    return pyspiel.GameType(
        short_name="busenv",
        long_name="Bus",
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
        information=pyspiel.GameType.Information.PERFECT_INFORMATION,
        utility=utility.ZERO_SUM if zero_sum else utility.GENERAL_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=5,
        min_num_players=3,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification=PARAMETERS,
    )


def _utilities(opening: Game, reward: str) -> tuple[float, float]:
    """Return the minimum and maximum return of a seat."""
    players, most = opening.num_players, most_deliveries(opening.num_players, opening.rules)
    margin = most + opening.rules.stones_for(players)
    return {
        "rank": (-1.0, 1.0),
        "margin": (-float(margin), float(margin)),
        "deliveries": (0.0, float(most)),
    }.get(reward, (-1 / (players - 1), 1.0))


class BusGame(pyspiel.Game):
    """OpenSpiel's game object.

    opening: the `busenv.Game` before the first decision. reward: name of the reward.
    relative_types: whether actions and observations count building types from the clock.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        values = PARAMETERS | (params or {})
        if values["reward"] not in REWARDS:
            raise ValueError(f"reward is {values['reward']!r}; allowed: one of {[*REWARDS]}")
        self.reward: str = values["reward"]
        self.relative_types: bool = values["relative_types"]
        self.opening = Game(
            values["players"], values["rules"], values["board"], values["first_player"], seed=0
        )
        players, rules, board = self.opening.num_players, self.opening.rules, self.opening.board
        zero_sum = self.reward != "deliveries"
        least, most = _utilities(self.opening, self.reward)
        info = pyspiel.GameInfo(
            num_distinct_actions=board.num_actions,
            max_chance_outcomes=0,
            num_players=players,
            min_utility=least,
            max_utility=most,
            utility_sum=0.0 if zero_sum else None,
            max_game_length=longest_game(players, rules, board),
        )
        super().__init__(_game_type(zero_sum), info, params or {})

    def new_initial_state(self) -> BusState:
        return BusState(self)

    def make_py_observer(
        self, iig_obs_type: pyspiel.IIGObservationType | None = None, params: Any = None
    ) -> BusObserver | IIGObserverForPublicInfoGame:
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return BusObserver(self, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class BusState(pyspiel.State):
    """A state.

    bus: its `busenv.Game`, for agents and drawings; callers must not change it. Its building types
    are absolute; `busenv.observation.relative_action` converts the actions of agents.
    """

    def __init__(self, game: BusGame) -> None:
        super().__init__(game)
        self.bus = game.opening.clone()
        self._relative_types = game.relative_types

    def current_player(self) -> int:
        seat = self.bus.current_player
        return seat if seat >= 0 else pyspiel.PlayerId.TERMINAL

    def is_terminal(self) -> bool:
        return self.bus.is_over

    def legal_actions(self, player: int | None = None) -> list[int]:
        """Return the legal actions; overrides OpenSpiel's method, which makes four more calls."""
        turn = player is None or player == self.bus.current_player
        return self.bus.legal_actions() if turn else []

    def _legal_actions(self, player: int) -> list[int]:
        return self.bus.legal_actions()

    def _apply_action(self, action: int) -> None:
        self.bus.step(self._absolute(action))

    def _action_to_string(self, player: int, action: int) -> str:
        return self.bus.describe(self._absolute(action))

    def _absolute(self, action: int) -> int:
        return absolute_action(self.bus, action) if self._relative_types else action

    def returns(self) -> list[float]:
        """Return the returns by seat; zeros before the end."""
        if not self.bus.is_over:
            return [0.0] * self.bus.num_players
        return random_returns(self.bus, 1, self.get_game().reward)[0].tolist()

    def __str__(self) -> str:
        return game_text(self.bus)


class BusObserver:
    """The observation of a seat (`busenv.observation`), scaled to 0..1: float32, (size,)."""

    def __init__(self, game: BusGame, params: Any = None) -> None:
        if params:
            raise ValueError(f"params is {params!r}: leave it out, the observer has no parameters")
        self._scale = ObservationLayout(game.opening.board).scale
        self._relative_types = game.relative_types
        self.tensor = np.zeros(len(self._scale), np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: BusState, player: int) -> None:
        row = observe(state.bus, player, self._relative_types)
        np.minimum(row * self._scale, 1, out=self.tensor)

    def string_from(self, state: BusState, player: int) -> str:
        return game_text(state.bus)


class PlayoutEvaluator(Evaluator):
    """A compiled `RandomRolloutEvaluator` for OpenSpiel's Python `mcts.MCTSBot`.

    n_rollouts: random playouts per evaluation, 1 or more, default 1. seed: of the playouts,
        default 0. Raises ValueError for less than one playout.
    """

    def __init__(self, n_rollouts: int = 1, seed: int = 0) -> None:
        self.n_rollouts = check_whole("n_rollouts", n_rollouts, 1)
        self._random = random.Random(seed)

    def evaluate(self, state: BusState) -> np.ndarray:
        """Return the mean returns by seat, float64."""
        seed, reward = self._random.getrandbits(64), state.get_game().reward
        return random_returns(state.bus, self.n_rollouts, reward, seed).mean(axis=0)

    def prior(self, state: BusState) -> list[tuple[int, float]]:
        """Return all legal actions with a uniform probability."""
        legal = state.bus.legal_actions()
        return [(action, 1 / len(legal)) for action in legal]


pyspiel.register_game(_game_type(zero_sum=True), BusGame)
