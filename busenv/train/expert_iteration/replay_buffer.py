"""Samples on disk: a folder of files, one for each iteration or part of self-play."""

from __future__ import annotations

from collections.abc import Sequence
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
        for number, path in sample_files(self._folder).items():
            if number < iteration:
                self._parts[number] = read_file(path, self._boards)
            else:
                path.unlink()

    def add(self, iteration: int, samples: np.ndarray) -> None:
        """Add the samples (SAMPLE, (N,)) of an iteration; they are on disk when this returns."""
        write_file(self._folder, iteration, samples)
        self._parts[iteration] = samples
        while len(self) - len(self._parts[min(self._parts)]) >= self._size:
            del self._parts[min(self._parts)]

    def delete_dropped(self) -> None:
        """Delete the files of dropped samples; until a new checkpoint the old one needs them."""
        for number, path in sample_files(self._folder).items():
            if number not in self._parts:
                path.unlink()

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Sample with replacement, uniformly at random: SAMPLE, (count,)."""
        return take([*self._parts.values()], rng.integers(0, len(self), count))


def read_samples(
    folders: Sequence[str | Path], boards: Board | GeneratedBoards
) -> list[np.ndarray]:
    """Read folders of samples: one memory-mapped array (SAMPLE, (N,)) per file.

    ValueError without samples, or when a file is damaged or of other boards.
    """
    files = [path for folder in folders for path in sample_files(Path(folder)).values()]
    if not files:
        raise ValueError(
            f"no samples in {', '.join(map(str, folders)) or 'data'}; allowed: folders that "
            "`busenv selfplay` wrote, or the folder `replay` of an expert iteration"
        )
    return [read_file(path, boards) for path in files]


def take(parts: list[np.ndarray], indices: np.ndarray) -> np.ndarray:
    """Samples at indices of the concatenated parts: SAMPLE, (N,)."""
    ends = np.cumsum([len(part) for part in parts])
    part_numbers = np.searchsorted(ends, indices, side="right")
    samples = np.zeros(len(indices), SAMPLE)
    for number in np.unique(part_numbers):
        rows = np.flatnonzero(part_numbers == number)
        start = ends[number] - len(parts[number])
        samples[rows] = parts[number][indices[rows] - start]
    return samples


def sample_files(folder: Path) -> dict[int, Path]:
    """Return the sample files of a folder by number, ascending; none if the folder is missing."""
    paths = [path for path in folder.glob("*.safetensors") if path.stem.isdecimal()]
    return dict(sorted((int(path.stem), path) for path in paths))


def write_file(folder: Path, number: int, samples: np.ndarray) -> None:
    """Write samples (SAMPLE, (N,)) to the folder's file of a number, atomically."""
    rows = np.ascontiguousarray(samples).view(np.uint8).reshape(-1, SAMPLE.itemsize)
    write_whole(folder / f"{number:06}.safetensors", save({ROWS: rows}))


def read_file(path: Path, boards: Board | GeneratedBoards) -> np.ndarray:
    """Read and validate a file of samples, memory-mapped: SAMPLE, (N,)."""
    try:
        with safe_open(path, "pt") as file:  # torch's tensors are memory-mapped
            header = file.get_slice(ROWS)
            length, *size = header.get_shape() or [0]
            if header.get_dtype() != "U8" or size != [SAMPLE.itemsize] or not length:
                raise ValueError("its records are not samples of this version of busenv")
            samples: np.ndarray = file.get_tensor(ROWS).numpy().view(SAMPLE)[:, 0]
        check_samples(samples, boards)
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"{path} is not a file of samples: {error}") from error
    return samples
