"""busenv: the board game Bus as a reinforcement-learning environment.

    >>> import busenv
    >>> game = busenv.Game(num_players=4, seed=1)
    >>> while not game.is_over:
    ...     game.step(game.legal_actions()[0])
    >>> game.ranking()
    [0, 1, 2, 3]

`Game` is one game, `Batch` many side by side; `random_playouts` plays many at full speed,
`random_returns` one on from where it stands, and `longest_game` bounds how long one goes on.
`EDITIONS` and `Rules` say by which rules, `load_board` on which map, `describe_action`, `decode`
and `encode` what an action id means, `ObservationLayout` what a seat sees, `REWARDS` what it is
paid. `make_agent` builds somebody to play against, `play` shows a game in a notebook's cell. The
rules page is RULES.md in this package.
"""

from busenv.batch.batch import Batch
from busenv.entry_points import make_agent, play
from busenv.envs.vector import register as _register
from busenv.errors import AgentError, BoardError, IllegalActionError, PositionError, RecordError
from busenv.game.actions import BoardAction, Building, Move, Phase, decode, describe_action, encode
from busenv.game.board import Board, load_board
from busenv.game.bounds import longest_game
from busenv.game.game import Game
from busenv.game.position import Position
from busenv.game.random_playouts import Playouts, random_playouts, random_returns
from busenv.game.record import Record
from busenv.game.rules import EDITIONS, Rules, load_rules
from busenv.observation import ObservationLayout, observe
from busenv.rewards import REWARDS

__version__ = "0.1.0"

_register()

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
    "load_board",
    "load_rules",
    "longest_game",
    "make_agent",
    "observe",
    "play",
    "random_playouts",
    "random_returns",
]
