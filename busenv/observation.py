"""Observations: one flat row of bytes a seat, with a named layout.

The row is egocentric: the viewer is player 0 and the others follow clockwise, so it does not encode
the viewer's seat. It has the same length for 3, 4 and 5 players (absent players are zeros). It is
complete: the state of the game can be rebuilt from it, up to the numbering of the seats.

    >>> from busenv import Game
    >>> game = Game(seed=1)
    >>> layout, row = ObservationLayout(game.board), observe(game)
    >>> row.dtype, row.shape == (layout.size,)
    (dtype('uint8'), True)
    >>> layout.part(row, "players.buses")[:, 0].tolist()      # of 4 players; the fifth is absent
    [1, 1, 1, 1, 0]
    >>> int(layout.part(row, "intersections.passengers")[14, 0])  # at intersection 14
    1
    >>> network_input = row * layout.scale                    # float32, roughly 0 to 1
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from gymnasium import spaces

from busenv.core import features, kernels
from busenv.core.features import VERSION
from busenv.core.relative_types import write_relative_games
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.game.board import Board
from busenv.validation import check_games

if TYPE_CHECKING:
    from busenv.game.game import Game

PLANES = ("intersections", "streets", "sites")

__all__ = ["VERSION", "Block", "ObservationLayout", "Part", "observe", "observe_games", "spaces_of"]


class Part(NamedTuple):
    """A named part of an observation.

    name: "block.feature", such as "players.buses".
    block: "intersections", "streets", "sites", "players" or "table".
    columns: its columns in the block, a slice of the last axis of `ObservationLayout.view`.
    shape: (entries, width), or (width,) in the table.
    high: highest usual value; rules with a high limit of buses or markers may double it. Values
        never exceed 255.
    meaning: description.
    """

    name: str
    block: str
    columns: slice
    shape: tuple[int, ...]
    high: int
    meaning: str


class Block(NamedTuple):
    """A block of the row: `entries` entries of `width` columns from offset `start`.

    planes: stored column by column (the first column of all entries, then the second, ...) instead
        of entry by entry.
    """

    start: int
    entries: int
    width: int
    planes: bool


@dataclass(frozen=True, eq=False)
class ObservationLayout:
    """The parts of an observation on a board.

    size: length of a row. blocks, parts: by name.
    scale: float32, (size,), factors that scale usual values to 0..1.
    """

    size: int
    blocks: dict[str, Block] = field(repr=False)
    parts: dict[str, Part] = field(repr=False)
    scale: np.ndarray = field(repr=False)

    def __init__(self, board: Board) -> None:
        start = 0
        blocks: dict[str, Block] = {}
        parts: dict[str, Part] = {}
        entries = {
            "intersections": len(board.intersections),
            "streets": len(board.streets),
            "sites": len(board.sites),
            "players": MAX_PLAYERS,
            "table": 1,
        }
        for block, count in entries.items():
            for name, width, usual, meaning in features.FEATURES[block]:
                high = usual or len(board.intersections)
                shape = (width,) if block == "table" else (count, width)
                columns = features.COLUMNS[block][name]
                full = f"{block}.{name}"
                parts[full] = Part(full, block, columns, shape, high, meaning)
            width = features.WIDTHS[block]
            blocks[block] = Block(start, count, width, block in PLANES)
            start += count * width
        scale = np.empty(start, np.float32)
        for name, value in {
            "size": start,
            "blocks": blocks,
            "parts": parts,
            "scale": scale,
        }.items():
            object.__setattr__(self, name, value)
        for part in parts.values():
            self.part(scale, part.name)[...] = 1 / part.high
        scale.flags.writeable = False

    def __getitem__(self, name: str) -> Part:
        if name not in self.parts:
            raise KeyError(f"no part {name!r}; there are {[*self.parts]}")
        return self.parts[name]

    def view(self, observation: np.ndarray, block: str) -> np.ndarray:
        """View a block of observations (..., size): (..., entries, width), or (..., width).

        The second shape is the table's. The view shares memory with the observations.
        """
        start, entries, width, planes = self.blocks[block]
        part = observation[..., start : start + entries * width]
        if block == "table":
            return part
        if planes:
            return part.reshape(*part.shape[:-1], width, entries).swapaxes(-1, -2)
        return part.reshape(*part.shape[:-1], entries, width)

    def part(self, observation: np.ndarray, name: str) -> np.ndarray:
        """View a part of observations (..., size): (..., *shape)."""
        part = self[name]
        return self.view(observation, part.block)[..., part.columns]


def spaces_of(board: Board) -> tuple[spaces.Box, spaces.Discrete]:
    """Return the observation space and the action space of one seat on a board."""
    size = ObservationLayout(board).size
    return spaces.Box(0, 255, (size,), np.uint8), spaces.Discrete(board.num_actions)


def observe(game: Game, seat: int | None = None) -> np.ndarray:
    """Return the observation of a seat, by default the one to decide: uint8, (layout.size,).

    The default in a finished game is seat 0. Raises ValueError for a seat that does not exist.
    """
    if seat is not None and seat not in range(game.num_players):
        raise ValueError(f"seat is {seat!r}; allowed: 0 to {game.num_players - 1}")
    games, board = game.arrays()
    viewer = int(games["seat"][0]) if seat is None else int(seat)
    row = np.empty(kernels.observation_length(board), np.uint8)
    kernels.observe_one(games, board, viewer, row)
    return row


def relative_games(games: np.ndarray) -> np.ndarray:
    """Return games (GAME, (N,)) with building types counted from the clock
    (`busenv.core.relative_types`)."""
    relative = np.zeros(len(games), GAME)
    write_relative_games(games, relative)
    return relative


def observe_games(
    games: np.ndarray, board: Board, trusted: bool = False, relative_types: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return observations and masks of the seats to decide in a batch of games, as new arrays.

    games: GAME, (N,). trusted: skip their validation, for games that a `Game`, a `Batch` or kernels
    played. relative_types: count building types from the clock. Returns uint8, (N, size), and bool,
    (N, num_actions), all False for a finished game.
    Raises ValueError as `busenv.validation.check_games` does.
    """
    games = games if trusted else check_games(games, board)
    games = relative_games(games) if relative_types else games
    rows = np.empty((len(games), kernels.observation_length(board.array)), np.uint8)
    masks = np.empty((len(games), board.num_actions), np.bool_)
    bits = np.empty((board.num_actions + 63) // 64, np.uint64)
    kernels.observe_seats(games, board.array, games["seat"].astype(np.int64), rows)
    kernels.legal_bytes(games, board.array, bits, masks)
    return rows, masks
