"""A run of expert iteration: play by the search, learn, and again; checkpoints to go on from."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from busenv import __version__
from busenv.agents import make_agent
from busenv.agents.mcts.guided import Settings
from busenv.agents.neural.files import load_model, model_path, save_model
from busenv.agents.neural.inference import Weights, read_weights
from busenv.agents.neural.networks import SeatsMlp, build_network, weights_of
from busenv.agents.neural.policy import PolicyAgent
from busenv.board import load_board
from busenv.interrupts import interrupts_deferred
from busenv.rules import EDITIONS, as_rules
from busenv.train.checkpoint import (
    NAME,
    State,
    read_state,
    read_tensors,
    restore,
    save_checkpoint,
    whole_or_not_at_all,
)
from busenv.train.expert.config import ExpertConfig
from busenv.train.expert.learner import Learner
from busenv.train.expert.selfplay import Plan, SelfPlay
from busenv.train.expert.teacher import taught_rows
from busenv.train.expert.window import Window
from busenv.train.trainer import FREE_BYTES, MODEL, Iteration

TEACHER_GAMES = 256  # of a teacher, side by side, in an iteration
LOWEST_LEARNING_RATE = 0.05  # at the end of a run, as a share of that at the beginning
PAST, KEPT = "past", 8  # folder of past selves, and how many there are


class ExpertRun:
    """Expert iteration in a folder. Goes on from the folder's checkpoint.

    All that is random in iteration i is drawn from the seed and i, and games do not outlive their
    iteration; the rows of each are on disk before they are learned from. So a run that is killed
    does its last iteration again, and ends as it would have.

    agent: plays by the network alone. imitated: how many of the `decisions` were a teacher's.

    Errors are those of `busenv.train.trainer.Run`.
    """

    def __init__(self, config: ExpertConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.board, self.rules = load_board(config.board), as_rules(config.rules)
        self.iteration, self.decisions, self.imitated = 0, 0, 0
        self._seconds = 0.0
        torch.set_num_threads(config.threads)
        (folder / PAST).mkdir(parents=True, exist_ok=True)
        resumed = (folder / NAME).exists()
        network = self._initial_network(resumed)
        self.network = network
        self.learner = Learner(network, self.board, config.search_share, config.points)
        self.agent = PolicyAgent(network, self.board, "net", config.seed, config.temperature)
        self._window = Window(folder, self.board, config.window)
        plan = Plan(config.full, config.fast, config.full_share, config.early,
                    config.bot_simulations)  # fmt: skip
        self._selfplay = SelfPlay(
            self.board, self.rules, config.players, plan, Settings(), config.threads
        )
        if resumed:
            self._resume()
        free = shutil.disk_usage(folder).free
        if free < FREE_BYTES:
            raise OSError(f"{folder}: only {free / 1e6:.0f} MB are free on the disk")
        self._began = time.monotonic() - self._seconds

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

    def step(self) -> Iteration:
        """Play games and learn from the window; on disk when this returns."""
        config = self.config
        rng = np.random.default_rng((config.seed, self.iteration))
        lessons = -(-config.teacher_games // TEACHER_GAMES) if config.teacher else 0
        taught = self.iteration < lessons
        scalars: dict[str, float] = {}
        if taught:
            rows = self._taught(rng)
        else:
            weights = read_weights(self.network)
            past = self._past_weights(rng)
            rows, scalars = self._selfplay.play(
                weights, past or weights, config.games, config.past_share if past else 0.0,
                config.bot_share, rng,
            )  # fmt: skip
        self._window.add(self.iteration, rows)
        # A teacher's games are learned from when all of them are there: whoever begins with the
        # first hundred knows these by heart before the others come.
        samples = config.reuse * len(rows)
        if taught:
            samples = config.teacher_reuse * len(self._window) * (self.iteration + 1 == lessons)
        if samples:
            with whole_or_not_at_all(self.network, self.learner.optimizer):
                scalars |= self._learn(samples, rng, falling=taught)
        with interrupts_deferred():
            self.iteration += 1
            self.decisions += len(rows)
            self.imitated += len(rows) * taught
            if self.iteration % config.keep_every == 0:
                past_path = self._past_path(self.iteration)
                save_model(self.network, self.board, past_path, self.card())
            self._seconds = self.seconds
            self.save()
        return Iteration(self.iteration, self.decisions, self._seconds, self.progress, scalars)

    def save(self) -> None:
        """Write the checkpoint, and the model with its card."""
        state = {
            "config": self.config.to_dict(),
            "board": {"name": self.board.name, "fingerprint": self.board.fingerprint},
            "rules": self.rules.to_dict(),
            "iteration": self.iteration,
            "decisions": self.decisions,
            "imitated": self.imitated,
            "seconds": self._seconds,
            "pool": {},
        }
        save_checkpoint(self.folder, self.network, self.learner.optimizer, state)
        save_model(self.network, self.board, self.folder / MODEL, self.card())
        self._window.tidy()
        kept = {self._past_path(number).stem for number in self._past_numbers()}
        for path in (self.folder / PAST).iterdir():
            if path.stem not in kept:
                path.unlink()

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

    def _initial_network(self, resumed: bool) -> SeatsMlp:
        """The network that the run starts with."""
        config = self.config
        network = build_network(config.network, self.board, config.width, config.seed)
        assert isinstance(network, SeatsMlp)
        if config.start and not resumed:
            start, card = load_model(model_path(config.start), self.board)
            if (card["network"], card["width"]) != (config.network, config.width):
                raise ValueError(
                    f"{config.start} holds a network {card['network']!r} of width {card['width']}, "
                    f"the settings say {config.network!r} of width {config.width}"
                )
            network.load_state_dict(start.state_dict())
        return network

    def _resume(self) -> None:
        """Back to the checkpoint of the folder, if it is one of this run."""
        state: State = read_state(self.folder)
        for what, found, wanted in (
            ("board", state.board.fingerprint, self.board.fingerprint),
            ("rules", state.rules, self.rules.to_dict()),
        ):
            if found != wanted:
                raise ValueError(
                    f"{self.folder} holds a run with the {what} {found}; the settings have {wanted}"
                )
        weights = weights_of(self.config.network, self.board, self.config.width)
        restore(read_tensors(self.folder, weights), self.network, self.learner.optimizer)
        self.iteration, self.decisions = state.iteration, state.decisions
        self.imitated, self._seconds = state.imitated, state.seconds
        self._window.restore(self.iteration)

    def _taught(self, rng: np.random.Generator) -> np.ndarray:
        """Rows of the teacher's games."""
        config = self.config
        teacher = make_agent(config.teacher)
        rows = taught_rows(
            teacher, self.board, self.rules, config.players, TEACHER_GAMES, config.teacher_kept, rng
        )
        teacher.close()
        return rows

    def _learn(self, samples: float, rng: np.random.Generator, falling: bool) -> dict[str, float]:
        """Steps from the window, to learn from so many rows; means of their losses.

        falling: whether the learning rate falls on the way, or is that of the run's progress.
        """
        config = self.config
        steps = max(round(samples / config.batch_size), 1)
        losses = []
        for k in range(steps):
            left = 1 - (k / steps if falling else self.progress)
            rate = config.learning_rate * max(left, LOWEST_LEARNING_RATE)
            losses.append(self.learner.step(self._window.draw(config.batch_size, rng), rate))
        return {name: float(np.mean([loss[name] for loss in losses])) for name in losses[0]}

    def _past_numbers(self) -> list[int]:
        """After which iterations the past selves of this one were kept."""
        every = self.config.keep_every
        last = self.iteration - self.iteration % every
        return [last - k * every for k in range(KEPT) if last - k * every > 0]

    def _past_path(self, number: int) -> Path:
        return self.folder / PAST / f"past-{number:06}.safetensors"

    def _past_weights(self, rng: np.random.Generator) -> Weights | None:
        """Those of a past self, drawn; None when there is none yet."""
        numbers = self._past_numbers()
        if not numbers:
            return None
        network, _ = load_model(self._past_path(int(rng.choice(numbers))), self.board)
        assert isinstance(network, SeatsMlp)
        return read_weights(network)
