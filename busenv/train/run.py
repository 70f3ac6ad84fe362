"""Training runs in a folder: progress, model card, checkpoint; the base of all kinds of runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from busenv import Game, __version__
from busenv.agents import make_agent
from busenv.agents.game_histories import GameHistories
from busenv.agents.policy_agent import PolicyAgent
from busenv.error_text import quote
from busenv.game.board_specs import board_at
from busenv.game.rules import EDITIONS, as_rules
from busenv.networks.factory import COMPATIBLE, build_network, load_compatible, weights_of
from busenv.networks.model_files import board_reference, load_model, model_path, save_model
from busenv.networks.network import Network
from busenv.train.checkpoint import (
    CHECKPOINT_FILE,
    State,
    read_state,
    read_tensors,
    restore,
    save_checkpoint,
)
from busenv.train.config import RunConfig, training_boards

FREE_BYTES = 500_000_000  # of disk space that a run requires at its start
MODEL = "model.safetensors"
PAST_FOLDER = "past"  # of past selves
LOWEST_LEARNING_RATE = 0.05  # at the end of a run, as a share of that at the beginning


@dataclass
class Iteration:
    """Progress of a run after an iteration.

    scalars: statistics by name, such as "train/value_loss".
    """

    number: int
    decisions: int
    seconds: float
    scalars: dict[str, float]

    @property
    def decisions_per_second(self) -> float:
        """Mean of the run so far, ratings included."""
        return self.decisions / self.seconds


class TrainingRun:
    """A run in a folder; a subclass sets `network`, `agent` and `_optimizer`.

    boards: the board, or the set of boards, of the settings. board: the board, or the first board
    of the set. All boards of a set have its size, unless the network plays any board.
    iteration: number of finished ones. decisions: learned from so far; imitated: those of them that
    were learned by imitation. `_seconds`: of training, at the end of the last iteration.
    """

    network: Network
    agent: PolicyAgent
    _optimizer: torch.optim.Optimizer

    def __init__(self, config: RunConfig, folder: str | Path) -> None:
        self.config, self.folder = config, Path(folder)
        self.boards, self.rules = training_boards(config.board), as_rules(config.rules)
        self.board = board_at(self.boards, 0)
        self.iteration, self.decisions, self.imitated = 0, 0, 0
        self._seconds, self._began = 0.0, time.monotonic()
        torch.set_num_threads(config.threads)

    @property
    def seconds(self) -> float:
        """Length of the run so far in seconds, with ratings and the time before a checkpoint."""
        return time.monotonic() - self._began

    @property
    def progress(self) -> float:
        """The finished share of the run: 0 to 1, or slightly more."""
        if self.config.decisions is not None:
            return self.decisions / self.config.decisions
        assert self.config.seconds is not None
        return self._seconds / self.config.seconds

    @property
    def is_done(self) -> bool:
        """Whether the run has reached its seconds or decisions."""
        return self.progress >= 1

    def card(self) -> dict[str, Any]:
        """Return the network and training fields of a model card."""
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
        """Count seconds of training from now on."""
        self._began = time.monotonic() - self._seconds

    def _try_agents(self, specs: Iterable[str]) -> None:
        """Let agents, and the learner, choose an action, which compiles them.

        Raises the error of an agent that cannot play.
        """
        game = Game(self.config.players[0], self.rules, self.board, first_player=0, seed=0)
        self.agent.act(game)
        for spec in specs:
            with closing(make_agent(spec)) as agent:
                histories = GameHistories([agent], game.arrays()[0], self.rules, self.board)
                histories.choose(agent, np.arange(1))

    def _check_disk(self) -> None:
        """Raise OSError when the disk is nearly full."""
        free = shutil.disk_usage(self.folder).free
        if free < FREE_BYTES:
            raise OSError(
                f"{self.folder}: {free / 1e6:.0f} MB of disk space are free; required: "
                f"{FREE_BYTES / 1e6:.0f} MB"
            )

    def _initial_network(self) -> Network:
        """Return the network at the start of the run, with the weights of `init_from` if set."""
        config = self.config
        network = build_network(
            config.network, self.board, config.width, config.seed,
            relative_types=config.relative_types,
        )  # fmt: skip
        if config.init_from and not (self.folder / CHECKPOINT_FILE).exists():
            self._initialise(network, config.init_from)
        return network

    def _initialise(self, network: Network, model: str) -> None:
        """Copy a model's weights into a new network."""
        config = self.config
        past, card = load_model(model_path(model), self.boards)
        compatible = (card["network"], *COMPATIBLE.get(card["network"], ()))
        if config.network not in compatible or config.width != card["width"]:
            raise ValueError(
                f"the initial model {model} is a network {card['network']!r} of width "
                f"{card['width']}; the settings have {config.network!r} of width {config.width}; "
                f"allowed: network {', '.join(compatible)}, width {card['width']}"
            )
        if config.relative_types != past.relative_types:
            raise ValueError(
                f"relative_types is {config.relative_types}; allowed with the initial model "
                f"{model}: {past.relative_types}"
            )
        load_compatible(network, past)

    def _checkpoint(
        self,
        weights: dict[str, torch.Tensor] | None = None,
        games: dict[str, np.ndarray] | None = None,
    ) -> tuple[State, dict[str, torch.Tensor]] | None:
        """Read the folder's checkpoint; None without one, ValueError if it is of another run.

        weights: names, shapes and dtypes of the network's; None for those of the settings.
        games: arrays of the dtypes and shapes of the state of running games, if there are any.
        """
        if not (self.folder / CHECKPOINT_FILE).exists():
            return None
        state = read_state(self.folder)
        if state.board.fingerprint != self.boards.fingerprint:
            raise ValueError(
                f"{self.folder} holds a run on a board with fingerprint "
                f"{state.board.fingerprint}; {self.config.board} is another or has changed: "
                f"its fingerprint is {self.boards.fingerprint}"
            )
        if state.rules != self.rules.to_dict():
            raise ValueError(
                f"{self.folder} holds a run with the rules {quote(state.rules)}; "
                f"{self.config.rules} has {self.rules.to_dict()}"
            )
        if weights is None:
            config = self.config
            weights = weights_of(
                config.network, self.board, config.width, relative_types=config.relative_types
            )
        return state, read_tensors(self.folder, weights, games or {})

    def _resume(self, state: State, tensors: dict[str, torch.Tensor]) -> None:
        """Restore a checkpoint."""
        restore(tensors, self.network, self._optimizer)
        self.iteration, self.decisions = state.iteration, state.decisions
        self.imitated, self._seconds = state.imitated, state.seconds

    def _save_checkpoint(
        self,
        league: list[tuple[str, float]] | None = None,
        games: dict[str, np.ndarray] | None = None,
    ) -> None:
        """Write the checkpoint.

        league: names and scores of its members, if there is one. games: `state()` of a batch of
        running games, if there are any.
        """
        state = {
            "config": self.config.to_dict(),
            "board": board_reference(self.boards),
            "rules": self.rules.to_dict(),
            "iteration": self.iteration,
            "decisions": self.decisions,
            "imitated": self.imitated,
            "seconds": self._seconds,
            "league": league or [],
        }
        save_checkpoint(self.folder, self.network, self._optimizer, state, games or {})

    def _save_model(self, path: Path) -> None:
        save_model(self.network, self.boards, path, self.card())
