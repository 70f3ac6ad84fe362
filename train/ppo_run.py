"""A PPO run: rollouts and updates, a league of opponents, checkpoints to resume from."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from busenv import Board
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.core import kernels
from busenv.core.state import MAX_PLAYERS
from busenv.game.actions import BoardAction
from busenv.game.board_specs import board_at
from busenv.interrupts import interrupts_deferred
from busenv.train.checkpoint import atomic_update
from busenv.train.config import PPOConfig
from busenv.train.distributed_rollout import RayWorkers, RolloutPayload, ThreadWorkers
from busenv.train.league import League, LeagueMember, draw_seat_owners, update_scores
from busenv.train.ppo import PPO, trajectory_advantages
from busenv.train.run import MODEL, PAST_FOLDER, Iteration, TrainingRun
from busenv.train.selfplay import GAMES_PER_BOARD, Decisions, SelfPlayGames, draw_boards, join


class PPORun(TrainingRun):
    """Training in a folder, iteration by iteration; resumes from the folder's checkpoint.

    All randomness of iteration i is drawn from the seed and i, and games do not outlive their
    iteration: a checkpoint needs weights, moments, counters and the league's scores only.

    on_cluster: games are played on the cluster that this process is connected to
    (`busenv.cluster`). A rollout on a set of boards is played in parts of GAMES_PER_BOARD games,
    each on one board.

    agent: the learner at the temperature of the settings. imitated: how many of the `decisions`
    learned from so far were learned by imitation, which comes first.

    Raises OSError when the folder cannot be written or the disk is nearly full, FileNotFoundError
    when a file of a past self is missing, and ValueError when a file is damaged, when board or
    rules differ from those of the checkpoint, or when an agent of the settings cannot play on the
    board.
    """

    config: PPOConfig

    def __init__(self, config: PPOConfig, folder: str | Path, on_cluster: bool = False) -> None:
        super().__init__(config, folder)
        checkpoint = self._checkpoint()  # before a network is built: a wide one takes time, memory
        self.network = self._initial_network()
        self.ppo = PPO(self.network, config)
        self._optimizer = self.ppo.optimizer
        self.agent = PolicyAgent(
            self.network, self.boards, seed=config.seed, temperature=config.temperature
        )
        self._workers = RayWorkers() if on_cluster else ThreadWorkers(config.threads)
        past_selves = self.folder / PAST_FOLDER
        past_selves.mkdir(parents=True, exist_ok=True)
        self._league = League(config.bots, past_selves, self.boards, config.pool_size)
        if checkpoint is not None:
            self._resume(*checkpoint)
            self._league.restore(checkpoint[0].league)
        self._check_disk()
        self._warm_up()
        self._start_clock()

    def step(self) -> Iteration:
        """Play a rollout and learn from it."""
        rng = np.random.default_rng((self.config.seed, self.iteration))
        progress = min(self.progress, 1.0)
        states, seat_owner, opponents, decisions = self._play(self.config.games, rng)
        scalars = _game_statistics(states, decisions, seat_owner)
        count = len(decisions.actions)
        imitates = self._imitates
        with atomic_update(self.network, self._optimizer):
            if imitates:
                scalars |= self.ppo.imitate(decisions, rng)
            else:
                scalars |= self.ppo.update(decisions, progress, rng)
        with interrupts_deferred():
            self.imitated += count if imitates else 0
            ranks = kernels.rankings(states, MAX_PLAYERS)
            update_scores(opponents, seat_owner, ranks, states["players"])
            self.iteration += 1
            self.decisions += count
            if self.iteration % self.config.snapshot_every == 0 and self.config.opponent_share:
                self._league.add(self.network, self.card(), f"past-{self.iteration:06}")
            self._seconds = self.seconds
        return Iteration(self.iteration, self.decisions, self._seconds, scalars)

    def save(self) -> None:
        """Write the checkpoint, and the model with its card."""
        self._save_checkpoint(self._league.state())
        self._save_model(self.folder / MODEL)
        self._league.delete_unused_files()

    def _warm_up(self) -> None:
        """Play a game and call every agent once, before the clock starts.

        This compiles all kernels, and raises the error of an agent that cannot play on the board.
        """
        *_, decisions = self._play(1, np.random.default_rng(0))
        trajectory_advantages(decisions.trajectories, decisions.rewards, decisions.values, 1.0, 1.0)
        self._try_agents({*self.config.bots, *self.config.rated})

    @property
    def _imitates(self) -> bool:
        """Whether the next rollout is learned by imitation, which never follows PPO."""
        config = self.config
        only_imitated = self.decisions == self.imitated
        return bool(config.warm_start) and only_imitated and self.progress < config.imitation_share

    def _play(
        self, count: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, list[LeagueMember], Decisions]:
        """Return games' final states, the owner of each seat, the opponents, and the decisions.

        The games take the numbers of players in turns.
        """
        config, imitates = self.config, self._imitates
        num_players = np.resize(config.players, count).astype(np.int64)
        first_players = rng.integers(0, num_players)
        # Imitation learns from every seat: with opponents, less is learned in the same time.
        opponents = self._league.draw(rng) if config.opponent_share and not imitates else []
        seat_owner = draw_seat_owners(num_players, len(opponents), config.opponent_share, rng)
        num_parts = config.num_workers
        if not isinstance(self.boards, Board):
            num_parts = -(-count // GAMES_PER_BOARD)
        bounds = np.linspace(0, count, min(num_parts, count) + 1).astype(int).tolist()
        slices = [slice(*pair) for pair in pairwise(bounds)]
        seeds = rng.integers(2**62, size=len(slices)).tolist()
        boards = [board_at(self.boards, k) for k in draw_boards(self.boards, len(slices), rng)]
        games = [
            SelfPlayGames(
                board, self.rules, reward=config.reward, unit=config.reward_unit,
                num_players=num_players[rows], first_players=first_players[rows],
            )
            for board, rows in zip(boards, slices, strict=True)
        ]  # fmt: skip
        owners = [seat_owner[rows] for rows in slices]
        parts = [*zip(games, owners, seeds, strict=True)]
        payload = RolloutPayload(
            self.network,
            tuple(m.name if m.network is None else m.network for m in opponents),
            config.warm_start if imitates else "",
            config.temperature if imitates else 1.0,
        )
        states, decisions = join(self._workers.play(payload, parts))
        return states, seat_owner, opponents, decisions


def _game_statistics(
    states: np.ndarray, decisions: Decisions, seat_owner: np.ndarray
) -> dict[str, float]:
    """Means over the learner's seats in the games of a rollout."""
    learner = (seat_owner == 0) & (np.arange(MAX_PLAYERS) < states["players"][:, None])
    scalars = {
        "games/deliveries": float(states["deliveries"][learner].mean()),
        "games/time_stones": float(states["stones"][learner].mean()),
        "games/rounds": float(states["round"].mean()),
        "games/decisions_per_seat": len(decisions.actions) / int(learner.sum()),
    }
    placed = decisions.actions[decisions.actions < len(BoardAction)]
    for action in BoardAction:
        share = float((placed == action).mean()) if len(placed) else 0.0
        scalars[f"actions/{action.name.lower()}"] = share
    return scalars
