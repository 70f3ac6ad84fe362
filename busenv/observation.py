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
from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from busenv.board import Board
from busenv.checks import check_games
from busenv.core import kernels
from busenv.core.state import MAX_PLAYERS, MAX_SPACES
from busenv.game import Game

PLANES = ("intersections", "streets", "sites")
PAIRS = {"on_line": "line_end", "line": "may_grow"}
VERSION = 1  # of the layout; a trained network fits one version only

_HOURS = "now, at the next hour, at the one after"
_ENDS = "0 not an end, 1 the end that did not move last, 2 the end that did, 3 both"

# name, width, highest usual value (None: as many as the board has), meaning
_INTERSECTION = (
    ("passengers", 1, 15, "passengers at the intersection, waiting or indoors"),
    ("buildings", 3, 4, "houses, offices, pubs"),
    ("open_sites", 1, 4, "sites that may be built on now (R14)"),
    ("waiting", 3, 15, f"passengers that find no matching building {_HOURS} (R16)"),
    ("vacant", 3, 4, f"matching buildings without a passenger {_HOURS} (R16)"),
    ("on_line", 5, 1, "whether the line of player 0..4 reaches it"),
    ("line_end", 5, 3, f"end of the line of player 0..4: {_ENDS}"),
)
_STREET = (
    (
        "line",
        5,
        4,
        "marker of player 0..4: 0 none, 1 yes, 2 yes and by it the end that did not move last "
        "arrived, 3 the end that did, 4 both",
    ),
    (
        "may_grow",
        5,
        3,
        "whether the line of player 0..4 may grow along it (R9): 0 no, 1 from the end that did "
        "not move last, 2 from the end that did, 3 from either",
    ),
)
_SITE = (
    ("building", 3, 1, "house, office or pub stands on it"),
    ("open", 1, 1, "whether it may be built on now (R14)"),
)
_PLAYER = (
    ("present", 1, 1, "whether there is such a player"),
    ("decides", 1, 1, "whether they are to decide"),
    ("action_markers", 1, 20, "action markers in hand"),
    ("line_markers", 1, 25, "line markers left; 0 when there is no limit"),
    ("line_unlimited", 1, 1, "whether line markers have no limit"),
    ("buses", 1, 5, "buses (R12)"),
    ("time_stones", 1, 5, "time stones taken (R15)"),
    ("deliveries", 1, 30, "passengers delivered; 255 for more (R17)"),
    ("placed", 1, 20, "markers placed this round (R4)"),
    ("choosing", 1, 1, "whether they still choose actions this round (R4)"),
    ("starts", 1, 1, "whether they are the starting player (R18)"),
    ("started_game", 1, 1, "whether they were the game's first starting player (R20)"),
    ("chooses_next", 1, 1, "whether they are next to choose an action"),
    ("reached", 1, None, "intersections on the line"),
    ("growth", 1, 12, "streets onto which the line may grow"),
    ("place", 1, 4, "place on the standing so far, 0 is the lead (R20)"),
    ("delivery_order", 1, 5, "place of their last delivery among all players' last ones, 0: none"),
    ("waiting", 3, 15, f"passengers on the line that wait {_HOURS}"),
    ("vacant", 3, 10, f"free matching buildings on the line {_HOURS}"),
    ("drive", 3, 5, f"deliveries of one Vrrooomm! {_HOURS}"),
    *(
        (f"spaces_{name}", spaces, 1, f"which spaces of {name} bear the player's markers, A first")
        for name, spaces in (
            ("line_expansion", MAX_SPACES),
            ("buses", 1),
            ("passengers", MAX_SPACES),
            ("buildings", MAX_SPACES),
            ("clock", 1),
            ("vrrooomm", MAX_SPACES),
            ("starting_player", 1),
        )
    ),
)
_TABLE = (
    ("phase", 11, 1, "what is being decided (busenv.Phase), one-hot"),
    ("num_players", 3, 1, "3, 4 or 5 players, one-hot"),
    ("round", 1, 10, "round; 0 during the setup"),
    ("clock", 3, 1, "house, office, pub, one-hot"),
    ("stones_left", 1, 5, "time stones on the clock"),
    ("supply", 1, 11, "passengers not yet in the city"),
    ("zone", 1, 4, "lowest zone with a free site, counted from 0"),
    ("max_buses", 1, 5, "M, the most buses of any player (R7)"),
    ("action", 7, 1, "the action being resolved, one-hot"),
    ("space", 1, 6, "how far its spaces are resolved"),
    ("power", 1, 6, "what is left of the marker being resolved, or of the first buildings"),
    ("space_limit", 1, 6, "spaces of a multi-use action"),
    ("bus_limit", 1, 20, "the most buses a player may have"),
    ("final_segment", 1, 1, "whether only the street of arrival is shared (R9)"),
    ("taken", 7, 6, "markers on each action"),
    (
        "next_power",
        3,
        6,
        "power of the next space of Line Expansion, Passengers, Buildings; 0: none",
    ),
)


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
        for block, entries, features in (
            ("intersections", len(board.intersections), _INTERSECTION),
            ("streets", len(board.streets), _STREET),
            ("sites", len(board.sites), _SITE),
            ("players", MAX_PLAYERS, _PLAYER),
            ("table", 1, _TABLE),
        ):
            column = 0
            for name, width, usual, meaning in features:
                high = usual or len(board.intersections)
                shape = (width,) if block == "table" else (entries, width)
                # Pairs alternate, player by player: on_line of 0, line_end of 0, on_line of 1, ...
                step = 2 if name in PAIRS or name in PAIRS.values() else 1
                first = column - width + 1 if name in PAIRS.values() else column
                columns = slice(first, first + step * (width - 1) + 1, step)
                full = f"{block}.{name}"
                parts[full] = Part(full, block, columns, shape, high, meaning)
                column += width
            blocks[block] = Block(start, entries, column, block in PLANES)
            start += entries * column
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
    row = np.empty((1, kernels.observation_size(board)), np.uint8)
    kernels.observe_seats(games, board, np.array([view]), row)
    return row[0]


def observe_games(games: np.ndarray, board: Board) -> tuple[np.ndarray, np.ndarray]:
    """What the seats to decide see and may do, in each of a batch of games: fresh arrays.

    games: (N,) GAME records, as `agents.Agent.choose` is given them. Returns observations, uint8
    (N, size), and what is legal, bool (N, num_actions), none where a game is over.
    """
    games = check_games(games, board)
    rows = np.empty((len(games), kernels.observation_size(board.array)), np.uint8)
    masks = np.empty((len(games), board.num_actions), np.bool_)
    bits = np.empty((board.num_actions + 63) // 64, np.uint64)
    kernels.observe_seats(games, board.array, games["seat"].astype(np.int64), rows)
    kernels.legal_bytes(games, board.array, bits, masks)
    return rows, masks
