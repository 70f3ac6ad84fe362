"""busenv: the board game Bus as a reinforcement-learning environment.

    >>> import busenv
    >>> game = busenv.Game(num_players=4, seed=1)
    >>> while not game.is_over:
    ...     game.step(game.legal_actions()[0])
    >>> game.ranking()
    [0, 1, 2, 3]

`Game` is one game, `random_playouts` many at full speed; `EDITIONS` and `Rules` say by which rules,
`load_board` on which map, `describe_action` what an action id means. The rules page is RULES.md
in this package.
"""

from busenv.actions import Action, Building, Phase, decode, describe_action
from busenv.board import Board, BoardError, load_board
from busenv.checks import IllegalActionError
from busenv.envs.vector import register as _register
from busenv.game import Game
from busenv.playouts import Playouts, random_playouts
from busenv.position import Position
from busenv.record import Record, RecordError
from busenv.rules import EDITIONS, Rules

__version__ = "0.1.0"

_register()

__all__ = [
    "EDITIONS",
    "Action",
    "Board",
    "BoardError",
    "Building",
    "Game",
    "IllegalActionError",
    "Phase",
    "Playouts",
    "Position",
    "Record",
    "RecordError",
    "Rules",
    "decode",
    "describe_action",
    "load_board",
    "random_playouts",
]
