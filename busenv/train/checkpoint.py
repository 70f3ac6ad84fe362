"""Checkpoints: one file, written atomically, from which a run resumes bit for bit.

A checkpoint holds the network's weights, Adam's moments, running games, and the state of the run,
with one SHA-256 over all of them, which detects any damage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from busenv.batch.saved_games import as_bytes
from busenv.error_text import truncate
from busenv.interrupts import interrupts_deferred
from busenv.io import write_whole
from busenv.networks.model_files import BoardReference, check_tensors
from busenv.schema import LONGEST_SENTENCE, Schema, parse

CHECKPOINT_FILE = "checkpoint.safetensors"
FORMAT = 9
NETWORK, OPTIMIZER, GAMES = "network.", "optimizer.", "games."  # prefixes of the names of tensors
MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's, of each weight

SMALL_FILE = 1_000_000  # bytes of the metadata

NonNegative = Annotated[int, Field(ge=0)]


class State(Schema):
    """The part of a checkpoint other than tensors; see `busenv.train.ppo_run.PPORun`.

    config, rules: as JSON objects. seconds: of training so far. league: its members' names and
    scores, 0 to 1.
    """

    format: int
    config: dict[str, Any]
    board: BoardReference
    rules: dict[str, Any]
    iteration: NonNegative
    decisions: NonNegative
    imitated: NonNegative
    seconds: Annotated[float, Field(ge=0)]
    league: list[tuple[str, Annotated[float, Field(ge=0, le=1)]]]


def save_checkpoint(
    folder: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    games: dict[str, np.ndarray],
) -> None:
    """Write the checkpoint of a run.

    state: the fields of `State` except the format. games: `busenv.Batch.state` of running games.
    """
    tensors = {
        name: value.detach().cpu().contiguous()
        for name, value in tensors_of(network, optimizer).items()
    } | _bytes_of(games)
    text = json.dumps({"format": FORMAT, **state})
    metadata = {"state": text, "sha256": _digest(tensors, text)}
    write_whole(folder / CHECKPOINT_FILE, save(tensors, metadata=metadata))


def tensors_of(network: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return the network's weights and the optimiser's moments by name, without copying."""
    tensors = {f"{NETWORK}{name}": value for name, value in network.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        for name, value in moments.items():
            tensors[f"{OPTIMIZER}{index}.{name}"] = value
    return tensors


def _bytes_of(games: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Return the arrays of running games as bytes, by name."""
    return {f"{GAMES}{name}": torch.from_numpy(as_bytes(array)) for name, array in games.items()}


def read_games(
    tensors: dict[str, torch.Tensor], games: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the running games of a checkpoint. games: arrays of their dtypes and shapes."""
    return {
        name: tensors[f"{GAMES}{name}"].numpy().view(array.dtype).reshape(array.shape)
        for name, array in games.items()
    }


@contextmanager
def atomic_update(network: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Undo an interrupted update, so that a checkpoint saved then is that of a whole iteration.

    An interrupt takes effect at once, since the rest of an update may take many seconds.
    """
    before = {name: value.clone() for name, value in tensors_of(network, optimizer).items()}
    try:
        yield
    except BaseException:
        with interrupts_deferred():
            restore(before, network, optimizer)
        raise


def read_state(folder: Path) -> State:
    """Read the state of a checkpoint; only `read_tensors` verifies its checksum.

    FileNotFoundError when there is no checkpoint, ValueError when the file is damaged.
    """
    path = folder / CHECKPOINT_FILE
    try:
        state = parse(State, _metadata(path)["state"])
        if state.format != FORMAT:
            raise ValueError(f"it has format {state.format}; this busenv has {FORMAT}")
    except (SafetensorError, KeyError, ValueError) as error:
        raise _damaged(path, error) from error
    return state


def read_tensors(
    folder: Path, weights: dict[str, torch.Tensor], games: dict[str, np.ndarray]
) -> dict[str, torch.Tensor]:
    """Read the tensors of a checkpoint, by name.

    weights: of its network (`busenv.networks.factory.weights_of`). games: arrays of the dtypes
    and shapes of its running games. ValueError when the checkpoint has others, or its checksum is
    wrong.
    """
    path = folder / CHECKPOINT_FILE
    try:
        metadata = _metadata(path)
        expected = {f"{NETWORK}{name}": weight for name, weight in weights.items()}
        expected |= _bytes_of(games)
        moments = _moments(weights)
        largest = (
            sum(t.numel() * t.itemsize for t in (expected | moments).values()) + 2 * SMALL_FILE
        )
        if path.stat().st_size > largest:
            raise ValueError(f"it is too large; allowed: {largest:,} bytes")
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        # Adam has no state before the first update.
        if any(name.startswith(OPTIMIZER) for name in tensors):
            expected |= moments
        check_tensors(tensors, expected)
        if _digest(tensors, metadata["state"]) != metadata["sha256"]:
            raise ValueError("its checksum is wrong")
    except (SafetensorError, KeyError, ValueError) as error:
        raise _damaged(path, error) from error
    return tensors


def restore(
    tensors: dict[str, torch.Tensor], network: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    """Load the tensors of a checkpoint into network and optimiser."""
    network.load_state_dict(
        {k[len(NETWORK) :]: v for k, v in tensors.items() if k.startswith(NETWORK)}
    )
    parameters = [*network.parameters()]
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith(OPTIMIZER):
            _, index, name = key.split(".")
            if name in MOMENTS:  # a fused optimiser needs them in the memory layout of the weight
                value = torch.empty_like(parameters[int(index)]).copy_(value)
            moments.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _metadata(path: Path) -> dict[str, str]:
    """Read the metadata in a checkpoint's header."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with safe_open(path, "pt") as file:
        metadata: dict[str, str] = file.metadata() or {}
    if len(metadata["state"]) > SMALL_FILE:
        raise ValueError("its state is too large")
    return metadata


def _moments(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Adam's state of some weights: a step count, and two moments of the weight's shape.

    Parameters are float32; other dtypes are those of buffers, which are not learned.
    """
    moments = {}
    learned = (weight for weight in weights.values() if weight.dtype == torch.float32)
    for index, weight in enumerate(learned):
        moments[f"{OPTIMIZER}{index}.step"] = torch.zeros((), device="meta")
        moments |= {f"{OPTIMIZER}{index}.{name}": weight for name in MOMENTS}
    return moments


def _digest(tensors: dict[str, torch.Tensor], state: str) -> str:
    """SHA-256 over the state and the tensors with their names, dtypes and shapes."""
    digest = hashlib.sha256(state.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().data)
    return digest.hexdigest()


def _damaged(path: Path, error: Exception) -> ValueError:
    message = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return ValueError(truncate(f"{path} is not a valid checkpoint: {message}", LONGEST_SENTENCE))
