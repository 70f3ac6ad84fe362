"""busenv: the board game Bus as a reinforcement-learning environment.

    >>> import busenv
    >>> game = busenv.Game(num_players=4, seed=1)
    >>> while not game.is_over:
    ...     game.step(game.legal_actions()[0])
    >>> game.ranking()
    [0, 1, 2, 3]

- `Game`, `Record`, `Position`: one game, its record, its state as a value.
- `Batch`, `random_playouts`, `random_returns`: many games in compiled code.
- `Rules`, `EDITIONS`, `load_rules`; `Board`, `load_board`, `generate_board`: rules and boards.
- `BoardAction`, `Building`, `Phase`, `Move`, `decode`, `encode`, `describe_action`,
  `parse_action`: action ids.
- `ObservationLayout`, `observe`, `REWARDS`: observations and rewards.
- `GameDataset`, `load_dataset`: recorded games as training data.
- `make_agent`, `rate`: agents, and games between them. `busenv.play.play` shows the play page in a
  notebook.
- `longest_game`: an upper bound on the length of a game.

Environments: `gymnasium.make("busenv/Bus-v0")`, `gymnasium.make_vec("busenv/BusSelfPlay-v0")`,
`busenv.bus_v0` (PettingZoo) and the modules of `busenv.envs`. RULES.md in this package has the
rules of the game.
"""

from typing import TYPE_CHECKING, Any

from busenv.batch.batch import Batch
from busenv.core.state import BoardAction, Building, Phase
from busenv.dataset import GameDataset, load_dataset
from busenv.envs.vector import register as _register
from busenv.errors import AgentError, BoardError, IllegalActionError, PositionError, RecordError
from busenv.game.actions import Move, decode, describe_action, encode, parse_action
from busenv.game.board import Board
from busenv.game.board_generator import generate_board
from busenv.game.board_specs import load_board
from busenv.game.bounds import longest_game
from busenv.game.game import Game
from busenv.game.position import Position
from busenv.game.random_playouts import Playouts, random_playouts, random_returns
from busenv.game.record import Record
from busenv.game.rules import EDITIONS, Rules, load_rules
from busenv.observation import ObservationLayout, observe
from busenv.rewards import REWARDS

if TYPE_CHECKING:
    from busenv.agents import make_agent
    from busenv.evaluation import rate

__version__ = "0.1.0"

_register()


def __getattr__(name: str) -> Any:
    """Import the agents when they are first used: their kernels take time to load."""
    if name == "make_agent":
        from busenv.agents import make_agent

        return make_agent
    if name == "rate":
        from busenv.evaluation import rate

        return rate
    raise AttributeError(f"module 'busenv' has no attribute {name!r}")


__all__ = [
    "EDITIONS",
    "REWARDS",
    "AgentError",
    "Batch",
    "Board",
    "BoardAction",
    "BoardError",
    "Building",
    "Game",
    "GameDataset",
    "IllegalActionError",
    "Move",
    "ObservationLayout",
    "Phase",
    "Playouts",
    "Position",
    "PositionError",
    "Record",
    "RecordError",
    "Rules",
    "decode",
    "describe_action",
    "encode",
    "generate_board",
    "load_board",
    "load_dataset",
    "load_rules",
    "longest_game",
    "make_agent",
    "observe",
    "parse_action",
    "random_playouts",
    "random_returns",
    "rate",
]
