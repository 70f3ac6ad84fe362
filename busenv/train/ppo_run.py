"""A PPO run: rollouts and updates, a league of opponents, checkpoints to resume from."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch

from busenv import Board
from busenv.agents import Agent, make_agent
from busenv.agents.policy_agent import PolicyAgent
from busenv.batch import cuda_batch
from busenv.batch.opponents import COMPILED
from busenv.core import kernels
from busenv.core.state import GAME, MAX_PLAYERS, BoardAction
from busenv.networks.network import Network
from busenv.train.config import PPOConfig
from busenv.train.league import League, LeagueMember, update_scores
from busenv.train.policies import (
    Opponent,
    Policy,
    agent_opponent,
    compiled_policy,
    torch_policy,
    uses_bfloat16,
)
from busenv.train.ppo import (
    LEARNER,
    Games,
    LineUps,
    Rollout,
    columns,
    in_threads,
    make_rollout,
    play_rollout,
    update,
)
from busenv.train.training_run import LOWEST_LEARNING_RATE, TrainingRun

PAST_FOLDER = "past"  # of past selves


class Part(NamedTuple):
    """The games that one thread plays.

    games: of this part. rollout: their columns of the run's buffers. agents: bots that the
    environment does not play, by spec. generator: of all draws in these games.
    """

    games: Games
    rollout: Rollout
    agents: dict[str, Agent]
    generator: torch.Generator


class PPORun(TrainingRun):
    """Training in a folder, iteration by iteration; resumes from the folder's checkpoint.

    An iteration is a rollout of `steps` steps in each of `games` games, and an update. Games
    continue in the next iteration; checkpoints hold them. All other randomness of iteration i is
    drawn from the seed and i, so a run that is killed and resumed ends with the same parameters.

    agent: the learner at the temperature of the settings.

    Raises OSError when the folder cannot be written, FileNotFoundError when a file of a past self
    is missing, and ValueError when a file is damaged or when an agent of the settings cannot play
    on the board. After an exception in `step`, make a new run, which resumes.
    """

    config: PPOConfig

    def __init__(self, config: PPOConfig, folder: str | Path) -> None:
        super().__init__(config, folder)
        self.device = find_device(config)
        past_selves = self.folder / PAST_FOLDER
        past_selves.mkdir(parents=True, exist_ok=True)
        self._league = League(config.bots, past_selves, self.boards, config.pool_size)
        self.network = self._initial_network()
        on_cpu = self.device.type == "cpu"
        self._learner = self.network if on_cpu else copy.deepcopy(self.network).to(self.device)
        self.optimizer = torch.optim.Adam(self._learner.parameters(), eps=1e-5, fused=True)
        self._bfloat16 = uses_bfloat16(config.precision, self.device)
        self.agent = PolicyAgent(
            self.network, self.boards, seed=config.seed, temperature=config.temperature
        )
        self._generator = torch.Generator(self.device)
        torch.set_num_threads(1)  # parts of the games and of minibatches have a thread each
        self._rollout, self._parts = self._make_parts(
            min(config.threads, config.games) if on_cpu else 1
        )
        self._warm_up()
        games = self._state_of_games()
        checkpoint = self._resume(self._learner, games)
        if checkpoint is None:
            seeds = self._seed_parts(np.random.default_rng(config.seed))
            for part, seed in zip(self._parts, seeds, strict=True):
                part.games.reset(seed, part.generator)
        else:
            self.network.load_state_dict(self._learner.state_dict())
            self._league.restore(checkpoint.league)
            for index, part in enumerate(self._parts):
                prefix = f"{index}."
                part.games.batch.restore(
                    {k[len(prefix) :]: v for k, v in games.items() if k.startswith(prefix)}
                )
        self._start_clock()

    def _make_parts(self, threads: int) -> tuple[Rollout, list[Part]]:
        """Return the buffers of a rollout, and the games in one part for each thread."""
        counts = [len(part) for part in np.array_split(np.arange(self.config.games), threads)]
        games = [self._make_games(count) for count in counts]
        rollout = make_rollout(self.config.steps, self.config.games, *games[0].sizes, self.device)
        ends = np.cumsum(counts)
        parts = [
            Part(
                games=part,
                rollout=columns(rollout, slice(end - count, end)),
                agents={
                    bot.name: make_agent(bot.name)
                    for bot in self._league.bots
                    if bot.name not in COMPILED
                },
                generator=torch.Generator(self.device),
            )
            for part, count, end in zip(games, counts, ends, strict=True)
        ]
        return rollout, parts

    def _make_games(self, count: int) -> Games:
        config = self.config
        settings: dict[str, Any] = {
            "num_players": config.players, "rules": self.rules,
            "board": self.boards if isinstance(self.boards, Board) else config.board,
            "reward": config.reward, "relative_types": config.relative_types,
            "skip_forced": True, "copy": False, "device": self.device.type,
        }  # fmt: skip
        env = gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=count, **settings)
        _, weights = self._league.draw(np.random.default_rng(config.seed))
        shares = torch.from_numpy(weights).to(self.device)
        return Games(env, LineUps(shares, opponent_share=config.opponent_share))

    def _seed_parts(self, rng: np.random.Generator) -> list[int]:
        """Seed the generator of each part; return the seeds."""
        seeds: list[int] = rng.integers(2**62, size=len(self._parts)).tolist()
        for part, seed in zip(self._parts, seeds, strict=True):
            part.generator.manual_seed(seed)
        return seeds

    def _state_of_games(self) -> dict[str, np.ndarray]:
        return {
            f"{index}.{name}": array
            for index, part in enumerate(self._parts)
            for name, array in part.games.batch.state().items()
        }

    def _warm_up(self) -> None:
        """Play a step and call every agent once, before the clock starts.

        This compiles the kernels of play, and raises the error of an agent that cannot play on the
        board.
        """
        for part in self._parts:
            part.games.env.reset(seed=0)
            rollout = make_rollout(1, len(part.games.seats), *part.games.sizes, self.device)
            self._play(part._replace(rollout=rollout), {})
        self._try_agents({*self.config.bots, *self.config.rated})

    def _play(self, part: Part, members: dict[int, LeagueMember]) -> None:
        """Play a rollout of a part; `members` are the opponents by number of owner."""
        opponents = {
            owner: self._opponent(member, part)
            for owner, member in members.items()
            if member.name not in COMPILED
        }
        play_rollout(
            part.games, self._policy(self._learner, part), opponents, part.rollout,
            settings=self.config, generator=part.generator,
        )  # fmt: skip

    def _policy(self, network: Network, part: Part) -> Policy:
        if self.device.type == "cpu":
            return compiled_policy(network, part.generator)
        return torch_policy(network, part.generator, self._bfloat16)

    def _opponent(self, member: LeagueMember, part: Part) -> Opponent:
        """Return the policy of a bot that the environment does not play, or of a past self."""
        if member.network is not None:
            policy = self._policy(member.network.to(self.device), part)
            return lambda *decisions: policy(*decisions)[0]
        agent = part.agents[member.name]
        agent.reset(int(torch.randint(2**62, (), generator=part.generator)))
        return agent_opponent(agent, part.games.batch, self.config.relative_types)

    def step(self) -> dict[str, float]:
        """Play a rollout and learn from it."""
        config = self.config
        rng = np.random.default_rng((config.seed, self.iteration))
        self._generator.manual_seed(int(rng.integers(2**62)))
        self._seed_parts(rng)
        members, weights = self._league.draw(rng)
        for part in self._parts:
            part.games.line_ups.weights.copy_(torch.from_numpy(weights))
        learning_rate = config.learning_rate * max(1 - self.progress, LOWEST_LEARNING_RATE)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        in_threads(lambda part: self._play(part, members), self._parts)
        statistics = update(
            self._learner, self.optimizer, self._rollout,
            settings=config, generator=self._generator,
        )  # fmt: skip
        decisions = int(statistics.pop("decisions"))
        scalars = {f"train/{name}": value for name, value in statistics.items()}
        scalars["train/learning_rate"] = learning_rate
        scalars |= self._finish_games(members)
        if self._learner is not self.network:
            self.network.load_state_dict(self._learner.state_dict())
        self.iteration += 1
        self.decisions += decisions
        if self.iteration % config.snapshot_every == 0 and config.opponent_share:
            self._league.add(self.network, self.card(), f"past-{self.iteration:06}")
        self._seconds = self.seconds
        return scalars

    def _finish_games(self, members: dict[int, LeagueMember]) -> dict[str, float]:
        """Update the scores by the last game that ended in each row; return statistics."""
        finished = [_finished_games(part) for part in self._parts]
        owners, states = (np.concatenate(arrays) for arrays in zip(*finished, strict=True))
        ranks = kernels.rankings(states, MAX_PLAYERS)
        update_scores(members, owners, ranks, states["players"])
        return _game_statistics(states, owners) | _action_shares(self._rollout)

    def save(self) -> None:
        self._save(self._league.state(), self._state_of_games())
        self._league.delete_unused_files()


def find_device(config: PPOConfig) -> torch.device:
    """Return where PPO plays and learns by `device`: "cpu", "cuda" or "auto".

    "auto" is a GPU if there is one, numba-cuda is installed, and its environment plays all bots.
    For "cuda", raises ValueError without a GPU or with other bots, and ModuleNotFoundError without
    numba-cuda.
    """
    others = [bot for bot in config.bots if bot not in COMPILED]
    if config.device == "cuda" and others:
        raise ValueError(
            f"device is 'cuda', and bots has {others[0]!r}; allowed on a GPU: {', '.join(COMPILED)}"
        )
    if config.device != "cpu" and not others:
        try:
            return cuda_batch.find_device()
        except (ModuleNotFoundError, ValueError):
            if config.device == "cuda":
                raise
    return torch.device("cpu")


def _finished_games(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return the owners, (n, 5), and the records, GAME, (n,), of games that the rollout ended."""
    rows = part.rollout.terminations.any(dim=0).nonzero()[:, 0]
    owners = part.games.final_owners[rows].cpu().numpy()
    games = part.games.batch.final_games
    if isinstance(games, torch.Tensor):
        return owners, games[rows].cpu().numpy().reshape(-1).view(GAME)
    return owners, games[rows.numpy()]


def _game_statistics(states: np.ndarray, owners: np.ndarray) -> dict[str, float]:
    """Return means over the learner's seats in games that are over; empty without a game."""
    learner = (owners == LEARNER) & (np.arange(MAX_PLAYERS) < states["players"][:, None])
    if not len(states):
        return {}
    return {
        "games/deliveries": float(states["deliveries"][learner].mean()),
        "games/time_stones": float(states["stones"][learner].mean()),
        "games/rounds": float(states["round"].mean()),
    }


def _action_shares(rollout: Rollout) -> dict[str, float]:
    """Return the share of each action among the markers that the learner places."""
    actions = rollout.actions[rollout.is_learners]
    placed = actions[actions < len(BoardAction)]
    counts = torch.bincount(placed, minlength=len(BoardAction)).tolist()
    total = max(len(placed), 1)
    return {
        f"actions/{action.name.lower()}": count / total
        for action, count in zip(BoardAction, counts, strict=True)
    }
