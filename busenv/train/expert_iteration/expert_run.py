"""Runs that learn from samples: fitting a network to stored ones, and expert iteration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from busenv import Board, Rules
from busenv.agents.policy_agent import PolicyAgent
from busenv.common.runs import SETTINGS
from busenv.core.state import MAX_PLAYERS
from busenv.game.board_specs import GeneratedBoards
from busenv.io import read_json
from busenv.networks.compiled_network import read_weights
from busenv.networks.network import Network
from busenv.train.expert_iteration.expert_config import ExpertConfig, FitConfig, FitSettings
from busenv.train.expert_iteration.expert_selfplay import (
    SearchPlay,
    SelfPlayPayload,
    draw_games,
    run_games,
    statistics,
)
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer, read_samples, take
from busenv.train.expert_iteration.samples import make_batch, split_by_size
from busenv.train.policies import forward, masked_log_probs, uses_bfloat16
from busenv.train.training_run import LOWEST_LEARNING_RATE, TrainingRun

REPLAY_FOLDER = "replay"  # of an expert iteration's own samples
FIT_BATCHES = 100  # of an iteration that fits
MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 1e-4


class Learner:
    """AdamW updates of a network by the loss weights and precision of the settings.

    In bfloat16, only the layers after the first multiply in that precision.
    """

    def __init__(
        self, network: Network, boards: Board | GeneratedBoards, config: FitSettings
    ) -> None:
        self.network, self._boards, self._config = network, boards, config
        self._bfloat16 = uses_bfloat16(config.precision, torch.device("cpu"))
        self.optimizer = torch.optim.AdamW(
            network.parameters(), weight_decay=WEIGHT_DECAY, fused=True
        )

    def step(self, samples: np.ndarray, learning_rate: float) -> dict[str, float]:
        """Update the network by a batch of samples (SAMPLE, (N,)); returns statistics by name."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad()
        losses: dict[str, float] = {}
        for part in split_by_size(samples, self._boards):
            loss, scalars = self._losses(part, samples, self._config.value_target_mix)
            loss.backward()
            losses = {name: losses.get(name, 0.0) + value for name, value in scalars.items()}
        grad_norm = nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRAD_NORM)
        self.optimizer.step()
        losses |= {"grad_norm": float(grad_norm), "learning_rate": learning_rate}
        return {f"train/{name}": value for name, value in losses.items()}

    @torch.no_grad()
    def validate(self, parts: Iterable[np.ndarray]) -> dict[str, float]:
        """Return mean losses of samples by name, with the winner as the value target.

        parts: SAMPLE, (N,), each. Every sample has the same weight in a mean, and every sample with
        a policy target in the losses of the policy.
        """
        totals: dict[str, float] = {}
        weights: dict[str, float] = {}
        size = self._config.batch_size
        for batch in (part[k : k + size] for part in parts for k in range(0, len(part), size)):
            for samples in split_by_size(batch, self._boards):
                num_targets = int(samples["policy"].any(axis=1).sum())
                for name, loss in self._losses(samples, samples, 0.0)[1].items():
                    weight = num_targets if name.startswith("policy") else len(samples)
                    totals[name] = totals.get(name, 0.0) + weight * loss
                    weights[name] = weights.get(name, 0) + weight
        return {f"validation/{name}": totals[name] / max(weights[name], 1) for name in totals}

    def _losses(
        self, samples: np.ndarray, batch_samples: np.ndarray, value_target_mix: float
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return what samples contribute to the loss of a batch, and to its parts by name.

        samples: those of the batch whose boards have one size.
        """
        config, count = self._config, len(batch_samples)
        batch = make_batch(samples, self._boards, value_target_mix, self.network.inputs)
        rows, masks, policy, win_probs, points, present = map(torch.from_numpy, batch)
        logits, values = forward(self.network, rows, self._bfloat16)
        log_probs = masked_log_probs(logits, masks)
        has_target = policy.any(dim=1)
        num_targets = max(int(batch_samples["policy"].any(axis=1).sum()), 1)
        cross_entropy = -(policy * log_probs).sum(dim=1)
        policy_loss = (cross_entropy * has_target).sum() / num_targets
        win_log_probs = masked_log_probs(values[:, :MAX_PLAYERS], present)
        value_loss = -(win_probs * win_log_probs).sum() / count
        errors = (values[:, MAX_PLAYERS:] - points) * present
        score_loss = errors.square().sum(dim=1).div(present.sum(dim=1)).sum() / count
        loss = policy_loss + config.value_weight * value_loss + config.score_weight * score_loss
        with torch.no_grad():  # only logged
            entropy = -(log_probs.exp() * log_probs).sum() / count
            target_entropy = -torch.xlogy(policy, policy).sum() / num_targets
            is_correct = win_log_probs.argmax(dim=1) == win_probs.argmax(dim=1)
        return loss, {
            "policy_loss": policy_loss.item(),
            "policy_divergence": (policy_loss - target_entropy).item(),  # Kullback-Leibler
            "value_loss": value_loss.item(),
            "winner_accuracy": is_correct.sum().item() / count,
            "score_loss": score_loss.item(),
            "entropy": entropy.item(),
        }


class SampleRun(TrainingRun):
    """A run that learns from samples; resumes from the folder's checkpoint.

    agent: plays by the network without search.

    Raises OSError when the folder cannot be written, and ValueError when a file is damaged, or when
    an agent of the settings cannot play on the board. After an exception in `step`, make a new run,
    which resumes.
    """

    config: FitConfig | ExpertConfig

    def __init__(self, config: FitConfig | ExpertConfig, folder: str | Path) -> None:
        super().__init__(config, folder)
        self.network = self._initial_network()
        self.learner = Learner(self.network, self.boards, config)
        self.optimizer = self.learner.optimizer
        self.agent = PolicyAgent(
            self.network, self.boards, seed=config.seed, temperature=config.temperature
        )
        self._resume()

    def _learn(self, batches: Iterable[np.ndarray], progress: Iterable[float]) -> dict[str, float]:
        """Update the network by each batch (SAMPLE, (N,)), at its progress; return mean losses."""
        losses = [
            self.learner.step(
                samples, self.config.learning_rate * max(1 - at, LOWEST_LEARNING_RATE)
            )
            for samples, at in zip(batches, progress, strict=True)
        ]
        return {name: float(np.mean([loss[name] for loss in losses])) for name in losses[0]}


class FitRun(SampleRun):
    """Learning from the samples of the settings' folders, FIT_BATCHES minibatches an iteration.

    Each epoch has all samples in a random order that depends on the seed and the epoch. Its last
    minibatch is dropped if it is incomplete, unless it is the only one. `decisions` counts each
    sample once: it rises linearly to their number. Raises ValueError for samples of other rules or
    numbers of players, and for a folder with a fit to another number of samples.
    """

    config: FitConfig

    def __init__(self, config: FitConfig, folder: str | Path) -> None:
        super().__init__(config, folder)
        self._parts = read_samples(config.data, self.boards)
        self._validation = config.validation and read_samples(config.validation, self.boards)
        for folders in (config.data, config.validation):
            _check_games(folders, config.players, self.rules)
        self._count = sum(map(len, self._parts))
        self._epoch_batches = max(self._count // config.batch_size, 1)
        self._epoch = -1
        total = config.epochs * self._epoch_batches
        if self.decisions != self._count * min(FIT_BATCHES * self.iteration, total) // total:
            raise ValueError(f"{folder} holds a fit to other samples; choose a new folder")
        make_batch(self._parts[0][:1], self.boards, 0.0, self.network.inputs)  # compiles
        self._try_agents(config.rated)
        self._start_clock()

    @property
    def progress(self) -> float:
        done = FIT_BATCHES * self.iteration / (self.config.epochs * self._epoch_batches)
        return min(done, 1.0)

    def step(self) -> dict[str, float]:
        """Run one iteration."""
        first, total = FIT_BATCHES * self.iteration, self.config.epochs * self._epoch_batches
        numbers = range(first, min(first + FIT_BATCHES, total))
        scalars = self._learn(map(self._batch, numbers), [number / total for number in numbers])
        if self._validation and numbers.stop // self._epoch_batches > first // self._epoch_batches:
            scalars |= self.learner.validate(self._validation)
        self.decisions = self._count * numbers.stop // total
        self.iteration += 1
        self._seconds = self.seconds
        return scalars

    def _batch(self, number: int) -> np.ndarray:
        epoch, at = divmod(number, self._epoch_batches)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng((self.config.seed, epoch)).permutation(self._count)
        size = self.config.batch_size
        return take(self._parts, self._order[at * size : (at + 1) * size])


class ExpertRun(SampleRun):
    """Expert iteration: self-play by a search that the network guides, then learning from it.

    Iteration i draws all random numbers from (seed, i), games end within their iteration, and their
    samples are on disk before the update. So a killed run repeats its last iteration and ends with
    the same parameters. On a set of boards, each game's board is drawn uniformly at random.

    on_cluster: plays on the cluster that this process is connected to (`busenv.cluster`).
    """

    config: ExpertConfig

    def __init__(self, config: ExpertConfig, folder: str | Path, on_cluster: bool = False) -> None:
        super().__init__(config, folder)
        self._on_cluster = on_cluster
        self._search = SearchPlay(*(getattr(config, name) for name in SearchPlay._fields))
        self._replay = ReplayBuffer(self.folder / REPLAY_FOLDER, self.boards, config.replay_size)
        self._replay.restore(self.iteration)
        self._warm_up()
        self._start_clock()

    def _warm_up(self) -> None:
        """Play a game and call every agent once, before the clock starts (see `PPORun`)."""
        short = self._search._replace(num_simulations=1, fast_simulations=1, full_search_share=1.0)
        rng = np.random.default_rng(0)
        samples, _ = self._play(1, short, rng)
        make_batch(samples, self.boards, self.config.value_target_mix, self.network.inputs)
        self._try_agents(self.config.rated)

    def _play(
        self, count: int, search: SearchPlay, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, float]]:
        """Play games: their samples (SAMPLE, (N,)), and statistics by name."""
        games = draw_games(self.config, count, self.rules, self.boards, rng)
        payload = SelfPlayPayload(read_weights(self.network), search, self.boards)
        parts = run_games(games, payload, self.config.threads, self._on_cluster)
        return np.concatenate(parts), statistics(parts, games)

    def step(self) -> dict[str, float]:
        """Play games and learn from the replay buffer; the results are on disk on return."""
        config = self.config
        rng = np.random.default_rng((config.seed, self.iteration))
        samples, scalars = self._play(config.games, self._search, rng)
        if len(samples):  # none are possible with few games and a small full_search_share
            self._replay.add(self.iteration, samples)
            updates = max(round(config.reuse * len(samples) / config.batch_size), 1)
            batches = (self._replay.sample(config.batch_size, rng) for _ in range(updates))
            scalars |= self._learn(batches, [self.progress] * updates)
            self.decisions += len(samples)
        self.iteration += 1
        self._seconds = self.seconds
        self.save()
        return scalars

    def save(self) -> None:
        super().save()
        self._replay.delete_dropped()


def _check_games(folders: Sequence[str], players: Iterable[int], rules: Rules) -> None:
    """Compare the settings of self-play in the folders that have them with those of a fit.

    ValueError for other rules or other numbers of players.
    """
    played: set[str] = set()
    for path in (Path(folder) / SETTINGS for folder in folders):
        if not path.is_file():
            continue
        stored = read_json(path)
        if not isinstance(stored, dict) or not isinstance(stored.get("players"), list):
            raise ValueError(f"{path} is damaged: expected the settings of self-play")
        if stored.get("rules") != rules.to_dict():
            raise ValueError(
                f"{path.parent} contains games of other rules; set rules to those in {path}"
            )
        played |= {*map(str, stored["players"])}
    if played and played != {*map(str, players)}:
        numbers = ",".join(sorted(played))
        raise ValueError(f"{', '.join(folders)}: games of {numbers} players; set players={numbers}")
