"""A training run: rollouts and updates, a pool of opponents, checkpoints to go on from."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from busenv.agents import make_agent
from busenv.agents.neural.files import load_model, model_path
from busenv.agents.neural.networks import build_network
from busenv.agents.neural.policy import PolicyAgent
from busenv.train.checkpoint import NAME, load_checkpoint, save_checkpoint
from busenv.train.config import Config
from busenv.train.games import Table
from busenv.train.league import Member, Pool, seating, update_scores
from busenv.train.ppo import SeatPPO
from busenv.train.rollout import Rollout
from busenv.train.selfplay import play_games

from busenv import __version__
from busenv.actions import Action
from busenv.board import load_board
from busenv.core.state import MAX_PLAYERS

FREE_BYTES = 500_000_000  # that a run wants to see free on the disk before it begins
LOWEST_RATE = 0.05  # of the learning rate at the end, as a share of that at the beginning


@dataclass
class Iteration:
    """What a rollout and its update told. scalars: by name, such as "train/value_loss"."""

    number: int
    decisions: int
    seconds: float
    progress: float
    scalars: dict[str, float]


class Run:
    """Training in a folder, iteration by iteration. Goes on from the folder's checkpoint.

    All that is random in iteration i is drawn from the seed and i, and games do not outlive their
    iteration: a checkpoint needs parameters, moments, counters and the pool's scores only.

    agent: plays as the learner would, at the temperature of the settings.

    OSError when the folder cannot be written or the disk is nearly full; ValueError and
    FileNotFoundError when what the folder holds is damaged.
    """

    def __init__(self, config: Config, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.board = load_board("city")
        self.iteration, self.decisions = 0, 0
        self._seconds = 0.0
        torch.set_num_threads(config.threads)
        device = config.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        network = self._begin().to(device)
        self.ppo = SeatPPO(
            network,
            self.board,
            learning_rate=self._learning_rate,
            batch_size=config.batch_size,
            n_epochs=config.epochs,
            clip_range=config.clip_range,
            ent_coef=config.entropy,
            vf_coef=config.value,
            max_grad_norm=config.max_grad_norm,
            seed=config.seed % 2**32,
            device=device,
        )
        self.network = network
        self.agent = PolicyAgent(
            network, self.board, seed=config.seed, temperature=config.temperature
        )
        self._teacher = make_agent(config.warm_start) if config.warm_start else None
        past = folder / "pool"
        past.mkdir(parents=True, exist_ok=True)
        self._pool = Pool(config.bots, past, self.board, config.pool)
        if (folder / NAME).exists():
            self._go_on()
        free = shutil.disk_usage(folder).free
        if free < FREE_BYTES:
            raise OSError(f"{folder}: only {free / 1e6:.0f} MB are free on the disk")
        self.save()
        self._play(1, np.random.default_rng(0), min(self.progress, 1.0))  # compile before the clock
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
        """Play a rollout and learn from it."""
        rng = np.random.default_rng((self.config.seed, self.iteration))
        progress = min(self.progress, 1.0)
        table, sitting, drawn, rollout = self._play(self.config.games, rng, progress)
        update_scores(drawn, sitting, table.places(), table.players)
        scalars = _tell(table, rollout, sitting)
        scalars |= self.ppo.update(rollout, progress, self._warm(progress))
        self.iteration += 1
        self.decisions += len(rollout)
        if self.iteration % self.config.keep_every == 0 and self.config.opponent_share:
            self._pool.keep(self.network, self.card(), f"past-{self.iteration:06}")
        self._seconds = self.seconds
        return Iteration(self.iteration, self.decisions, self._seconds, self.progress, scalars)

    def save(self) -> None:
        """Write the checkpoint."""
        state = {
            "config": self.config.to_dict(),
            "iteration": self.iteration,
            "decisions": self.decisions,
            "seconds": self._seconds,
            "pool": self._pool.state(),
        }
        save_checkpoint(self.folder, self.network, self.ppo.policy.optimizer, state)
        self._pool.tidy()

    def card(self) -> dict[str, Any]:
        """What a model's card tells of network and training."""
        return {
            "network": self.config.network,
            "width": self.config.width,
            "rules": self.config.rules,
            "players": list(self.config.players),
            "temperature": self.config.temperature,
            "training": {
                "busenv": __version__,
                "config": self.config.to_dict(),
                "iterations": self.iteration,
                "decisions": self.decisions,
                "seconds": round(self._seconds, 1),
            },
        }

    def _begin(self) -> torch.nn.Module:
        """The network that the run starts with."""
        config = self.config
        network = build_network(config.network, self.board, config.width, config.seed)
        if config.start and not (self.folder / NAME).exists():  # else the checkpoint has it all
            past, card = load_model(model_path(config.start), self.board)
            if (card["network"], card["width"]) != (config.network, config.width):
                raise ValueError(
                    f"{config.start} holds a network {card['network']!r} of width {card['width']}, "
                    f"the settings say {config.network!r} of width {config.width}"
                )
            network.load_state_dict(past.state_dict())
        return network

    def _go_on(self) -> None:
        state = load_checkpoint(self.folder, self.network, self.ppo.policy.optimizer)
        self.iteration, self.decisions = state["iteration"], state["decisions"]
        self._seconds = state["seconds"]
        self._pool.restore(state["pool"])

    def _warm(self, progress: float) -> bool:
        return self._teacher is not None and progress < self.config.warm_share

    def _learning_rate(self, remaining: float) -> float:
        return self.config.learning_rate * max(remaining, LOWEST_RATE)

    def _play(
        self, games: int, rng: np.random.Generator, progress: float
    ) -> tuple[Table, np.ndarray, list[Member], Rollout]:
        """Games that are over, who sat where in them, the opponents, and the finished rollout."""
        config = self.config
        players = np.resize(config.players, games).astype(np.int64)
        table = Table(
            self.board, config.rules, config.reward, config.reward_unit,
            players, rng.integers(0, players),
        )  # fmt: skip
        warm = self._warm(progress)
        # In a warm start every seat is taught: with opponents, less was learned in the same time.
        drawn = self._pool.draw(rng) if config.opponent_share and not warm else []
        sitting = seating(players, len(drawn), config.opponent_share, rng)
        opponents = [member.agent for member in drawn]
        if warm and self._teacher is not None:
            self._teacher.reset(int(rng.integers(2**62)))
            rollout = play_games(
                self.network, table, sitting, opponents, rng, self._teacher, config.temperature
            )
            # What the teacher's games return is taken as it came; the network's values mean nothing
            gae_lambda = 1.0
        else:
            rollout = play_games(self.network, table, sitting, opponents, rng)
            gae_lambda = config.gae_lambda
        rollout.finish(table.totals, config.gamma, gae_lambda)
        return table, sitting, drawn, rollout


def _tell(table: Table, rollout: Rollout, sitting: np.ndarray) -> dict[str, float]:
    """What happened in the games of a rollout: of the learner's seats, on average."""
    games = table.games
    learner = (sitting == 0) & (np.arange(MAX_PLAYERS) < table.players[:, None])
    scalars = {
        "games/deliveries": float(games["deliveries"][learner].mean()),
        "games/time_stones": float(games["stones"][learner].mean()),
        "games/rounds": float(games["round"].mean()),
        "games/decisions_a_seat": len(rollout) / int(learner.sum()),
    }
    placed = rollout.actions[rollout.actions < len(Action)].cpu().numpy()
    for action in Action:
        share = float((placed == action).mean()) if len(placed) else 0.0
        scalars[f"actions/{action.name.lower()}"] = share
    return scalars
