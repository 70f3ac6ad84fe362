"""Settings of expert iteration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from busenv.train.config import (
    Count,
    NoneOrSpec,
    Players,
    Rated,
    RunConfig,
    Seconds,
    Share,
    Small,
    Temperature,
    Threads,
    one_of,
)
from busenv.train.expert_iteration.selfplay_players import BOTS

Bots = Annotated[tuple[Annotated[str, one_of(*BOTS)], ...], Field(min_length=1)]
Simulations = Annotated[int, Field(ge=1, le=100_000)]


class ExpertConfig(RunConfig):
    """Settings of expert iteration: a network guides a search and learns from its decisions.

    An iteration plays `games` games and then updates the network with samples of the replay buffer.
    A sample is one decision of a finished game. A run ends after `seconds`, or after `decisions`
    samples. With `decisions`, the same seed and one thread of torch give the same parameters.

    `busenv.train.config.PPOConfig` describes the fields that both methods share.

    Self-play:
        games: games per iteration. threads: threads of self-play and of torch.
        num_simulations, fast_simulations: simulations of a full search, whose decision becomes a
            sample, and of a fast search, whose decision does not. full_search_share: share of full
            searches (playout cap randomisation, Wu 2019).
        temperature_moves: number of decisions at the start of a game that are sampled from the
            improved policy. Later decisions take its most likely action.
        policy_only: the network plays without a search, and its policy learns by PPO.
            num_simulations and temperature_moves have no effect, fast_simulations applies to past
            selves only, and the replay buffer keeps the last iteration only, since PPO needs the
            policy that played. The value heads learn from games without opponents. Excludes
            `teacher` and `offline_data`.
        past_share, bot_share: shares of the games with opponents: a past self, saved every
            `snapshot_every` iterations, or one of `bots`, sampled for each game. bot_simulations:
            simulations of the bot `uct`. all_opponents_share: share of these games in which
            opponents hold every seat but one; in the others they hold one seat. A share
            `full_search_share` of the opponents' decisions become samples of the value heads.
        staleness: iterations by which self-play runs ahead of learning, so that a cluster never
            waits. Games are played by the network of that many iterations before. Above 0 a run
            that is stopped in between gives other parameters.

    Learning:
        replay_size: samples in the replay buffer. reuse: updates per new sample. batch_size,
            learning_rate: of an update; the rate falls linearly to a twentieth over the run.
        value_target_mix: weight of the search's win probabilities in the value target; the rest is
            the winner of the game.
        value_weight, score_weight: weights of the winner and of final points in the loss. The
            policy has weight 1.
        precision: "float32", or "bfloat16" for the layers' multiplications, which is faster on
            processors with bfloat16 instructions.
        offline_data: folders `replay` of earlier runs. The run begins with `offline_epochs` passes
            over their samples, during which the learning rate falls to a twentieth, and uses no
            teacher.
        teacher: agent whose games the run learns from first, "" for none. It plays at most
            `teacher_games` games, fewer if `replay_size` samples or `teacher_share` of the run are
            reached. `teacher_sample_share` of its decisions become samples, each used
            `teacher_reuse` times. The temperature of a network teacher (`net@0.5:NAME`) applies.

    Evaluation:
        rated: opponents that the network without search is rated against every `rate_every`
            seconds, at `temperature`, in `rate_games` games each.
    """

    method: Annotated[str, one_of("expert")] = "expert"
    network: Annotated[str, one_of("seats", "features")] = "features"
    width: Annotated[int, Field(ge=4, le=8192)] = 384
    players: Players = (3, 4, 5)
    games: Count = 60
    batch_size: Count = 512
    learning_rate: Small = 5e-4
    num_simulations: Simulations = 64
    fast_simulations: Simulations = 16
    full_search_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    temperature_moves: Annotated[int, Field(ge=0, le=1000)] = 30
    policy_only: bool = False
    past_share: Share = 0.1
    bot_share: Share = 0.05
    all_opponents_share: Share = 0.5
    bots: Bots = ("uct",)
    bot_simulations: Simulations = 100
    staleness: Annotated[int, Field(ge=0, le=100)] = 0
    replay_size: Annotated[int, Field(ge=1, le=100_000_000)] = 500_000
    reuse: Annotated[float, Field(gt=0, le=100)] = 1.0
    value_target_mix: Share = 0.5
    value_weight: Annotated[float, Field(ge=0, le=100)] = 1.5
    score_weight: Annotated[float, Field(ge=0, le=10)] = 0.3
    precision: Annotated[str, one_of("float32", "bfloat16")] = "float32"
    offline_data: tuple[str, ...] = ()
    offline_epochs: Annotated[int, Field(ge=1, le=100)] = 1
    teacher: NoneOrSpec = ""
    teacher_games: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    teacher_share: Share = 0.5
    teacher_sample_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    teacher_reuse: Annotated[float, Field(gt=0, le=100)] = 0.5
    snapshot_every: Count = 10
    temperature: Temperature = 0.1
    seconds: Seconds | None = 3600.0
    rated: Rated = ("greedy", "planner", "uct:100")
    rate_every: Seconds = 600.0
    rate_games: Count = 100
    threads: Threads = 1
    device: Annotated[str, one_of("auto", "cpu")] = "auto"

    @model_validator(mode="after")
    def _check_policy_only(self) -> ExpertConfig:
        if self.policy_only and (self.teacher or self.offline_data):
            raise ValueError(
                "policy_only is true; allowed with it: teacher='' and no offline_data, since PPO "
                "learns from its own games"
            )
        if self.policy_only and self.past_share + self.bot_share >= 1:
            raise ValueError(
                f"past_share and bot_share add up to {self.past_share + self.bot_share:g}; allowed "
                "with policy_only: less than 1, since values are learned from games without "
                "opponents"
            )
        return self
