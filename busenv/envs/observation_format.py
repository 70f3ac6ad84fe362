"""The settings `observation_keys` and `observation_dtype` of every environment.

| `observation_keys` | observation | action mask |
|---|---|---|
| None | the flat row | in `info["action_mask"]` |
| `("observation", "action_mask")`, or any two names | a dict of row and mask | in the dict, int8 |

| `observation_dtype` | row |
|---|---|
| `"uint8"` | the bytes of `busenv.observation` |
| `"float32"` | the bytes times `ObservationLayout.scale`, clipped to 0..1 |

    >>> import busenv
    >>> game = busenv.Game(seed=1)
    >>> observation_format = ObservationFormat(game.board, ("obs", "mask"), "float32")
    >>> observation = observation_format.convert(busenv.observe(game), game.action_mask())
    >>> {key: (value.dtype.name, value.shape) for key, value in observation.items()}
    {'obs': ('float32', (2045,)), 'mask': ('int8', (375,))}
    >>> observation_format.observation_space.contains(observation)
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike

from busenv.core import kernels
from busenv.game.board import Board
from busenv.observation import ObservationLayout

DTYPES = ("uint8", "float32")

Observation = np.ndarray | dict[str, np.ndarray]


class ObservationFormat:
    """The format of observations on a board; raises ValueError for an invalid setting.

    keys: names of row and mask in a dict; None for flat rows.
    observation_space, action_space: the spaces of one seat.
    """

    def __init__(
        self,
        board: Board,
        observation_keys: Sequence[str] | None = None,
        observation_dtype: DTypeLike = "uint8",
    ) -> None:
        layout = ObservationLayout(board)
        try:
            dtype = np.dtype(observation_dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype.name not in DTYPES:
            raise ValueError(
                f"observation_dtype is {observation_dtype!r}; allowed: one of {[*DTYPES]}"
            )
        self.keys = _check_keys(observation_keys)
        self._scale = layout.scale if dtype.name == "float32" else None
        high = 255 if self._scale is None else 1
        self.observation_space: spaces.Space[Any] = spaces.Box(0, high, (layout.size,), dtype.type)
        self.action_space = spaces.Discrete(board.num_actions)
        if self.keys is not None:
            mask = spaces.Box(0, 1, (board.num_actions,), np.int8)
            pair: dict[str, spaces.Space[Any]] = {
                self.keys[0]: self.observation_space,
                self.keys[1]: mask,
            }
            self.observation_space = spaces.Dict(pair)

    def convert(self, rows: np.ndarray, masks: np.ndarray, copy: bool = False) -> Observation:
        """Return the observations of one game or of N in this format.

        rows: uint8, (size,) or (N, size). masks: bool or int8, (num_actions,) or (N, num_actions).
        copy: False returns uint8 rows and masks without copying them.
        """
        if self._scale is not None:
            size, scaled = len(self._scale), np.empty(rows.shape, np.float32)
            kernels.scale_rows(rows.reshape(-1, size), self._scale, scaled.reshape(-1, size))
            rows = scaled
        elif copy:
            rows = rows.copy()
        if self.keys is None:
            return rows
        return {self.keys[0]: rows, self.keys[1]: (masks.copy() if copy else masks).view(np.int8)}


def _check_keys(keys: Sequence[str] | None) -> tuple[str, str] | None:
    if keys is None:
        return None
    names = [*keys] if isinstance(keys, (tuple, list)) else []
    if len({*map(str, names)}) != 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"observation_keys is {keys!r}; allowed: None, or two names for the row and its mask, "
            'such as ("observation", "action_mask")'
        )
    return names[0], names[1]
