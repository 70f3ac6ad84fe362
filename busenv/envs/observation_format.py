"""The forms in which every environment shows an observation, and what an illegal action does.

| `observation_keys` | an observation is | its mask |
|---|---|---|
| None | the flat row | in `info["action_mask"]` |
| `("observation", "action_mask")`, or any two names | a dict of row and mask | in it, int8 |

| `observation_dtype` | a row is |
|---|---|
| `"uint8"` | the bytes of `busenv.observation` |
| `"float32"` | the same times `ObservationLayout.scale`, at most 1: all within 0..1 |

| `illegal` | an illegal action |
|---|---|
| `"raise"` | raises `busenv.IllegalActionError`; nothing has changed |
| `"lose"` | ends the episode, which pays -1 |
| `"replace"` | is not played, but a legal one in its place, drawn from the environment's own seed |

With "lose" and "replace", `info["illegal_action"]` is True after such an action.

    >>> import busenv
    >>> game = busenv.Game(seed=1)
    >>> form = as_observation_format(game.board, ("obs", "mask"), "float32")
    >>> seen = form.show(game.observe(), game.action_mask())
    >>> {key: (value.dtype.name, value.shape) for key, value in seen.items()}
    {'obs': ('float32', (1993,)), 'mask': ('int8', (375,))}
    >>> form.observation_space.contains(seen)
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike

from busenv.core import kernels
from busenv.game.board import Board
from busenv.game.game import Game
from busenv.observation import ObservationLayout
from busenv.validation import Illegal as Illegal
from busenv.validation import check_illegal as check_illegal

DTYPES = ("uint8", "float32")


@dataclass(frozen=True, eq=False)
class ObservationFormat:
    """How observations on a board are shown: made by `as_observation_format`.

    keys: of row and mask in a dict; None for the row alone.
    scale: float32, (size,), what bytes are multiplied by; None when they stay as they are.
    observation_space: of one seat. action_space: of one seat.
    """

    keys: tuple[str, str] | None
    scale: np.ndarray | None
    observation_space: spaces.Space
    action_space: spaces.Discrete

    def show(
        self, rows: np.ndarray, masks: np.ndarray, out: np.ndarray | None = None
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Observations of one game, or of N, in this form.

        rows: uint8, (size,) or (N, size). masks: bool or int8, (num_actions,) or (N, num_actions).
        out: float32 like `rows`, contiguous, to write scaled rows into; by default a fresh array.

        Nothing is copied that need not be: bytes, and masks, are those that were given.
        """
        seen = rows if self.scale is None else _scaled(rows, self.scale, out)
        if self.keys is None:
            return seen
        return {
            self.keys[0]: seen,
            self.keys[1]: masks if masks.dtype == np.int8 else masks.view(np.int8),
        }


def as_observation_format(
    board: Board,
    observation_keys: Sequence[str] | None = None,
    observation_dtype: DTypeLike = "uint8",
) -> ObservationFormat:
    """The form that an environment's settings ask for; ValueError says what is allowed."""
    keys, layout = _check_keys(observation_keys), ObservationLayout(board)
    shape, scaled = (layout.size,), _check_dtype(observation_dtype) == "float32"
    space: spaces.Space = (
        spaces.Box(0, 1, shape, np.float32) if scaled else spaces.Box(0, 255, shape, np.uint8)
    )
    if keys is not None:
        mask = spaces.Box(0, 1, (board.num_actions,), np.int8)
        space = spaces.Dict({keys[0]: space, keys[1]: mask})
    scale = layout.scale.copy() if scaled else None  # writable, as kernels are compiled for
    return ObservationFormat(keys, scale, space, spaces.Discrete(board.num_actions))


def legal_instead(game: Game) -> int:
    """An action to play instead of an illegal one: each legal one with the same chance.

    It follows from the game's seed and the decisions so far alone, so asking again changes nothing.
    """
    draw = np.random.default_rng([game.seed, len(game.history)])
    return int(draw.choice(game.legal_actions()))


def _scaled(rows: np.ndarray, scale: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    out = np.empty(rows.shape, np.float32) if out is None else out
    size = len(scale)
    kernels.scale_rows(rows.reshape(-1, size), scale, out.reshape(-1, size))
    return out


def _check_keys(keys: Sequence[str] | None) -> tuple[str, str] | None:
    """The names of row and mask as a pair."""
    if keys is None:
        return None
    names = [*keys] if isinstance(keys, (tuple, list)) else []
    if len({*map(str, names)}) != 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"observation_keys is {keys!r}; allowed: None, or two names for the row and its mask, "
            'such as ("observation", "action_mask")'
        )
    return names[0], names[1]


def _check_dtype(dtype: DTypeLike) -> str:
    """The name of a type that observations may have."""
    try:
        name = None if dtype is None else np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in DTYPES:
        raise ValueError(f"observation_dtype is {dtype!r}; allowed: one of {[*DTYPES]}")
    return name
