"""Observations: one flat row of bytes per seat, with a named layout.

The row is egocentric: the viewer is player 0 and the others follow clockwise, so it does not encode
the viewer's seat. It has the same length for 3, 4 and 5 players (absent players are zeros). It is
complete: what decides how the game continues can be rebuilt from it, up to the numbering of the
seats (deliveries up to 255 per player).

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

With `relative_types`, building types are counted from the clock: 0 is the type that it shows,
1 the next, 2 the last. Houses, offices and pubs differ only by the order in which the clock shows
them, so the three positions that differ by a cyclic renaming have the same relative observation.
`relative_action` and `absolute_action` convert action ids, `relative_actions` and
`absolute_actions` those of a batch. The set of legal ids is the same in both
(R14: any type may be built on an open site).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from busenv.core import features, kernels
from busenv.core import relative_types as relative_kernels
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.game.actions import action_id
from busenv.game.board import Board
from busenv.game.states import check_games

if TYPE_CHECKING:
    from busenv.game.game import Game

PLANES = ("intersections", "streets", "sites")


class Part(NamedTuple):
    """A named part of an observation.

    name: "section.feature", such as "players.buses".
    section: "intersections", "streets", "sites", "players" or "table".
    columns: its columns in the section, a slice of the last axis of `ObservationLayout.view`.
    shape: (entries, width), or (width,) in the table.
    high: highest usual value; rules with a high limit of buses or markers may double it. Values
        never exceed 255.
    meaning: description.
    """

    name: str
    section: str
    columns: slice
    shape: tuple[int, ...]
    high: int
    meaning: str


class Section(NamedTuple):
    """A section of the row: `entries` entries of `width` columns from offset `start`.

    planes: stored column by column (the first column of all entries, then the second, ...) instead
        of entry by entry.
    """

    start: int
    entries: int
    width: int
    planes: bool


class ObservationLayout:
    """The parts of an observation on a board.

    size: length of a row. sections, parts: by name.
    scale: float32, (size,), factors that scale usual values to 0..1.
    """

    def __init__(self, board: Board) -> None:
        self.size = 0
        self.sections: dict[str, Section] = {}
        self.parts: dict[str, Part] = {}
        entries = {
            "intersections": len(board.intersections),
            "streets": len(board.streets),
            "sites": len(board.sites),
            "players": MAX_PLAYERS,
            "table": 1,
        }
        for section, count in entries.items():
            for feature in features.FEATURES[section]:
                name = f"{section}.{feature.name}"
                columns = features.COLUMNS[section][feature.name]
                shape = (feature.width,) if section == "table" else (count, feature.width)
                high = feature.high or len(board.intersections)
                self.parts[name] = Part(name, section, columns, shape, high, feature.meaning)
            width = features.WIDTHS[section]
            self.sections[section] = Section(self.size, count, width, section in PLANES)
            self.size += count * width
        self.scale = np.empty(self.size, np.float32)
        for part in self.parts.values():
            self.part(self.scale, part.name)[...] = 1 / part.high

    def __repr__(self) -> str:
        return f"ObservationLayout(size={self.size})"

    def __getitem__(self, name: str) -> Part:
        if name not in self.parts:
            raise KeyError(f"no part {name!r}; there are {[*self.parts]}")
        return self.parts[name]

    def view(self, observation: np.ndarray, section: str) -> np.ndarray:
        """View a section of observations (..., size): (..., entries, width), or (..., width).

        The second shape is the table's. The view shares memory with the observations. Raises
        KeyError, which lists the sections, for another name.
        """
        if section not in self.sections:
            raise KeyError(f"no section {section!r}; there are {[*self.sections]}")
        start, entries, width, planes = self.sections[section]
        part = observation[..., start : start + entries * width]
        if section == "table":
            return part
        if planes:
            return part.reshape(*part.shape[:-1], width, entries).swapaxes(-1, -2)
        return part.reshape(*part.shape[:-1], entries, width)

    def part(self, observation: np.ndarray, name: str) -> np.ndarray:
        """View a part of observations (..., size): (..., *shape); KeyError for another name."""
        part = self[name]
        return self.view(observation, part.section)[..., part.columns]


def observe(game: Game, seat: int | None = None, relative_types: bool = False) -> np.ndarray:
    """Return the observation of a seat, by default the one to decide: uint8, (layout.size,).

    The default in a finished game is seat 0. relative_types: count building types from the clock.
    Raises ValueError for a seat that does not exist.
    """
    if seat is not None and seat not in range(game.num_players):
        raise ValueError(f"seat is {seat!r}; allowed: 0 to {game.num_players - 1}")
    games, board = game.arrays()
    viewer = int(games["seat"][0]) if seat is None else int(seat)
    row = np.empty(kernels.observation_length(board), np.uint8)
    mask = np.empty(game.board.num_actions, np.int8)
    kernels.observe_and_mask(games, board, viewer, bool(relative_types), row, mask)
    return row


def relative_action(game: Game, action: int) -> int:
    """Return an action id with the building type, if it names one, counted from the game's clock.

    Other ids are returned unchanged, and so are numbers that are not ids. Raises TypeError
    unless `action` is a whole number.

    >>> import busenv, dataclasses
    >>> position = dataclasses.replace(busenv.Game().position(), clock=busenv.Building.OFFICE)
    >>> game = busenv.Game.from_position(position)
    >>> relative_action(game, 8), absolute_action(game, 8)  # a house is type 2; type 0 is an office
    (10, 9)
    """
    return _convert(game, action, relative_kernels.relative_action)


def absolute_action(game: Game, action: int) -> int:
    """Return the id in `game` of an action in relative types: the inverse of `relative_action`."""
    return _convert(game, action, relative_kernels.absolute_action)


def _convert(game: Game, action: int, convert: Callable[..., int]) -> int:
    action = action_id(action)
    if not 0 <= action < game.board.num_actions:
        return action
    games, board = game.arrays()
    return int(convert(games[0], board[0], action))


def absolute_actions(games: np.ndarray, board: Board, actions: np.ndarray) -> np.ndarray:
    """Return the ids of actions in relative types, one for each game of a batch: int64, (N,).

    games: GAME, (N,), such as `Batch.games`. actions: whole numbers, (N,). Raises ValueError when
    the shape of `actions` is not (N,), or for a number that is not an id.
    """
    absolute = _check_actions(games, board, actions)
    relative_kernels.write_absolute_actions(games, board.array, absolute)
    return absolute


def relative_actions(games: np.ndarray, board: Board, actions: np.ndarray) -> np.ndarray:
    """Return action ids in relative types: the inverse of `absolute_actions`."""
    relative = _check_actions(games, board, actions)
    relative_kernels.write_relative_actions(games, board.array, relative)
    return relative


def _check_actions(games: np.ndarray, board: Board, actions: np.ndarray) -> np.ndarray:
    copied = np.array(actions)
    if copied.shape != games.shape or (copied.size and copied.dtype.kind not in "iu"):
        raise ValueError(
            f"actions have shape {copied.shape} and dtype {copied.dtype}; "
            f"allowed: whole numbers of shape {games.shape}, as games"
        )
    if len(copied) and not (copied.min() >= 0 and copied.max() < board.num_actions):
        raise ValueError(f"actions are {actions!r}; allowed: 0 to {board.num_actions - 1}")
    return copied.astype(np.int64)


def relative_games(games: np.ndarray) -> np.ndarray:
    """Return games (GAME, (N,)) with building types counted from the clock."""
    relative = np.zeros(len(games), GAME)
    relative_kernels.write_relative_games(games, relative)
    return relative


def observe_games(
    games: np.ndarray, board: Board, trusted: bool = False, relative_types: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return observations and masks of the seats to decide in a batch of games, as new arrays.

    games: GAME, (N,). trusted: skip their validation, for games that a `Game`, a `Batch` or kernels
    played. relative_types: count building types from the clock. Returns uint8, (N, size), and bool,
    (N, num_actions), all False for a finished game.
    Raises ValueError as `busenv.game.states.check_games` does.
    """
    games = games if trusted else check_games(games, board)
    return observe_states(relative_games(games) if relative_types else games, board.array)


def observe_states(games: np.ndarray, boards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what `observe_games` returns, of games that need no validation.

    boards: BOARD, the board of all games, (1,), or of each, (N,), of equal sizes.
    """
    num_actions = int(boards["actions"][0])
    rows = np.empty((len(games), kernels.observation_length(boards)), np.uint8)
    masks = np.empty((len(games), num_actions), np.bool_)
    kernels.observe_seats(games, boards, games["seat"].astype(np.int64), rows)
    kernels.legal_bytes(games, boards, masks)
    return rows, masks
