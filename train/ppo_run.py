"""A training run: rollouts and updates, a pool of opponents, checkpoints to go on from."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from busenv.agents import make_agent
from busenv.agents.networks.compiled_mlp import Weights
from busenv.agents.networks.inference import make_forward
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.core.state import MAX_PLAYERS
from busenv.game.actions import BoardAction
from busenv.interrupts import interrupts_deferred
from busenv.train.checkpoint import (
    whole_or_not_at_all,
)
from busenv.train.config import PPOConfig
from busenv.train.distributed_rollout import Hands, Network, Part, pack, play_on_cluster
from busenv.train.league import Opponent, Pool, draw_seat_owners, update_scores
from busenv.train.ppo import SeatPPO, ppo_settings
from busenv.train.ppo_selfplay import Decisions, join, play_games
from busenv.train.rollout import Rollout
from busenv.train.run import MODEL, Iteration, TrainingRun
from busenv.train.selfplay_games import SelfPlayGames


class PPORun(TrainingRun):
    """Training in a folder, iteration by iteration. Goes on from the folder's checkpoint.

    All that is random in iteration i is drawn from the seed and i, and games do not outlive their
    iteration: a checkpoint needs parameters, moments, counters and the pool's scores only.

    on_cluster: games are played on the cluster that this process is connected to
    (`busenv.cluster`).
    agent: plays as the learner would, at the temperature of the settings. imitated: how many of the
    `decisions` that were learned from so far were learned by imitation, which comes first.

    OSError when the folder cannot be written or the disk is nearly full; ValueError and
    FileNotFoundError when what the folder holds is damaged, ValueError too when the board or rules
    are not those that the run began with, or an agent of the settings cannot play on the board.
    """

    config: PPOConfig

    def __init__(self, config: PPOConfig, folder: Path, on_cluster: bool = False) -> None:
        super().__init__(config, folder)
        self._on_cluster = on_cluster
        device = config.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("device is 'cuda', but torch finds no GPU here; allowed: auto, cpu")
        checkpoint = self._checkpoint()  # before a network is built: a wide one takes time, memory
        self.network = self._initial_network().to(device)
        self.ppo = SeatPPO(self.network, self.board, device=device, **ppo_settings(config))
        self._optimizer = self.ppo.policy.optimizer
        self.agent = PolicyAgent(self.network, self.board, "net", config.seed, config.temperature)
        self._teacher = make_agent(config.warm_start) if config.warm_start else None
        past = folder / "pool"
        past.mkdir(parents=True, exist_ok=True)
        self._pool = Pool(config.bots, past, self.board, config.pool_size)
        if checkpoint is not None:
            self._resume(*checkpoint)
            self._pool.restore(checkpoint[0].pool)
        self._check_disk()
        self._try_everything()
        self._start_clock()

    def step(self) -> Iteration:
        """Play a rollout and learn from it."""
        rng = np.random.default_rng((self.config.seed, self.iteration))
        progress = min(self.progress, 1.0)
        games, seat_owner, drawn, rollout = self._play(self.config.games, rng, progress)
        scalars = _game_statistics(games, rollout, seat_owner)
        imitates = self._imitates(progress)
        with whole_or_not_at_all(self.network, self._optimizer):
            if imitates:
                scalars |= self.ppo.update_by_imitation(rollout)
            else:
                scalars |= self.ppo.update(rollout, progress)
        with interrupts_deferred():
            self.imitated += len(rollout) if imitates else 0
            update_scores(drawn, seat_owner, games.places(), games.players)
            self.iteration += 1
            self.decisions += len(rollout)
            if self.iteration % self.config.snapshot_every == 0 and self.config.opponent_share:
                self._pool.keep(self.network, self.card(), f"past-{self.iteration:06}")
            self._seconds = self.seconds
        return Iteration(self.iteration, self.decisions, self._seconds, self.progress, scalars)

    def save(self) -> None:
        """Write the checkpoint, and the model with its card."""
        self._save_checkpoint(self._pool.state())
        self._save_model(self.folder / MODEL)
        self._pool.tidy()

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
        return self._teacher is not None and not begun and progress < self.config.imitation_share

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
        """Games that are over, whose each seat was, the opponents, and the rollout."""
        config = self.config
        games = self._new_games(count, rng)
        warm = self._imitates(progress)
        # By imitation every seat is learned from: with opponents, less was learned in that time.
        drawn = self._pool.draw(rng) if config.opponent_share and not warm else []
        seat_owner = draw_seat_owners(games.players, len(drawn), config.opponent_share, rng)
        bounds = np.linspace(0, count, min(config.num_workers, count) + 1).astype(int).tolist()
        places = [slice(*pair) for pair in pairwise(bounds)]
        seeds = rng.integers(2**62, size=len(places)).tolist()
        parts = [
            (games.part(place), seat_owner[place], seed)
            for place, seed in zip(places, seeds, strict=True)
        ]
        decisions = join(self._play_parts(parts, drawn, warm), games)
        # A teacher's returns are taken as they came: the network's values mean nothing yet.
        gae_lambda = 1.0 if warm else config.gae_lambda
        rollout = Rollout(
            decisions, games.cumulative_rewards, config.gamma, gae_lambda, rng, self.ppo.device
        )
        return games, seat_owner, drawn, rollout

    def _play_parts(
        self, parts: list[Part], drawn: list[Opponent], warm: bool
    ) -> list[tuple[SelfPlayGames, Decisions]]:
        """Play games in parts, here or on the cluster."""
        config = self.config
        teacher, temperature = (self._teacher, config.temperature) if warm else (None, 1.0)
        if not self._on_cluster:
            forward, opponents = make_forward(self.network), [member.agent for member in drawn]
            return [
                (games, play_games(forward, games, owner, opponents, seed, teacher, temperature))
                for games, owner, seed in parts
            ]
        packed = [self._packed(member) for member in drawn]
        learner = pack(self.network, config.network, config.width)
        spec = config.warm_start if teacher else ""
        return play_on_cluster(Hands(learner, tuple(packed), spec, temperature), parts)

    def _packed(self, member: Opponent) -> str | Weights | Network:
        """An opponent as the cluster is told of it."""
        if member.name in self.config.bots:
            return member.name
        assert isinstance(member.agent, PolicyAgent)
        return pack(member.agent.network, self.config.network, self.config.width)


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
    placed = rollout.actions[rollout.actions < len(BoardAction)].cpu().numpy()
    for action in BoardAction:
        share = float((placed == action).mean()) if len(placed) else 0.0
        scalars[f"actions/{action.name.lower()}"] = share
    return scalars
