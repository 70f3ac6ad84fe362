"""Replay buffer on disk: one file of samples per iteration, the oldest files dropped first."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from busenv import Board
from busenv.io import write_whole
from busenv.train.expert_iteration.samples import SAMPLE
from busenv.validation import check_games


class ReplayBuffer:
    """Samples of the last iterations, at least `size` of them once that many were added.

    folder: holds the buffer's files only; it is created if missing. Files are validated when they
    are read: ValueError when one is damaged or of another board.
    """

    def __init__(self, folder: Path, board: Board, size: int) -> None:
        self._folder, self._board, self._size = folder, board, size
        self._folder.mkdir(parents=True, exist_ok=True)
        self._parts: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def restore(self, iteration: int) -> None:
        """Read the files of the iterations before this one and delete the others."""
        self._parts = {}
        for number, path in sorted(_files(self._folder).items()):
            if number < iteration:
                self._parts[number] = _read(path, self._board)
            else:
                path.unlink()

    def add(self, iteration: int, samples: np.ndarray) -> None:
        """Add the samples (SAMPLE, (N,)) of an iteration; they are on disk when this returns."""
        buffer = io.BytesIO()
        np.save(buffer, samples, allow_pickle=False)
        write_whole(self._folder / f"{iteration:06}.npy", buffer.getvalue(), follow_links=False)
        self._parts[iteration] = samples
        while len(self) - len(self._parts[min(self._parts)]) >= self._size:
            del self._parts[min(self._parts)]

    def clear(self) -> None:
        """Drop all samples."""
        self._parts = {}

    def delete_dropped(self) -> None:
        """Delete the files of dropped samples; until a new checkpoint the old one needs them."""
        for number, path in _files(self._folder).items():
            if number not in self._parts:
                path.unlink()

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Sample with replacement, uniformly at random: SAMPLE, (count,)."""
        return _take([*self._parts.values()], rng.integers(0, len(self), count))


def read_samples(folders: Sequence[str], board: Board) -> list[np.ndarray]:
    """Read the replay folders of earlier runs: one memory-mapped array (SAMPLE, (N,)) per file.

    ValueError when a folder has no samples, or for the reasons of `ReplayBuffer`.
    """
    parts = []
    for folder in map(Path, folders):
        files = _files(folder) if folder.is_dir() else {}
        if not files:
            raise ValueError(f"no samples in {folder}; allowed: the folder `replay` of a run")
        parts += [_read(path, board) for _, path in sorted(files.items())]
    return parts


def shuffled_batches(
    parts: list[np.ndarray], size: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield all samples once in random order, in batches: SAMPLE, (size,).

    The last batch is dropped if it is incomplete, unless it is the only one.
    """
    order = rng.permutation(sum(map(len, parts)))
    for k in range(max(len(order) // size, 1)):
        yield _take(parts, order[k * size : (k + 1) * size])


def _take(parts: list[np.ndarray], indices: np.ndarray) -> np.ndarray:
    """Samples at indices of the concatenated parts: SAMPLE, (N,)."""
    ends = np.cumsum([len(part) for part in parts])
    part_numbers = np.searchsorted(ends, indices, side="right")
    samples = np.zeros(len(indices), SAMPLE)
    for number in np.unique(part_numbers):
        rows = np.flatnonzero(part_numbers == number)
        start = ends[number] - len(parts[number])
        samples[rows] = parts[number][indices[rows] - start]
    return samples


def _files(folder: Path) -> dict[int, Path]:
    """Sample files in a folder by iteration."""
    named = ((re.fullmatch(r"([0-9]{6,12})\.npy", p.name), p) for p in folder.iterdir())
    return {int(match[1]): path for match, path in named if match}


def _read(path: Path, board: Board) -> np.ndarray:
    """Read and validate a file of samples."""
    try:
        samples = np.load(path, mmap_mode="r", allow_pickle=False)
        if samples.dtype != SAMPLE or samples.ndim != 1 or not len(samples):
            raise ValueError("its records are not samples")
        check_games(np.ascontiguousarray(samples["game"]), board)
        if not (samples["actions"] < board.num_actions).all():
            raise ValueError(f"it has action ids of {board.num_actions} or more")
        if not np.isfinite(samples["win_probs"]).all():
            raise ValueError("it has win probabilities that are not finite")
        if (samples["has_value_target"].view(np.uint8) > 1).any():
            raise ValueError("it has booleans above 1")
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a file of a replay buffer: {error}") from error
    return samples
