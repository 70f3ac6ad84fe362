"""A PPO run: rollouts and updates, a league of opponents, checkpoints to resume from."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

from busenv import Board
from busenv.agents import Agent, make_agent
from busenv.agents.policy_agent import PolicyAgent
from busenv.batch.opponents import COMPILED, choose_actions
from busenv.core import kernels
from busenv.core.relative_types import write_relative_actions
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.game.actions import BoardAction
from busenv.networks.model_files import save_model
from busenv.train.config import PPOConfig
from busenv.train.league import League, LeagueMember, update_scores
from busenv.train.ppo import (
    LEARNER,
    Games,
    LineUps,
    Opponent,
    PPOSettings,
    Rollout,
    frozen_policy,
    make_rollout,
    play_rollout,
    update,
    uses_bfloat16,
)
from busenv.train.run import LOWEST_LEARNING_RATE, MODEL, Iteration, TrainingRun

PAST_FOLDER = "past"  # of past selves


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
        self._agents: dict[str, Agent] = {
            bot.name: make_agent(bot.name) for bot in self._league.bots if bot.name not in COMPILED
        }
        self._games = self._make_games()
        self.network = self._initial_network()
        on_cpu = self.device.type == "cpu"
        self._learner = self.network if on_cpu else copy.deepcopy(self.network).to(self.device)
        self.optimizer = torch.optim.Adam(self._learner.parameters(), eps=1e-5, fused=True)
        bfloat16 = uses_bfloat16(config.precision, self.device)
        settings = {"bfloat16": bfloat16, **config.model_dump(include={*PPOSettings._fields})}
        self._settings = PPOSettings(**settings)
        self.agent = PolicyAgent(
            self.network, self.boards, seed=config.seed, temperature=config.temperature
        )
        self._generator = torch.Generator(self.device)
        self._warm_up()
        self._rollout = self._make_rollout(config.steps)
        games = self._games.batch.state()
        checkpoint = self._resume(self._learner, games)
        if checkpoint is None:
            self._generator.manual_seed(config.seed)
            self._games.reset(config.seed, self._generator)
        else:
            self.network.load_state_dict(self._learner.state_dict())
            self._league.restore(checkpoint.league)
            self._games.batch.restore(games)
        self._start_clock()

    def _make_games(self) -> Games:
        config = self.config
        settings: dict[str, Any] = {
            "num_players": config.players, "rules": self.rules,
            "board": self.boards if isinstance(self.boards, Board) else config.board,
            "reward": config.reward, "relative_types": config.relative_types,
            "skip_forced": True, "copy": False, "device": self.device.type,
        }  # fmt: skip
        if self.device.type == "cpu":
            settings["threads"] = min(config.threads, config.games)
        env = gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=config.games, **settings)
        _, weights = self._league.draw(np.random.default_rng(config.seed))
        line_ups = LineUps(
            torch.from_numpy(weights).to(self.device),
            opponent_share=config.opponent_share,
            min_players=min(config.players),
        )
        return Games(env, line_ups)

    def _make_rollout(self, steps: int) -> Rollout:
        return make_rollout(steps, self.config.games, *self._games.sizes, self.device)

    def _warm_up(self) -> None:
        """Play a step and call every agent once, before the clock starts.

        This compiles all kernels, and raises the error of an agent that cannot play on the board.
        """
        self._games.env.reset(seed=0)
        self._play(self._make_rollout(1), {})
        self._try_agents({*self.config.bots, *self.config.rated})

    def _play(self, rollout: Rollout, opponents: dict[int, Opponent]) -> None:
        play_rollout(
            self._games, self._learner, opponents, rollout,
            settings=self._settings, generator=self._generator,
        )  # fmt: skip

    def _opponent(self, member: LeagueMember, seed: int) -> Opponent:
        """Return the policy of a bot that the environment does not play, or of a past self."""
        if member.network is None:
            agent = self._agents[member.name]
        elif self.device.type == "cpu" and isinstance(self.boards, Board):
            # Compiled code is faster for few rows; on a set, it would be called for each board.
            agent = PolicyAgent(member.network, self.boards)
        else:
            network = member.network.to(self.device)
            return frozen_policy(network, self._generator, self._settings.bfloat16)
        agent.reset(seed)
        return agent_policy(agent, self._games, self.config.relative_types)

    def step(self) -> Iteration:
        """Play a rollout and learn from it."""
        config = self.config
        rng = np.random.default_rng((config.seed, self.iteration))
        self._generator.manual_seed(int(rng.integers(2**62)))
        members, weights = self._league.draw(rng)
        opponents = {
            owner: self._opponent(member, int(rng.integers(2**62)))
            for owner, member in members.items()
            if member.name not in COMPILED
        }
        self._games.line_ups.weights.copy_(torch.from_numpy(weights))
        learning_rate = config.learning_rate * max(1 - self.progress, LOWEST_LEARNING_RATE)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self._play(self._rollout, opponents)
        statistics = update(
            self._learner, self.optimizer, self._rollout,
            settings=self._settings, generator=self._generator,
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
        return Iteration(self.iteration, self.decisions, self._seconds, scalars)

    def _finish_games(self, members: dict[int, LeagueMember]) -> dict[str, float]:
        """Update the scores by the last game that ended in each row; return statistics."""
        games, rollout = self._games, self._rollout
        ended = rollout.terminations.any(dim=0).nonzero()[:, 0]
        owners = games.final_owners[ended].cpu().numpy()
        states = _records(games.batch.final_games, ended)
        ranks = kernels.rankings(states, MAX_PLAYERS)
        update_scores(members, owners, ranks, states["players"])
        return _game_statistics(states, owners) | _action_shares(rollout)

    def save(self) -> None:
        """Write the checkpoint, and the model with its card."""
        self._save_checkpoint(self._league.state(), self._games.batch.state())
        save_model(self.network, self.boards, self.folder / MODEL, self.card())
        self._league.delete_unused_files()


def find_device(config: PPOConfig) -> torch.device:
    """Return where PPO plays and learns by `device`: "cpu", "cuda" or "auto".

    "auto" is a GPU if there is one and its environment plays all bots. Raises ValueError for "cuda"
    without a GPU, or with other bots.
    """
    others = [bot for bot in config.bots if bot not in COMPILED]
    available = torch.cuda.is_available()
    if config.device == "cuda":
        if not available:
            raise ValueError("device is 'cuda', but torch finds no GPU here; allowed: auto, cpu")
        if others:
            raise ValueError(
                f"device is 'cuda', and bots has {others[0]!r}; allowed on a GPU: "
                f"{', '.join(COMPILED)}"
            )
        return torch.device("cuda")
    return torch.device("cuda" if config.device == "auto" and available and not others else "cpu")


def agent_policy(agent: Agent, games: Games, relative_types: bool) -> Opponent:
    """Return an opponent that plays as an agent does, in games on the CPU."""
    batch = games.batch

    def choose(observations: torch.Tensor, masks: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        index = rows.numpy()
        actions = choose_actions(
            agent, batch.games, index, rules=batch.rules, boards=batch.boards,
            board_index=batch.board_index,
        )  # fmt: skip
        if relative_types:
            write_relative_actions(batch.games[index], batch.board.array, actions)
        return torch.from_numpy(actions)

    return choose


def _records(games: np.ndarray | torch.Tensor, rows: torch.Tensor) -> np.ndarray:
    """Return some records of a batch's games on any device: GAME, (n,)."""
    if isinstance(games, torch.Tensor):
        return games[rows].cpu().numpy().reshape(-1).view(GAME)
    return games[rows.numpy()]


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
