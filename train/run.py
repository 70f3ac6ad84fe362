"""What every run in a folder has, however it learns: how far it is, its card, its checkpoint."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from busenv import __version__
from busenv.agents.networks.mlp import COMPATIBLE, build_network, load_compatible, weights_of
from busenv.agents.networks.model_files import load_model, model_path, save_model
from busenv.error_text import quote
from busenv.game.board import load_board
from busenv.game.rules import EDITIONS, as_rules
from busenv.train.checkpoint import (
    NAME,
    State,
    read_state,
    read_tensors,
    restore,
    save_checkpoint,
)
from busenv.train.config import RunConfig

FREE_BYTES = 500_000_000  # that a run wants to see free on the disk before it begins
MODEL = "model.safetensors"


@dataclass
class Iteration:
    """Where a run is after a rollout and its update.

    progress: 0 to 1. scalars: statistics by name, such as "train/value_loss".
    """

    number: int
    decisions: int
    seconds: float
    progress: float
    scalars: dict[str, float]


class TrainingRun:
    """A run in a folder, with nothing learned yet; a subclass sets `network` and `_optimizer`.

    iteration: how many are done. decisions: learned from so far; imitated: how many of them were
    learned by imitation. `_seconds`: of training so far, at the end of the last iteration.
    """

    network: torch.nn.Module
    _optimizer: torch.optim.Optimizer

    def __init__(self, config: RunConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.board, self.rules = load_board(config.board), as_rules(config.rules)
        self.iteration, self.decisions, self.imitated = 0, 0, 0
        self._seconds, self._began = 0.0, time.monotonic()
        torch.set_num_threads(config.threads)

    @property
    def seconds(self) -> float:
        """Of training so far, those before a checkpoint included."""
        return time.monotonic() - self._began

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1 and a little more."""
        if self.config.decisions is not None:
            return self.decisions / self.config.decisions
        assert self.config.seconds is not None
        return self._seconds / self.config.seconds

    @property
    def is_done(self) -> bool:
        """Whether the seconds or decisions of the settings are used up."""
        return self.progress >= 1

    def card(self) -> dict[str, Any]:
        """What a model's card says of network and training."""
        config = self.config
        return {
            "network": config.network,
            "width": config.width,
            "rules": config.rules if config.rules in EDITIONS else self.rules.to_dict(),
            "players": list(config.players),
            "temperature": config.temperature,
            "training": {
                "busenv": __version__,
                "config": config.to_dict(),
                "iterations": self.iteration,
                "decisions": self.decisions,
                "imitated": self.imitated,
                "seconds": round(self._seconds, 1),
            },
        }

    def _start_clock(self) -> None:
        """All is ready: from now on seconds are of training."""
        self._began = time.monotonic() - self._seconds

    def _check_disk(self) -> None:
        """OSError when the disk is nearly full."""
        free = shutil.disk_usage(self.folder).free
        if free < FREE_BYTES:
            raise OSError(f"{self.folder}: only {free / 1e6:.0f} MB are free on the disk")

    def _initial_network(self) -> torch.nn.Module:
        """The network that the run starts with."""
        config = self.config
        network = build_network(config.network, self.board, config.width, config.seed)
        if config.init_from and not (self.folder / NAME).exists():  # else the checkpoint has it all
            self._begin_as(network, config.init_from)
            for so_far, model in enumerate(config.average_checkpoints, 1):
                other = build_network(config.network, self.board, config.width, config.seed)
                self._begin_as(other, model)
                with torch.no_grad():
                    for mean, its in zip(network.parameters(), other.parameters(), strict=True):
                        mean.lerp_(its, 1 / (so_far + 1))
        return network

    def _begin_as(self, network: torch.nn.Module, model: str) -> None:
        """Give a fresh network a model's weights."""
        config = self.config
        past, card = load_model(model_path(model), self.board)
        heirs = (card["network"], *COMPATIBLE.get(card["network"], ()))
        if config.network not in heirs or config.width != card["width"]:
            raise ValueError(
                f"{model} holds a network {card['network']!r} of width {card['width']}, "
                f"the settings say {config.network!r} of width {config.width}; "
                f"allowed with it: {', '.join(heirs)}, of width {card['width']}"
            )
        load_compatible(network, past)

    def _checkpoint(
        self, weights: dict[str, torch.Tensor] | None = None
    ) -> tuple[State, dict[str, torch.Tensor]] | None:
        """What the checkpoint of the folder holds, if it is one of this run; None without one.

        weights: that the network needs; None for those that the settings say.
        """
        if not (self.folder / NAME).exists():
            return None
        state = read_state(self.folder)
        if state.board.fingerprint != self.board.fingerprint:
            raise ValueError(
                f"{self.folder} holds a run on a board with fingerprint "
                f"{state.board.fingerprint}; {self.config.board} is another or has changed: "
                f"its fingerprint is {self.board.fingerprint}"
            )
        if state.rules != self.rules.to_dict():
            raise ValueError(
                f"{self.folder} holds a run with the rules {quote(state.rules)}; "
                f"{self.config.rules} has {self.rules.to_dict()}"
            )
        if weights is None:
            weights = weights_of(self.config.network, self.board, self.config.width)
        return state, read_tensors(self.folder, weights)

    def _resume(self, state: State, tensors: dict[str, torch.Tensor]) -> None:
        """Back to a checkpoint."""
        restore(tensors, self.network, self._optimizer)
        self.iteration, self.decisions = state.iteration, state.decisions
        self.imitated, self._seconds = state.imitated, state.seconds

    def _save_checkpoint(self, league: list[tuple[str, float]] | None = None) -> None:
        """Write the checkpoint. league: names and scores of its members, if there is one."""
        state = {
            "config": self.config.to_dict(),
            "board": {"name": self.board.name, "fingerprint": self.board.fingerprint},
            "rules": self.rules.to_dict(),
            "iteration": self.iteration,
            "decisions": self.decisions,
            "imitated": self.imitated,
            "seconds": self._seconds,
            "league": league or [],
        }
        save_checkpoint(self.folder, self.network, self._optimizer, state)

    def _save_model(self, path: Path) -> None:
        save_model(self.network, self.board, path, self.card())
