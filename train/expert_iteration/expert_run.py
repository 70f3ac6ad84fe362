"""A run of expert iteration: play by the search, learn, and again; checkpoints to go on from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import numpy as np

from busenv.agents import make_agent
from busenv.agents.networks.compiled_mlp import Weights, read_weights
from busenv.agents.networks.mlp import SeatsMlp
from busenv.agents.networks.model_files import load_model
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.agents.search.az_search import AzSettings
from busenv.interrupts import interrupts_deferred
from busenv.train.checkpoint import whole_or_not_at_all
from busenv.train.expert_iteration.distributed_selfplay import Hands, begin_on_cluster
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.learner import Learner
from busenv.train.expert_iteration.replay_window import ReplayWindow, read_rows, shuffled
from busenv.train.expert_iteration.search_selfplay import SelfPlay, statistics
from busenv.train.expert_iteration.selfplay_players import SelfPlayConfig
from busenv.train.expert_iteration.teacher_data import taught_rows
from busenv.train.run import MODEL, Iteration, TrainingRun

TEACHER_GAMES = 64  # of a teacher, side by side, in an iteration
LOWEST_LEARNING_RATE = 0.05  # at the end of a run, as a share of that at the beginning
PAST, KEPT = "past", 8  # folder of past selves, and how many there are
WINDOW, LESSONS = "replay", "teacher"  # folders of own rows and of a teacher's

# The games of an iteration that are being played: its random stream, and what waits for their rows
# and statistics.
Coming = tuple[np.random.Generator, Callable[[], tuple[np.ndarray, dict[str, float]]]]


class ExpertRun(TrainingRun):
    """Expert iteration in a folder. Goes on from the folder's checkpoint.

    All that is random in iteration i is drawn from the seed and i, and games do not outlive their
    iteration; the rows of each are on disk before they are learned from. So a run that is killed
    does its last iteration again, and ends as it would have.

    A teacher's games come first. They are learned from in an iteration of its own when all of them
    are there, since who begins with the first hundred knows these by heart before the others come;
    then they are dropped. The rows of earlier runs are learned from in the first iteration.

    on_cluster: self-play is on the cluster that this process is connected to (`busenv.cluster`).
    agent: plays by the network alone. imitated: how many of the `decisions` were a teacher's or
    earlier runs'.

    Errors are those of `busenv.train.ppo_run.PPORun`.
    """

    config: ExpertConfig
    network: SeatsMlp

    def __init__(self, config: ExpertConfig, folder: Path, on_cluster: bool = False) -> None:
        super().__init__(config, folder)
        self._on_cluster = on_cluster
        self._coming: deque[Coming] = deque()
        (folder / PAST).mkdir(parents=True, exist_ok=True)
        checkpoint = self._checkpoint()
        network = self._initial_network()
        assert isinstance(network, SeatsMlp)
        self.network = network
        self.learner = Learner(
            network, self.board, config.value_target_mix, config.value_weight, config.score_weight,
            config.precision, config.policy_only,
        )  # fmt: skip
        self._optimizer = self.learner.optimizer
        self.agent = PolicyAgent(network, self.board, "net", config.seed, config.temperature)
        kept = 1 if config.policy_only else config.replay_size
        self._window = ReplayWindow(folder / WINDOW, self.board, kept)
        self._lessons = ReplayWindow(folder / LESSONS, self.board, config.replay_size)
        plan = SelfPlayConfig(config.num_simulations, config.fast_simulations, config.full_search_share, config.temperature_moves,
                    config.bot_simulations, config.policy_only)  # fmt: skip
        self._selfplay = SelfPlay(
            self.board, self.rules, config.players, plan, AzSettings(), config.threads
        )
        if checkpoint is not None:
            self._resume(*checkpoint)
            self._window.restore(self.iteration)
            self._lessons.restore(0 if self.imitated else self.iteration)
        self._earlier = [] if self.iteration else read_rows(config.offline_data, self.board)
        self._check_disk()
        self._start_clock()

    @property
    def progress(self) -> float:
        """How much of the run is done; games of a teacher count before they are learned from."""
        if self.config.decisions is None:
            return super().progress
        return (self.decisions + len(self._lessons)) / self.config.decisions

    @property
    def is_done(self) -> bool:
        """Whether the seconds or decisions are used up, and no game waits to be learned from."""
        return super().is_done and not len(self._lessons)

    def step(self) -> Iteration:
        """Learn from earlier runs, or watch a teacher play, or learn from its games, or play games
        and learn from the window; on disk when this returns."""
        rng = np.random.default_rng((self.config.seed, self.iteration))
        if self._earlier:
            return self._study(rng)
        if self._is_taught:
            self._lessons.add(self.iteration, self._taught(rng))
            return self._finish(0, {"games/teacher_samples": float(len(self._lessons))})
        if len(self._lessons):
            return self._graduate(rng)
        config = self.config
        while len(self._coming) <= config.staleness:
            self._coming.append(self._begin(self.iteration + len(self._coming)))
        rng, end = self._coming.popleft()
        rows, scalars = end()
        self._window.add(self.iteration, rows)
        with whole_or_not_at_all(self.network, self._optimizer):
            steps = self._steps(config.reuse * len(rows))
            scalars |= self._learn(self._drawn(self._window, steps, rng))
        return self._finish(len(rows), scalars)

    def _study(self, rng: np.random.Generator) -> Iteration:
        """Learn from the rows of earlier runs."""
        parts, passes = self._earlier, self.config.offline_epochs
        count = sum(map(len, parts))
        with whole_or_not_at_all(self.network, self._optimizer):
            batches = (shuffled(parts, self.config.batch_size, rng) for _ in range(passes))
            scalars = self._learn(chain.from_iterable(batches), self._steps(passes * count))
        self._earlier = []
        return self._finish(0, scalars, imitated=count)

    @property
    def _is_taught(self) -> bool:
        """Whether more games of a teacher are to come."""
        config = self.config
        planned = -(-config.teacher_games // TEACHER_GAMES) if config.teacher else 0
        begun = self.iteration < planned and not self.decisions
        room = len(self._lessons) < config.replay_size
        return begun and room and self.progress < config.teacher_share

    def _graduate(self, rng: np.random.Generator) -> Iteration:
        """Learn from the teacher's games, and drop them."""
        learned = len(self._lessons)
        samples = self.config.teacher_reuse * learned
        with whole_or_not_at_all(self.network, self._optimizer):
            steps = self._steps(samples)
            scalars = self._learn(self._drawn(self._lessons, steps, rng), steps)
        return self._finish(0, scalars, imitated=learned)

    def _finish(self, learned: int, scalars: dict[str, float], imitated: int = 0) -> Iteration:
        """End an iteration that has learned from so many own decisions, or a teacher's, on disk."""
        with interrupts_deferred():
            self.iteration += 1
            self.decisions += learned + imitated
            if imitated:
                self.imitated = imitated
                self._lessons.clear()
            if self.iteration % self.config.snapshot_every == 0:
                self._save_model(self._past_path(self.iteration))
            self._seconds = self.seconds
            self.save()
        return Iteration(self.iteration, self.decisions, self._seconds, self.progress, scalars)

    def save(self) -> None:
        """Write the checkpoint, and the model with its card."""
        self._save_checkpoint()
        self._save_model(self.folder / MODEL)
        self._window.tidy()
        self._lessons.tidy()
        kept = {self._past_path(number).stem for number in self._past_numbers()}
        for path in (self.folder / PAST).iterdir():
            if path.stem not in kept:
                path.unlink()

    def _begin(self, number: int) -> Coming:
        """Begin the games of an iteration, by the network as it is now."""
        config, begun = self.config, self.iteration
        rng = np.random.default_rng((config.seed, number))
        weights = read_weights(self.network)
        past = self._past_weights(rng)
        drawn = self._selfplay.draw(
            config.games, config.past_share if past else 0.0, config.bot_share,
            config.all_opponents_share, config.bots, rng,
        )  # fmt: skip
        if self._on_cluster:
            play = self._selfplay
            hands = Hands(weights, past or weights, play.plan, play.settings, self.board)
            wait = begin_on_cluster(hands, drawn)
        else:
            found = self._selfplay.play(drawn, weights, past or weights)

            def wait() -> list[np.ndarray]:
                return found

        def end() -> tuple[np.ndarray, dict[str, float]]:
            games = wait()
            stale = {"games/staleness": float(number - begun)}
            return np.concatenate(games), statistics(games, drawn) | stale

        return rng, end

    def _taught(self, rng: np.random.Generator) -> np.ndarray:
        """Rows of the teacher's games."""
        config = self.config
        teacher = make_agent(config.teacher)
        rows = taught_rows(
            teacher,
            self.board,
            self.rules,
            config.players,
            TEACHER_GAMES,
            config.teacher_sample_share,
            rng,
        )
        teacher.close()
        return rows

    def _steps(self, samples: float) -> int:
        """How many steps learn from so many rows."""
        return max(round(samples / self.config.batch_size), 1)

    def _drawn(
        self, window: ReplayWindow, steps: int, rng: np.random.Generator
    ) -> Iterable[np.ndarray]:
        """Rows of a window, drawn for each of some steps."""
        return (window.draw(self.config.batch_size, rng) for _ in range(steps))

    def _learn(self, batches: Iterable[np.ndarray], steps: int = 0) -> dict[str, float]:
        """A step for each batch of rows; means of their losses.

        steps: for the learning rate to fall in; 0 where it is that of the run's progress.
        """
        losses = []
        for k, rows in enumerate(batches):
            left = 1 - (k / steps if steps else self.progress)
            rate = self.config.learning_rate * max(left, LOWEST_LEARNING_RATE)
            losses.append(self.learner.step(rows, rate))
        return {name: float(np.mean([loss[name] for loss in losses])) for name in losses[0]}

    def _past_numbers(self) -> list[int]:
        """After which iterations the past selves of this one were kept."""
        every = self.config.snapshot_every
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
