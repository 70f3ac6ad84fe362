"""Runs that learn from samples: fitting a network to stored ones, and expert iteration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from busenv.agents.policy_agent import PolicyAgent
from busenv.networks.compiled_network import read_weights
from busenv.train.expert_iteration.expert_config import ExpertConfig, FitConfig
from busenv.train.expert_iteration.expert_selfplay import (
    SelfPlayPayload,
    draw_games,
    run_games,
    statistics,
)
from busenv.train.expert_iteration.learner import Learner
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer, read_samples, take
from busenv.train.expert_iteration.samples import make_batch
from busenv.train.expert_iteration.selfplay_players import SearchPlay
from busenv.train.run import LOWEST_LEARNING_RATE, Iteration, TrainingRun

REPLAY_FOLDER = "replay"  # of an expert iteration's own samples
FIT_BATCHES = 100  # of an iteration that fits


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

    def _finish(self, scalars: dict[str, float]) -> Iteration:
        self.iteration += 1
        self._seconds = self.seconds
        return Iteration(self.iteration, self.decisions, self._seconds, scalars)


class FitRun(SampleRun):
    """Learning from the samples of the settings' folders, FIT_BATCHES minibatches an iteration.

    Each epoch has all samples in a random order that depends on the seed and the epoch. Its last
    minibatch is dropped if it is incomplete, unless it is the only one. `decisions` counts each
    sample once: it rises linearly to their number.
    """

    config: FitConfig

    def __init__(self, config: FitConfig, folder: str | Path) -> None:
        super().__init__(config, folder)
        self._parts = read_samples(config.data, self.boards)
        self._count = sum(map(len, self._parts))
        self._epoch_batches = max(self._count // config.batch_size, 1)
        make_batch(self._parts[0][:1], self.boards, 0.0, self.network.inputs)  # compiles
        self._try_agents(config.rated)
        self._start_clock()

    @property
    def progress(self) -> float:
        return self.decisions / self._count

    def step(self) -> Iteration:
        """Run one iteration."""
        first, total = FIT_BATCHES * self.iteration, self.config.epochs * self._epoch_batches
        numbers = range(first, min(first + FIT_BATCHES, total))
        scalars = self._learn(map(self._batch, numbers), [number / total for number in numbers])
        self.decisions = self._count * numbers.stop // total
        return self._finish(scalars)

    def _batch(self, number: int) -> np.ndarray:
        epoch, at = divmod(number, self._epoch_batches)
        if at == 0 or number % FIT_BATCHES == 0:
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

    def step(self) -> Iteration:
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
        iteration = self._finish(scalars)
        self.save()
        return iteration

    def save(self) -> None:
        super().save()
        self._replay.delete_dropped()
