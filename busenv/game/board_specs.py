"""Boards by name, file, or generator spec, and sets of boards.

| spec | board or set of boards |
|---|---|
| `city` | the board of the game |
| `FILE.json` | a board file |
| `generated:SIZE:SEED` | one generated board (`busenv.game.board_generator`) |
| `generated:SIZE:train`, `validation`, `test` | generated boards of a split |
| `generated:SIZE:SPLIT:COUNT` | the first COUNT of them |
| `generated:mixed:SPLIT:COUNT` | boards of all sizes in turn, for agents that play them all |

SIZE is small, medium, city or large. The seeds of `validation` are 1,000,000,000 to 1,000,000,999,
those of `test` 2,000,000,000 to 2,000,000,999. All other seeds are for training; `train` has the
seeds 0 to 4,095, and COUNT may be as high as 1,000,000.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Sequence
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from busenv.core.state import BOARD
from busenv.error_text import did_you_mean, quote
from busenv.errors import BoardError, RecordError
from busenv.game.board import BOARDS, Board, make_board
from busenv.game.board_generator import (
    GENERATOR_VERSION,
    PREFIX,
    SIZES,
    check_board_size,
    generate_board,
)
from busenv.io import read_json

SPLITS = {  # seeds of the splits
    "train": range(1_000_000),
    "validation": range(1_000_000_000, 1_000_001_000),
    "test": range(2_000_000_000, 2_000_001_000),
}
TRAIN_BOARDS = 4096  # of `train` without a count
MIXED = "mixed"  # size of a set that has boards of all SIZES in turn


class GeneratedBoards(Sequence[Board]):
    """Generated boards, each generated when it is read.

    name: a spec of the set. size: as for `generate_board`, or MIXED. seeds: of the boards.
    sizes: board k has size `sizes[k % len(sizes)]`.
    fingerprint: equal for sets of the same size, seeds and version of the generator.
    """

    generator = GENERATOR_VERSION

    def __init__(self, name: str, size: str, seeds: range) -> None:
        self.name, self.size, self.seeds = name, size, seeds
        self.sizes = (*SIZES,) if size == MIXED else (size,)
        text = f"{size} {seeds.start} {seeds.stop} {self.generator}"
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, index: int) -> Board:  # type: ignore[override]  # no slices
        return generate_board(*self.seed_and_size(index))

    def seed_and_size(self, index: int) -> tuple[int, str]:
        """Return the arguments of `generate_board` for a board of the set."""
        seed = self.seeds[index]
        return seed, self.sizes[(seed - self.seeds.start) % len(self.sizes)]

    def __repr__(self) -> str:
        return f"GeneratedBoards({self.name!r}, {len(self)} boards)"


class BoardSet(Sequence[Board]):
    """Boards with equal numbers of intersections, streets and sites.

    boards: the boards, or their specs. Generated boards of one size are generated when `build`
        first needs them.
    records: BOARD, (K,), read-only, the boards for kernels; zeros where a board is not built yet.

    Raises BoardError, which names the first board of a different size.
    """

    def __init__(self, boards: Sequence[Board | str]) -> None:
        if not isinstance(boards, Sequence) or isinstance(boards, (str, bytes)) or not boards:
            raise BoardError(f"boards is {quote(boards)}; allowed: one board or more in a list")
        self.boards: Sequence[Board] = (
            boards if isinstance(boards, GeneratedBoards) else [as_board(board) for board in boards]
        )
        self._first = self.boards[0]
        # Pages take memory when they are written. NumPy would ask for huge pages, and a board would
        # take one of 2 MB.
        self._records = np.frombuffer(mmap(-1, len(boards) * BOARD.itemsize), BOARD)
        self.records = self._records.view()
        self.records.flags.writeable = False
        self._built = np.zeros(len(boards), np.bool_)
        has_one_size = isinstance(boards, GeneratedBoards) and len(boards.sizes) == 1
        self.build(np.arange(1 if has_one_size else len(boards)))

    @property
    def array(self) -> np.ndarray:
        """All boards for kernels: BOARD, (K,), read-only."""
        self.build(np.arange(len(self)))
        return self.records

    @property
    def is_built(self) -> bool:
        """Whether `records` holds all boards."""
        return bool(self._built.all())

    def build(self, indices: np.ndarray) -> None:
        """Write the boards of some indices to `records`."""
        if self.is_built:
            return
        indices = np.unique(indices)
        for index in indices[~self._built[indices]]:
            board = self[index]
            if sizes_of(board) != sizes_of(self._first):
                raise BoardError(
                    f"boards of different sizes in one set: {self._first!r} and {board!r}"
                )
            self._records[index] = board.array[0]
            self._built[index] = True

    def __len__(self) -> int:
        return len(self.boards)

    def __getitem__(self, index: int) -> Board:  # type: ignore[override]  # no slices
        return self.boards[index]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if not np.shares_memory(self._records, self.records):  # of a copied batch
            self._records = self.records.view()
        self.records.flags.writeable = False  # pickling drops this, and numba's type includes it


Boards = str | Path | Board | Sequence[Board | str]
"""One board, or a set: anything that `as_boards` accepts."""


def load_board(spec: str | Path) -> Board:
    """Load a board by its name ("city"), by the path of a file, or a generated one by its spec.

    Raises FileNotFoundError, or BoardError, which names the wrong entry.
    """
    boards = load_boards(spec)
    if isinstance(boards, Board):
        return boards
    raise BoardError(
        f"{str(spec)!r} is a set of boards, and one board is needed here; "
        f"allowed: {PREFIX}:SIZE:SEED, such as {boards[0].name!r}"
    )


def load_boards(spec: str | Path) -> Board | GeneratedBoards:
    """Load a board as `load_board` does, or a set of generated boards by its spec."""
    if str(spec).startswith(f"{PREFIX}:"):
        return generated_boards(str(spec))
    if str(spec) in board_names():
        return _bundled(str(spec))
    if not os.path.isfile(spec):
        raise FileNotFoundError(
            f"no board {quote(str(spec))}: neither a file, nor {PREFIX}:SIZE:SEED, nor one of "
            f"{board_names()}" + did_you_mean(str(spec), board_names())
        )
    return _load(Path(spec))


def as_board(board: str | Path | Board) -> Board:
    """Return a board given by its spec or as a board; BoardError for anything else."""
    if isinstance(board, Board):
        return board
    if not isinstance(board, (str, Path)):
        raise BoardError(f"board is {board!r}; allowed: a name, a path or a Board")
    return load_board(board)


def as_boards(boards: Boards) -> BoardSet:
    """Return a set of boards: one board or several, given by specs or as boards.

    Raises BoardError for boards of different sizes, and as `load_board` does.
    """
    if isinstance(boards, BoardSet):
        return boards
    if isinstance(boards, (str, Path)):
        boards = load_boards(boards)
    return BoardSet([boards] if isinstance(boards, Board) else boards)


def board_at(boards: Board | GeneratedBoards, index: int) -> Board:
    """Return a board of a set, or the only board."""
    return boards if isinstance(boards, Board) else boards[index]


def arrays_at(boards: Board | GeneratedBoards, indices: np.ndarray) -> np.ndarray:
    """Return boards for kernels: BOARD, read-only, the only one, (1,), or N of a set, (N,)."""
    if isinstance(boards, Board):
        return boards.array
    arrays = np.zeros(len(indices), BOARD)
    for k, index in enumerate(indices):  # np.concatenate is ten times slower on records
        arrays[k] = _generated_array(*boards.seed_and_size(index))[0]
    arrays.flags.writeable = False
    return arrays


@functools.lru_cache(maxsize=20_000)  # 2.5 kB each; as many as a replay buffer has
def _generated_array(seed: int, size: str) -> np.ndarray:
    return generate_board(seed, size).array


def is_playable(board: Board, trained_on: Board | GeneratedBoards | None) -> bool:
    """Return whether a network can play on a board.

    It can play on the board that it was trained on, or on any board of the sizes of its training
    set.

    trained_on: None for a network that plays any board, as all those trained on mixed sizes do.
    """
    if isinstance(trained_on, GeneratedBoards):
        return sizes_of(board) == sizes_of(trained_on[0])
    return trained_on is None or board.fingerprint == trained_on.fingerprint


def is_held_out(board: Board) -> bool:
    """Return whether a board is in the validation or the test split, which are not for training."""
    if not board.generator:
        return False
    seed = int(board.name.rpartition(":")[2])
    return seed in SPLITS["validation"] or seed in SPLITS["test"]


def sizes_of(board: Board) -> tuple[int, int, int]:
    """Return the numbers of intersections, streets and sites of a board."""
    return len(board.intersections), len(board.streets), len(board.sites)


def generated_boards(spec: str) -> Board | GeneratedBoards:
    """Return the board or the set of boards of a spec; else raise BoardError."""
    size, *rest = spec.removeprefix(f"{PREFIX}:").split(":")
    check_board_size(size, [*SIZES, MIXED])
    if len(rest) == 1 and _is_number(rest[0], 0, 2**64 - 1) and size != MIXED:
        return generate_board(int(rest[0]), size)
    if not rest or rest[0] not in SPLITS or len(rest) > 2:
        raise BoardError(
            f"no board {quote(spec)}; allowed: {PREFIX}:{size}:SPLIT with one of "
            f"{', '.join(SPLITS)}, or one board: {PREFIX}:SIZE:SEED with a size of "
            f"{', '.join(SIZES)} and a seed 0 to 2**64 - 1"
        )
    split, *counts = rest
    seeds = SPLITS[split]
    if counts and not _is_number(counts[0], 1, len(seeds)):
        raise BoardError(
            f"board {quote(spec)}: {quote(counts[0])} boards; allowed: 1 to {len(seeds)}"
        )
    count = int(counts[0]) if counts else min(TRAIN_BOARDS, len(seeds))
    return GeneratedBoards(spec, size, seeds[:count])


def _is_number(text: str, low: int, high: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 20 and low <= int(text) <= high


def recorded_board(entry: dict[str, Any], board: str | Path | Board | None = None) -> Board:
    """Return the given board; by default the generated board that a record names, else the city.

    entry: `busenv.Record.board`. Raises RecordError for a board of another generator version, and
    as `load_board` does.
    """
    if board is not None:
        return as_board(board)
    if "generator" not in entry:
        return load_board("city")
    if entry["generator"] != GENERATOR_VERSION:
        raise RecordError(
            f"the game was played on board {quote(entry['name'])} of generator version "
            f"{quote(entry['generator'])}; this busenv generates version {GENERATOR_VERSION}"
        )
    try:
        generated = generated_boards(entry["name"])
    except BoardError as error:
        raise RecordError(f"record: {error}") from error
    if not isinstance(generated, Board):
        raise RecordError(f"record: board {quote(entry['name'])} is a set of boards")
    return generated


@functools.cache
def board_names() -> list[str]:
    """Return the names of the boards of the package."""
    return sorted(path.stem for path in BOARDS.glob("*.json"))


@functools.cache
def _bundled(name: str) -> Board:
    return _load(BOARDS / f"{name}.json")


def _load(path: Path) -> Board:
    return make_board(read_json(path, BoardError), path.stem)
