"""Replay buffer on disk: one file of samples per iteration, the oldest files dropped first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from busenv import Board
from busenv.game.board_specs import GeneratedBoards
from busenv.io import write_whole
from busenv.train.expert_iteration.samples import SAMPLE, check_samples

ROWS = "samples"  # tensor of a file: the bytes of a sample in each row


class ReplayBuffer:
    """Samples of the last iterations, at least `size` of them once that many were added.

    folder: holds the buffer's files only; it is created if missing. Files are validated when they
    are read: ValueError when one is damaged or of other boards.
    """

    def __init__(self, folder: Path, boards: Board | GeneratedBoards, size: int) -> None:
        self._folder, self._boards, self._size = folder, boards, size
        self._folder.mkdir(parents=True, exist_ok=True)
        self._parts: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def restore(self, iteration: int) -> None:
        """Read the files of the iterations before this one and delete the others."""
        self._parts = {}
        for number, path in sorted(_files(self._folder).items()):
            if number < iteration:
                self._parts[number] = _read(path, self._boards)
            else:
                path.unlink()

    def add(self, iteration: int, samples: np.ndarray) -> None:
        """Add the samples (SAMPLE, (N,)) of an iteration; they are on disk when this returns.

        Without samples, nothing is added.
        """
        if not len(samples):
            return
        rows = np.ascontiguousarray(samples).view(np.uint8).reshape(-1, SAMPLE.itemsize)
        data = save({ROWS: rows})
        write_whole(self._folder / f"{iteration:06}.safetensors", data)
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


def read_samples(folders: Sequence[str], boards: Board | GeneratedBoards) -> list[np.ndarray]:
    """Read the replay folders of earlier runs: one memory-mapped array (SAMPLE, (N,)) per file.

    ValueError when a folder has no samples, or for the reasons of `ReplayBuffer`.
    """
    parts = []
    for folder in map(Path, folders):
        files = _files(folder) if folder.is_dir() else {}
        if not files:
            raise ValueError(
                f"no samples in {folder}; allowed: the folder `replay` of a run, which holds files "
                "such as 000000.safetensors"
            )
        parts += [_read(path, boards) for _, path in sorted(files.items())]
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
    pattern = r"([0-9]{6,12})\.safetensors"
    named = ((re.fullmatch(pattern, path.name), path) for path in folder.iterdir())
    return {int(match[1]): path for match, path in named if match}


def _read(path: Path, boards: Board | GeneratedBoards) -> np.ndarray:
    """Read and validate a file of samples, memory-mapped: SAMPLE, (N,)."""
    if not path.is_file():  # opening a pipe would wait for a writer
        raise ValueError(f"{path} is not a file")
    try:
        with safe_open(path, "pt") as file:  # torch's tensors are memory-mapped
            header = file.get_slice(ROWS)
            length, *size = header.get_shape() or [0]
            if header.get_dtype() != "U8" or size != [SAMPLE.itemsize] or not length:
                raise ValueError("its records are not samples of this version of busenv")
            samples: np.ndarray = file.get_tensor(ROWS).numpy().view(SAMPLE)[:, 0]
        check_samples(samples, boards)
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"{path} is not a file of a replay buffer: {error}") from error
    return samples
