"""What a seat sees: one flat row of bytes with a named layout.

The row is egocentric. The viewer is player 0 and the others follow clockwise, so nothing tells
which seat one sits on; rows have one length for 3, 4 and 5 players (absent players are zeros). It
is complete: the whole state of the game can be rebuilt from it, up to the names of the seats.

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
from busenv.core.state import MAX_PLAYERS
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
    columns: which features of its block it is, a slice of the last axis of `view`.
    shape: (entries, width), or (width,) in the table.
    high: usual values run from 0 to about this; under the rules without a low limit on buses or
        markers they may be up to twice as high, and never above 255.
    meaning: in words.
    """

    name: str
    block: str
    columns: slice
    shape: tuple[int, ...]
    high: int
    meaning: str


class Block(NamedTuple):
    """Where the entries of one kind stand in the row: `entries` of them, `width` features each.

    planes: laid out feature by feature (all entries' first, then all their second, ...), not entry
        by entry.
    """

    start: int
    entries: int
    width: int
    planes: bool


@dataclass(frozen=True, eq=False)
class ObservationLayout:
    """The parts of an observation on a board.

    size: length of a row.
    blocks: where each kind of entry stands.
    parts: every part by name.
    scale: float32, shape (size,): factors that bring usual values to 0..1.
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
        for name, value in (
            ("size", start),
            ("blocks", blocks),
            ("parts", parts),
            ("scale", scale),
        ):
            object.__setattr__(self, name, value)
        for part in parts.values():
            self.part(scale, part.name)[...] = 1 / part.high
        scale.flags.writeable = False

    def __getitem__(self, name: str) -> Part:
        if name not in self.parts:
            raise KeyError(f"no part {name!r}; there are {[*self.parts]}")
        return self.parts[name]

    def view(self, observation: np.ndarray, block: str) -> np.ndarray:
        """A block of observations (..., size) without copying: (..., entries, width).

        The table's is (..., width).
        """
        start, entries, width, planes = self.blocks[block]
        part = observation[..., start : start + entries * width]
        if block == "table":
            return part
        if planes:
            return part.reshape(*part.shape[:-1], width, entries).swapaxes(-1, -2)
        return part.reshape(*part.shape[:-1], entries, width)

    def part(self, observation: np.ndarray, name: str) -> np.ndarray:
        """A part of observations (..., size) without copying: (..., *shape)."""
        part = self[name]
        return self.view(observation, part.block)[..., part.columns]


def spaces_of(board: Board) -> tuple[spaces.Box, spaces.Discrete]:
    """Observation and action space of one seat on a board."""
    size = ObservationLayout(board).size
    return spaces.Box(0, 255, (size,), np.uint8), spaces.Discrete(board.num_actions)


def observe(game: Game, seat: int | None = None) -> np.ndarray:
    """What a seat sees, by default the one to decide: uint8, shape (layout.size,), a fresh array.

    When the game is over and no seat is given, the last one to decide looks.
    """
    if seat is not None and seat not in range(game.num_players):
        raise ValueError(f"seat is {seat!r}; allowed: 0 to {game.num_players - 1}")
    games, board = game.arrays()
    view = int(games["seat"][0]) if seat is None else int(seat)
    row = np.empty(kernels.observation_length(board), np.uint8)
    kernels.observe_one(games, board, view, row)
    return row


def observe_games(games: np.ndarray, board: Board) -> tuple[np.ndarray, np.ndarray]:
    """What the seats to decide see and may do, in each of a batch of games: fresh arrays.

    games: (N,) GAME records, as `agents.Agent.choose` is given them. Returns observations, uint8
    (N, size), and what is legal, bool (N, num_actions), none where a game is over.
    """
    games = check_games(games, board)
    rows = np.empty((len(games), kernels.observation_length(board.array)), np.uint8)
    masks = np.empty((len(games), board.num_actions), np.bool_)
    bits = np.empty((board.num_actions + 63) // 64, np.uint64)
    kernels.observe_seats(games, board.array, games["seat"].astype(np.int64), rows)
    kernels.legal_bytes(games, board.array, bits, masks)
    return rows, masks
