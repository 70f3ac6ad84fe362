"""A run of expert iteration: play games, learn from them, save a checkpoint, repeat."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import numpy as np

from busenv import Board
from busenv.agents import Agent, make_agent
from busenv.agents.policy_agent import PolicyAgent
from busenv.game.board_specs import board_at
from busenv.interrupts import interrupts_deferred
from busenv.networks.compiled_network import Weights, read_weights
from busenv.networks.model_files import load_model
from busenv.train.checkpoint import atomic_update
from busenv.train.expert_iteration.distributed_selfplay import start_on_cluster
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_selfplay import (
    GameSpecs,
    SelfPlayPayload,
    draw_boards,
    draw_games,
    play_on_threads,
    statistics,
)
from busenv.train.expert_iteration.learner import Learner
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer, read_samples, shuffled_batches
from busenv.train.expert_iteration.samples import make_batch
from busenv.train.expert_iteration.selfplay_players import SelfPlayConfig
from busenv.train.expert_iteration.teacher_data import play_teacher_games
from busenv.train.run import (
    LOWEST_LEARNING_RATE,
    MODEL,
    PAST_FOLDER,
    Iteration,
    TrainingRun,
)

TEACHER_GAMES = 64  # of a teacher, in parallel, in an iteration
PAST_COUNT = 8  # past selves at most
# Folders of the run's own samples, and of a teacher's.
REPLAY_FOLDER, TEACHER_FOLDER = "replay", "teacher"

# Games of an iteration in flight: its random stream, and a function that waits for their samples
# and statistics.
GamesInFlight = tuple[np.random.Generator, Callable[[], tuple[np.ndarray, dict[str, float]]]]


class ExpertRun(TrainingRun):
    """Expert iteration in a folder; resumes from the folder's checkpoint.

    Iteration i draws all random numbers from (seed, i), games end within their iteration, and their
    samples are on disk before the update. So a killed run repeats its last iteration and ends with
    the same parameters.

    The first iterations play a teacher's games, if there is a teacher. The network learns from them
    in one phase, after all are on disk; learning earlier would overfit the first games. Their
    samples are then deleted. On a set of boards, each game's board is drawn uniformly at random.
    Offline data are learned from in the first iteration.

    on_cluster: plays on the cluster that this process is connected to (`busenv.cluster`).
    agent: plays by the network without search. imitated: how many of the `decisions` are teacher
    or offline data.

    Raises the errors of `busenv.train.ppo_run.PPORun`, but ignores missing files of past selves.
    """

    config: ExpertConfig

    def __init__(self, config: ExpertConfig, folder: str | Path, on_cluster: bool = False) -> None:
        super().__init__(config, folder)
        self._on_cluster = on_cluster
        self._selfplay = SelfPlayConfig(*(getattr(config, f) for f in SelfPlayConfig._fields))
        self._in_flight: deque[GamesInFlight] = deque()
        self._teacher: Agent | None = None
        (self.folder / PAST_FOLDER).mkdir(parents=True, exist_ok=True)
        checkpoint = self._checkpoint()
        self.network = self._initial_network()
        self.learner = Learner(self.network, self.boards, config)
        self._optimizer = self.learner.optimizer
        self.agent = PolicyAgent(
            self.network, self.boards, seed=config.seed, temperature=config.temperature
        )
        self._replay = ReplayBuffer(self.folder / REPLAY_FOLDER, self.boards, config.replay_size)
        self._teacher_data = ReplayBuffer(
            self.folder / TEACHER_FOLDER, self.boards, config.replay_size
        )
        if checkpoint is not None:
            self._resume(*checkpoint)
            self._replay.restore(self.iteration)
            self._teacher_data.restore(0 if self.imitated else self.iteration)
        folders = () if self.iteration else config.offline_data
        self._offline_data = read_samples(folders, self.boards)
        self._check_disk()
        self._warm_up()
        self._start_clock()

    @property
    def progress(self) -> float:
        """Progress of the run, 0 to 1, or more with offline data.

        Teacher samples count once they are on disk, offline data once they are learned from.
        """
        if self.config.decisions is None:
            return super().progress
        return (self.decisions + len(self._teacher_data)) / self.config.decisions

    @property
    def is_done(self) -> bool:
        """Whether the budget is used up and all teacher samples are learned from."""
        return super().is_done and not len(self._teacher_data)

    def step(self) -> Iteration:
        """Run one iteration; its results are on disk when this returns.

        An iteration learns from offline data, plays a teacher's games, learns from them, or plays
        games and learns from the replay buffer.
        """
        rng = np.random.default_rng((self.config.seed, self.iteration))
        if self._offline_data:
            return self._pretrain(rng)
        if self._needs_teacher_games:
            self._teacher_data.add(self.iteration, self._play_teacher_games(rng))
            return self._finish(0, {"games/teacher_samples": float(len(self._teacher_data))})
        if len(self._teacher_data):
            return self._train_on_teacher(rng)
        while len(self._in_flight) <= self.config.staleness:
            self._in_flight.append(self._start_games(self.iteration + len(self._in_flight)))
        rng, wait = self._in_flight.popleft()
        try:
            samples, scalars = wait()
            if not len(samples):  # possible with few games and a small full_search_share
                return self._finish(0, scalars)
            self._replay.add(self.iteration, samples)
            updates = self._num_updates(self.config.reuse * len(samples))
            scalars |= self._learn(self._sampled(self._replay, updates, rng))
            return self._finish(len(samples), scalars)
        except BaseException:
            self._in_flight.clear()  # the next call plays this iteration's games again
            raise

    def _warm_up(self) -> None:
        """Play a game and call every agent once, before the clock starts (see `PPORun`)."""
        config = self.config
        if not self._needs_teacher_games:  # a run with a teacher may end before it plays itself
            weights = read_weights(self.network)
            short = self._selfplay._replace(
                num_simulations=1, fast_simulations=1, full_search_share=1.0
            )
            payload = SelfPlayPayload(weights, weights, short, self.boards)
            one, rng = config.changed({"games": 1}), np.random.default_rng(0)
            parts = self._play(draw_games(one, self.rules, self.boards, 0.0, rng), payload)()
            samples = np.concatenate(parts)
            make_batch(samples, self.boards, config.value_target_mix, self.network.inputs)
        teacher = {config.teacher} if self._needs_teacher_games else set()
        self._try_agents({*config.rated} | teacher)

    def _pretrain(self, rng: np.random.Generator) -> Iteration:
        """Learn from offline data."""
        config, data = self.config, self._offline_data
        count = sum(map(len, data))
        epochs = (
            shuffled_batches(data, config.batch_size, rng) for _ in range(config.offline_epochs)
        )
        updates = self._num_updates(config.offline_epochs * count)
        scalars = self._learn(chain.from_iterable(epochs), updates)
        self._offline_data = []
        return self._finish(0, scalars, imitated=count)

    @property
    def _needs_teacher_games(self) -> bool:
        config = self.config
        iterations = -(-config.teacher_games // TEACHER_GAMES) if config.teacher else 0
        return (
            self.iteration < iterations
            and not self.decisions
            and len(self._teacher_data) < config.replay_size
            and self.progress < config.teacher_share
        )

    def _play_teacher_games(self, rng: np.random.Generator) -> np.ndarray:
        config = self.config
        if self._teacher is None:
            self._teacher = make_agent(config.teacher)
        num_parts = 1 if isinstance(self.boards, Board) else TEACHER_GAMES
        num_players = np.resize(config.players, (num_parts, TEACHER_GAMES // num_parts))
        parts = []
        for index, counts in zip(
            draw_boards(self.boards, num_parts, rng), num_players.astype(np.int64), strict=True
        ):
            samples = play_teacher_games(
                self._teacher, board_at(self.boards, index), self.rules,
                num_players=counts, sample_share=config.teacher_sample_share, rng=rng,
            )  # fmt: skip
            samples["board_index"] = index
            parts.append(samples)
        return np.concatenate(parts)

    def _train_on_teacher(self, rng: np.random.Generator) -> Iteration:
        """Learn from the teacher's games and delete them."""
        if self._teacher is not None:
            self._teacher.close()
        count = len(self._teacher_data)
        updates = self._num_updates(self.config.teacher_reuse * count)
        scalars = self._learn(self._sampled(self._teacher_data, updates, rng), updates)
        return self._finish(0, scalars, imitated=count)

    def _finish(self, learned: int, scalars: dict[str, float], imitated: int = 0) -> Iteration:
        """End an iteration: count its samples, own or imitated, and save everything."""
        with interrupts_deferred():
            self.iteration += 1
            self.decisions += learned + imitated
            if imitated:
                self.imitated = imitated
                self._teacher_data.clear()
            if self.decisions and self.iteration % self.config.snapshot_every == 0:
                self._save_model(self._past_path(self.iteration))
            self._seconds = self.seconds
            self.save()
        return Iteration(self.iteration, self.decisions, self._seconds, scalars)

    def save(self) -> None:
        """Write the checkpoint, the model and its card; delete files that are no longer needed."""
        self._save_checkpoint()
        self._save_model(self.folder / MODEL)
        self._replay.delete_dropped()
        self._teacher_data.delete_dropped()
        current = {self._past_path(number).stem for number in self._past_numbers()}
        for path in (self.folder / PAST_FOLDER).iterdir():
            if path.stem not in current:
                path.unlink()

    def _start_games(self, number: int) -> GamesInFlight:
        """Start the games of iteration `number`, played by the present network."""
        config, staleness = self.config, number - self.iteration
        rng = np.random.default_rng((config.seed, number))
        weights, past_weights = read_weights(self.network), self._past_weights(rng)
        past_share = config.past_share if past_weights else 0.0
        games = draw_games(config, self.rules, self.boards, past_share, rng)
        wait = self._play(
            games, SelfPlayPayload(weights, past_weights or weights, self._selfplay, self.boards)
        )

        def finish() -> tuple[np.ndarray, dict[str, float]]:
            parts = wait()
            return np.concatenate(parts), statistics(parts, games) | {
                "games/staleness": float(staleness)
            }

        return rng, finish

    def _play(self, games: GameSpecs, payload: SelfPlayPayload) -> Callable[[], list[np.ndarray]]:
        """Play games on threads, or start them on the cluster; the function returns the samples."""
        if self._on_cluster:
            return start_on_cluster(games, payload)
        played = play_on_threads(games, payload, self.config.threads)
        return lambda: played

    def _num_updates(self, samples: float) -> int:
        return max(round(samples / self.config.batch_size), 1)

    def _sampled(
        self, buffer: ReplayBuffer, updates: int, rng: np.random.Generator
    ) -> Iterable[np.ndarray]:
        """Batches sampled from a buffer."""
        return (buffer.sample(self.config.batch_size, rng) for _ in range(updates))

    def _learn(self, batches: Iterable[np.ndarray], updates: int = 0) -> dict[str, float]:
        """Update the network by each batch, or restore it if interrupted; returns mean losses.

        updates: over which the learning rate falls; 0 for a rate that depends on the progress.
        """
        losses = []
        with atomic_update(self.network, self._optimizer):
            for k, samples in enumerate(batches):
                left = 1 - (k / updates if updates else self.progress)
                rate = self.config.learning_rate * max(left, LOWEST_LEARNING_RATE)
                losses.append(self.learner.step(samples, rate))
        return {name: float(np.mean([loss[name] for loss in losses])) for name in losses[0]}

    def _past_numbers(self) -> list[int]:
        """Iterations after which the present past selves were saved."""
        every = self.config.snapshot_every
        last = self.iteration - self.iteration % every
        numbers = (last - k * every for k in range(PAST_COUNT))
        return [n for n in numbers if n > 0 and self._past_path(n).exists()]

    def _past_path(self, number: int) -> Path:
        return self.folder / PAST_FOLDER / f"past-{number:06}.safetensors"

    def _past_weights(self, rng: np.random.Generator) -> Weights | None:
        """Weights of a past self, drawn uniformly at random; None while there is none."""
        numbers = self._past_numbers()
        if not numbers:
            return None
        network, _ = load_model(self._past_path(int(rng.choice(numbers))), self.boards)
        return read_weights(network)
