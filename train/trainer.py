"""A training run: rollouts and updates, a pool of opponents, checkpoints to go on from."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from busenv import __version__
from busenv.actions import Action
from busenv.agents import make_agent
from busenv.agents.neural.files import load_model, model_path, save_model
from busenv.agents.neural.networks import build_network, weights_of
from busenv.agents.neural.policy import PolicyAgent
from busenv.board import load_board
from busenv.core.state import MAX_PLAYERS
from busenv.interrupts import interrupts_deferred
from busenv.quoting import quote
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
from busenv.train.config import Config
from busenv.train.games import SelfPlayGames
from busenv.train.league import Opponent, Pool, draw_seat_owners, update_scores
from busenv.train.ppo import SeatPPO, ppo_settings
from busenv.train.rollout import Rollout
from busenv.train.selfplay import collect_rollout

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


class Run:
    """Training in a folder, iteration by iteration. Goes on from the folder's checkpoint.

    All that is random in iteration i is drawn from the seed and i, and games do not outlive their
    iteration: a checkpoint needs parameters, moments, counters and the pool's scores only.

    agent: plays as the learner would, at the temperature of the settings. imitated: how many of the
    `decisions` that were learned from so far were learned by imitation, which comes first.

    OSError when the folder cannot be written or the disk is nearly full; ValueError and
    FileNotFoundError when what the folder holds is damaged, ValueError too when the board or rules
    are not those that the run began with, or an agent of the settings cannot play on the board.
    """

    def __init__(self, config: Config, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.board, self.rules = load_board(config.board), as_rules(config.rules)
        self.iteration, self.decisions, self.imitated = 0, 0, 0
        self._seconds = 0.0
        torch.set_num_threads(config.threads)
        device = config.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("device is 'cuda', but torch finds no GPU here; allowed: auto, cpu")
        checkpoint = self._checkpoint() if (folder / NAME).exists() else None
        network = self._initial_network().to(device)
        self.ppo = SeatPPO(network, self.board, device=device, **ppo_settings(config))
        self.network = network
        self.agent = PolicyAgent(network, self.board, "net", config.seed, config.temperature)
        self._teacher = make_agent(config.warm_start) if config.warm_start else None
        past = folder / "pool"
        past.mkdir(parents=True, exist_ok=True)
        self._pool = Pool(config.bots, past, self.board, config.pool)
        if checkpoint is not None:
            self._resume(*checkpoint)
        free = shutil.disk_usage(folder).free
        if free < FREE_BYTES:
            raise OSError(f"{folder}: only {free / 1e6:.0f} MB are free on the disk")
        self._try_everything()
        self.save()
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
        games, seat_owner, drawn, rollout = self._play(self.config.games, rng, progress)
        scalars = _game_statistics(games, rollout, seat_owner)
        imitates = self._imitates(progress)
        with whole_or_not_at_all(self.network, self.ppo.policy.optimizer):
            if imitates:
                scalars |= self.ppo.update_by_imitation(rollout)
            else:
                scalars |= self.ppo.update(rollout, progress)
        with interrupts_deferred():
            self.imitated += len(rollout) if imitates else 0
            update_scores(drawn, seat_owner, games.places(), games.players)
            self.iteration += 1
            self.decisions += len(rollout)
            if self.iteration % self.config.keep_every == 0 and self.config.opponent_share:
                self._pool.keep(self.network, self.card(), f"past-{self.iteration:06}")
            self._seconds = self.seconds
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
            "pool": self._pool.state(),
        }
        save_checkpoint(self.folder, self.network, self.ppo.policy.optimizer, state)
        save_model(self.network, self.board, self.folder / MODEL, self.card())
        self._pool.tidy()

    def card(self) -> dict[str, Any]:
        """What a model's card says of network and training."""
        edition = self.config.rules in EDITIONS
        return {
            "network": self.config.network,
            "width": self.config.width,
            "rules": self.config.rules if edition else self.rules.to_dict(),
            "players": list(self.config.players),
            "temperature": self.config.temperature,
            "training": {
                "busenv": __version__,
                "config": self.config.to_dict(),
                "iterations": self.iteration,
                "decisions": self.decisions,
                "imitated": self.imitated,
                "seconds": round(self._seconds, 1),
            },
        }

    def _initial_network(self) -> torch.nn.Module:
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

    def _checkpoint(self) -> tuple[State, dict[str, torch.Tensor]]:
        """What the checkpoint of the folder holds, if it is one of this run."""
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
        # Before the network is built: a wide one takes its time, and memory.
        weights = weights_of(self.config.network, self.board, self.config.width)
        return state, read_tensors(self.folder, weights)

    def _resume(self, state: State, tensors: dict[str, torch.Tensor]) -> None:
        """Back to a checkpoint."""
        restore(tensors, self.network, self.ppo.policy.optimizer)
        self.iteration, self.decisions = state.iteration, state.decisions
        self.imitated, self._seconds = state.imitated, state.seconds
        self._pool.restore(state.pool)

    def _try_everything(self) -> None:
        """Play once, and let every agent choose once: all that is compiled is, before the clock
        starts, and an agent that cannot play on this board is found now."""
        config, rng = self.config, np.random.default_rng(0)
        self._play(1, rng, min(self.progress, 1.0))
        games = self._new_games(1, rng)
        for spec in {*config.bots, *config.rated}:
            agent = make_agent(spec)
            agent.choose(games.states, self.board)
            agent.close()

    def _imitates(self, progress: float) -> bool:
        """Whether the next rollout is learned from by imitation: not after PPO has begun."""
        begun = self.decisions > self.imitated
        return self._teacher is not None and not begun and progress < self.config.warm_share

    def _new_games(self, count: int, rng: np.random.Generator) -> SelfPlayGames:
        """Games to be played, the numbers of players in turns."""
        config = self.config
        players = np.resize(config.players, count).astype(np.int64)
        return SelfPlayGames(
            self.board, self.rules, config.reward, config.reward_unit,
            players, rng.integers(0, players),
        )  # fmt: skip

    def _play(
        self, count: int, rng: np.random.Generator, progress: float
    ) -> tuple[SelfPlayGames, np.ndarray, list[Opponent], Rollout]:
        """Games that are over, whose each seat was, the opponents, and the finished rollout."""
        config = self.config
        games = self._new_games(count, rng)
        warm = self._imitates(progress)
        # By imitation every seat is learned from: with opponents, less was learned in that time.
        drawn = self._pool.draw(rng) if config.opponent_share and not warm else []
        seat_owner = draw_seat_owners(games.players, len(drawn), config.opponent_share, rng)
        opponents = [member.agent for member in drawn]
        if warm and self._teacher is not None:
            self._teacher.reset(int(rng.integers(2**62)))
            rollout = collect_rollout(
                self.network, games, seat_owner, opponents, rng, self._teacher, config.temperature
            )
            # Returns are taken as they came: the network's values mean nothing yet.
            gae_lambda = 1.0
        else:
            rollout = collect_rollout(self.network, games, seat_owner, opponents, rng)
            gae_lambda = config.gae_lambda
        rollout.finish(games.cumulative_rewards, config.gamma, gae_lambda)
        return games, seat_owner, drawn, rollout


def _game_statistics(
    games: SelfPlayGames, rollout: Rollout, seat_owner: np.ndarray
) -> dict[str, float]:
    """What happened in the games of a rollout: means over the learner's seats."""
    states = games.states
    learner = (seat_owner == 0) & (np.arange(MAX_PLAYERS) < games.players[:, None])
    scalars = {
        "games/deliveries": float(states["deliveries"][learner].mean()),
        "games/time_stones": float(states["stones"][learner].mean()),
        "games/rounds": float(states["round"].mean()),
        "games/decisions_a_seat": len(rollout) / int(learner.sum()),
    }
    placed = rollout.actions[rollout.actions < len(Action)].cpu().numpy()
    for action in Action:
        share = float((placed == action).mean()) if len(placed) else 0.0
        scalars[f"actions/{action.name.lower()}"] = share
    return scalars
