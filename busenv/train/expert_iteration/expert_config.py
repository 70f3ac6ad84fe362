"""Settings of expert iteration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from busenv.networks.factory import MAX_WIDTH
from busenv.train.config import (
    Count,
    PlayerCounts,
    Rated,
    RunConfig,
    Seconds,
    Share,
    SmallPositive,
    Teacher,
    Temperature,
    Threads,
)

Bots = Annotated[tuple[Literal["uct", "planner", "greedy"], ...], Field(min_length=1)]
Simulations = Annotated[int, Field(ge=1, le=100_000)]


class ExpertConfig(RunConfig):
    """Settings of expert iteration: a network guides a search and learns from its decisions.

    docs/training_settings.md describes every field. An iteration plays `games` games and then
    updates the network with samples of the replay buffer. A sample is one decision of a finished
    game. A run ends after `seconds`, or after `decisions` samples. With `decisions`, the same seed
    and one thread of torch give the same parameters.

    A share `full_search_share` of the decisions is searched with `num_simulations` and becomes
    samples; the others are searched with `fast_simulations` (playout cap randomisation, Wu 2019).
    The first `temperature_moves` decisions of a game are sampled from the improved policy; later
    ones take the action that sequential halving selects.

    Opponents are past selves, saved every `snapshot_every` iterations (`past_share`; of the last 8,
    one drawn uniformly at random plays in all games of an iteration), and `bots`
    (`bot_share`). In a share `all_opponents_share` of their games they hold every seat but one,
    else one seat. A share `full_search_share` of their decisions become samples of the value heads.

    `staleness`: games are played by the network of that many iterations earlier, so that a cluster
    never waits for learning. Above 0, an interrupted and resumed run ends with other parameters
    than an uninterrupted one.

    A run with `offline_data`, folders `replay` of earlier runs, learns from them first. With a
    `teacher`, the run first learns from its games: `teacher_games`, rounded up to a multiple of 64,
    or fewer once `replay_size` samples or `teacher_share` of the run are reached. In each of these
    phases the learning rate falls linearly to a twentieth. A network teacher plays at its
    temperature (`net@0.5:NAME`).
    """

    method: Literal["expert"] = "expert"
    network: Literal["seats", "features", "board"] = "features"
    width: Annotated[int, Field(ge=4, le=MAX_WIDTH)] = 384
    players: PlayerCounts = (3, 4, 5)
    games: Count = 60
    batch_size: Count = 512
    learning_rate: SmallPositive = 5e-4
    num_simulations: Simulations = 64
    fast_simulations: Simulations = 16
    full_search_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    temperature_moves: Annotated[int, Field(ge=0, le=1000)] = 30
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
    precision: Literal["float32", "bfloat16"] = "float32"
    offline_data: tuple[str, ...] = ()
    offline_epochs: Annotated[int, Field(ge=1, le=100)] = 1
    teacher: Teacher = ""
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
    device: Literal["auto", "cpu"] = "auto"

    @model_validator(mode="after")
    def _check_opponents(self) -> ExpertConfig:
        total = self.past_share + self.bot_share
        if total > 1:
            raise ValueError(f"past_share and bot_share add up to {total:g}; allowed: at most 1")
        return self

    @model_validator(mode="after")
    def _check_teacher(self) -> ExpertConfig:
        if self.teacher and self.offline_data:
            raise ValueError("teacher and offline_data are both set; allowed: one of them")
        if self.teacher and not self.teacher_games:
            raise ValueError(
                f"teacher is {self.teacher!r}, but teacher_games is 0; allowed: 1 or more, or no "
                "teacher"
            )
        return self
