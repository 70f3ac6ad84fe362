"""Checkpoints: one file, written whole or not at all, from which a run goes on as it would have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from busenv.files import write_whole

NAME = "checkpoint.safetensors"
FORMAT = 2


def save_checkpoint(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    """Write the checkpoint of a run. state: whatever else is to be kept, as JSON can hold it."""
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        for name, value in moments.items():
            tensors[f"optimizer.{index}.{name}"] = value
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    metadata = {"state": json.dumps({"format": FORMAT, **state})}
    write_whole(folder / NAME, save(tensors, metadata=metadata))


def read_state(folder: Path) -> dict[str, Any]:
    """The state that a checkpoint was saved with.

    FileNotFoundError when there is no checkpoint, ValueError when it is none.
    """
    path = folder / NAME
    try:
        with safe_open(path, "pt") as file:
            state = json.loads((file.metadata() or {})["state"])
        if state["format"] != FORMAT:
            raise ValueError(f"it has format {state['format']}; this busenv has {FORMAT}")
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no checkpoint to go on from: {error}") from error
    return dict(state)


def load_tensors(folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Bring network and optimiser back from a checkpoint; ValueError when it does not fit them."""
    path = folder / NAME
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        prefix = "network."
        network.load_state_dict(
            {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
        )
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".")
                moments.setdefault(int(index), {})[name] = value
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": moments, "param_groups": groups})
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} is no checkpoint to go on from: {error}") from error
