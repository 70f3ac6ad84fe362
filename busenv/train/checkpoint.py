"""Checkpoints: one file, written atomically, from which a run resumes bit for bit.

A checkpoint holds the network's weights, Adam's moments, running games, and the state of the run,
with one SHA-256 over all of them, which detects any damage.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from busenv.batch.saved_games import as_bytes
from busenv.error_text import printable, truncate
from busenv.io import write_whole
from busenv.schema import LONGEST_SENTENCE, Schema, parse

CHECKPOINT_FILE = "checkpoint.safetensors"
FORMAT = 11
HEADER_BYTES = 2_000_000  # largest size of the state and of the names of tensors
NETWORK, OPTIMIZER, GAMES = "network.", "optimizer.", "games."  # prefixes of the names of tensors
MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's, of each weight


class State(Schema):
    """The part of a checkpoint other than tensors.

    decisions: training decisions so far. seconds: of training so far. league: its members' names
    and scores, 0 to 1.
    """

    format: int
    iteration: Annotated[int, Field(ge=0)]
    decisions: Annotated[int, Field(ge=0)]
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
    tensors = {f"{NETWORK}{name}": value for name, value in network.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"{OPTIMIZER}{index}.{name}": value for name, value in moments.items()}
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    tensors |= {f"{GAMES}{name}": torch.from_numpy(as_bytes(a)) for name, a in games.items()}
    text = json.dumps({"format": FORMAT, **state})
    metadata = {"state": text, "sha256": _digest(tensors, text)}
    write_whole(folder / CHECKPOINT_FILE, save(tensors, metadata=metadata))


def load_checkpoint(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, games: dict[str, np.ndarray]
) -> State | None:
    """Load a checkpoint into network, optimiser and running games; None without one.

    games: `busenv.Batch.state` of games, whose content is overwritten. ValueError when the
    checkpoint is damaged or of another network or other games.
    """
    path = folder / CHECKPOINT_FILE
    if not path.is_file():
        return None
    try:
        weights = sum(value.nbytes for value in network.state_dict().values())
        largest = 3 * weights + sum(array.nbytes for array in games.values()) + HEADER_BYTES
        if path.stat().st_size > largest:
            raise ValueError(f"it is larger than {largest:,} bytes")
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if _digest(tensors, metadata["state"]) != metadata["sha256"]:
            raise ValueError("its checksum is wrong")
        state = parse(State, metadata["state"])
        if state.format != FORMAT:
            raise ValueError(f"it has format {state.format}; this busenv has {FORMAT}")
        _restore(tensors, network, optimizer)
        for name, array in games.items():
            as_bytes(array)[:] = tensors[f"{GAMES}{name}"].numpy()
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        message = f"{path} is not a valid checkpoint of these settings: {reason}"
        message = printable(" ".join(message.split()))
        raise ValueError(truncate(message, LONGEST_SENTENCE)) from error
    return state


def _restore(
    tensors: dict[str, torch.Tensor], network: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
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


def _digest(tensors: dict[str, torch.Tensor], state: str) -> str:
    """SHA-256 over the state and the tensors with their names, dtypes and shapes."""
    digest = hashlib.sha256(state.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().data)
    return digest.hexdigest()
