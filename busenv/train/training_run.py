"""Training runs in a folder: progress, model card, checkpoint; the base of all kinds of runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from busenv import Game, __version__
from busenv.agents import make_agent
from busenv.agents.policy_agent import DistributionAgent
from busenv.game.board_specs import board_at
from busenv.game.rules import EDITIONS, as_rules
from busenv.networks.factory import build_network
from busenv.networks.model_files import load_model, model_path, save_model
from busenv.networks.network import Network
from busenv.train.checkpoint import CHECKPOINT_FILE, State, load_checkpoint, save_checkpoint
from busenv.train.config import RunConfig, training_boards

MODEL = "model.safetensors"
LOWEST_LEARNING_RATE = 0.05  # at the end of a run, as a share of that at the beginning


class TrainingRun:
    """A run in a folder; a subclass sets `network`, `agent` and `optimizer`.

    Its method `step` runs an iteration and returns statistics by name, such as "train/value_loss".

    boards: the board, or the set of boards, of the settings. board: the board, or the first board
    of the set. All boards of a set have its size, unless the network plays any board.
    iteration: number of finished ones. decisions: training decisions so far. `_seconds`: of
    training, at the end of the last iteration.
    """

    config: Any  # RunConfig, narrowed by subclasses
    network: Network
    agent: DistributionAgent
    optimizer: torch.optim.Optimizer

    def __init__(self, config: RunConfig, folder: str | Path) -> None:
        self.config, self.folder = config, Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.boards, self.rules = training_boards(config.board), as_rules(config.rules)
        self.board = board_at(self.boards, 0)
        self.iteration, self.decisions = 0, 0
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
            return float(self.decisions / self.config.decisions)
        return float(self._seconds / self.config.seconds)

    @property
    def is_done(self) -> bool:
        """Whether the run is finished."""
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
                if agent.single_game_only:
                    agent.act(game)
                else:
                    agent.choose_trusted(game.arrays()[0], self.board)

    def _initial_network(self) -> Network:
        """Return the network at the start of the run, with the weights of `init_from` if set.

        ValueError when that model has another network, width or `relative_types`, or boards.
        """
        config = self.config
        network = build_network(
            config.network, self.board, config.width, config.seed,
            relative_types=config.relative_types,
        )  # fmt: skip
        if config.init_from and not (self.folder / CHECKPOINT_FILE).exists():
            past, card, _ = load_model(model_path(config.init_from), self.boards)
            wanted = config.network, config.width, config.relative_types
            if (model := (card.network, card.width, card.relative_types)) != wanted:
                raise ValueError(
                    f"the initial model {config.init_from} has network, width and relative_types "
                    f"{model}; the settings have {wanted}"
                )
            network.load_state_dict(past.state_dict())
        return network

    def _resume(
        self, network: nn.Module | None = None, games: dict[str, np.ndarray] | None = None
    ) -> State | None:
        """Restore the folder's checkpoint; None without one, ValueError if it does not fit.

        network: by default the run's. games: state of running games, which is overwritten.
        """
        state = load_checkpoint(self.folder, network or self.network, self.optimizer, games or {})
        if state is not None:
            self.iteration, self.decisions = state.iteration, state.decisions
            self._seconds = state.seconds
        return state

    def save(self) -> None:
        """Write the checkpoint, and the model with its card."""
        self._save([], {})

    def _save(self, league: list[tuple[str, float]], games: dict[str, np.ndarray]) -> None:
        """Same as `save`, with names and scores of a league, and `state()` of running games."""
        state = {
            "iteration": self.iteration,
            "decisions": self.decisions,
            "seconds": self._seconds,
            "league": league,
        }
        save_model(self.network, self.boards, self.folder / MODEL, self.card())
        save_checkpoint(self.folder, self.network, self.optimizer, state, games)  # last: ends a run
