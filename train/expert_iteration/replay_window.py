"""The replay window on disk: a file of rows for each iteration, the oldest dropped in the end."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from busenv import Board
from busenv.io import write_whole
from busenv.train.expert_iteration.training_rows import ROW
from busenv.validation import check_games


class ReplayWindow:
    """The rows of the last iterations, at least `size` of them as soon as there are so many.

    folder: of its own, made where there is none. Rows are looked through when a file is read: it
    may come from anyone. ValueError when one is damaged or of another board.
    """

    def __init__(self, folder: Path, board: Board, size: int) -> None:
        self._folder, self._board, self._size = folder, board, size
        self._folder.mkdir(parents=True, exist_ok=True)
        self._parts: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def restore(self, iteration: int) -> None:
        """Back to what it held after some iterations: read the files of these, delete others."""
        self._parts = {}
        for number, path in sorted(_files(self._folder).items()):
            if number < iteration:
                self._parts[number] = _read(path, self._board)
            else:
                path.unlink()

    def add(self, iteration: int, rows: np.ndarray) -> None:
        """Keep the rows (ROW, (N,)) of an iteration; they are on disk when this returns."""
        buffer = io.BytesIO()
        np.save(buffer, rows, allow_pickle=False)
        write_whole(self._folder / f"{iteration:06}.npy", buffer.getvalue(), follow_links=False)
        self._parts[iteration] = rows
        while len(self) - len(self._parts[min(self._parts)]) >= self._size:
            del self._parts[min(self._parts)]

    def clear(self) -> None:
        """Drop all rows."""
        self._parts = {}

    def tidy(self) -> None:
        """Delete the files of what has been dropped; a checkpoint may want them until then."""
        for number, path in _files(self._folder).items():
            if number not in self._parts:
                path.unlink()

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Some rows, each as likely as another: ROW, (count,)."""
        return _pick([*self._parts.values()], rng.integers(0, len(self), count))


def read_rows(folders: Sequence[str], board: Board) -> list[np.ndarray]:
    """The rows of earlier runs' windows, a file each; they stay on the disk until they are wanted.
    ValueError when a folder has none, and as `ReplayWindow` has it."""
    found = []
    for folder in map(Path, folders):
        files = _files(folder) if folder.is_dir() else {}
        if not files:
            raise ValueError(f"there are no rows in {folder}; allowed: a run's folder `replay`")
        found += [_read(path, board) for _, path in sorted(files.items())]
    return found


def shuffled(parts: list[np.ndarray], size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """All rows of some parts once, in random order, `size` of them at a time: ROW, (size,). Those
    left in the end, which are fewer, are dropped unless there are no others."""
    order = rng.permutation(sum(map(len, parts)))
    for k in range(max(len(order) // size, 1)):
        yield _pick(parts, order[k * size : (k + 1) * size])


def _pick(parts: list[np.ndarray], picked: np.ndarray) -> np.ndarray:
    """The rows that stand at some places of parts one after the other: ROW, (N,)."""
    ends = np.cumsum([len(part) for part in parts])
    which = np.searchsorted(ends, picked, side="right")
    found = np.zeros(len(picked), ROW)
    for number in np.unique(which):
        places = np.flatnonzero(which == number)
        start = ends[number] - len(parts[number])
        found[places] = parts[number][picked[places] - start]
    return found


def _files(folder: Path) -> dict[int, Path]:
    """The files of rows in a folder, by iteration."""
    named = ((re.fullmatch(r"([0-9]{6,12})\.npy", p.name), p) for p in folder.iterdir())
    return {int(match[1]): path for match, path in named if match}


def _read(path: Path, board: Board) -> np.ndarray:
    """The rows of a file."""
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
        if rows.dtype != ROW or rows.ndim != 1 or not len(rows):
            raise ValueError("it holds other records")
        check_games(np.ascontiguousarray(rows["game"]), board)
        if not (rows["actions"] < board.num_actions).all():
            raise ValueError(f"it has actions of {board.num_actions} and above")
        if not np.isfinite(rows["chances"]).all():
            raise ValueError("it has chances that are no numbers")
        if (rows["telling"].view(np.uint8) > 1).any():
            raise ValueError("it has truth values above 1")
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is no part of a replay window: {error}") from error
    return rows
