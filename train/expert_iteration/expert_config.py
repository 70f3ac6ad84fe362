"""Settings of expert iteration."""

from __future__ import annotations

from typing import Annotated, Self

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
    """Settings of a run that learns from a search which its network guides.

    An iteration plays `games` games by the search and learns from the decisions of the last ones.
    A run ends after so many `seconds`, or after so many `decisions` to learn from. With
    `decisions`, the same seed and one thread of torch give the same parameters.

    method: "expert". network, width, start, blend, players, board, rules, seed, threads: as in
        `busenv.train.config.PPOConfig`; threads play, too. device: the CPU, which "auto" means here.
        games: of an iteration.
    full, fast: simulations of a decision that is learned from, and of one that is not. full_share:
        share of decisions that are learned from. early: decisions of a game that are drawn by what
        the search found, not taken for the best.
    alone: whether the learner plays by its network alone, without a search, and its policy learns
        by PPO (`busenv.train.expert_iteration.policy_selfplay`). full and early say nothing then, fast how past selves
        search. What is found is true for the network that played, so the last iteration's
        decisions alone are kept, whatever `window` is. Who wins is learned from games without
        opponents; there is no teacher, and there are no lessons.
    past_share, bot_share: shares of the games with seats of a past self, kept every `keep_every`
        iterations, and of one of `bots`, drawn for each game; `uct` has `bot_simulations`. In a
        share of these games (`outnumbered`) they have every seat but one, else one seat. Of these
        seats' decisions `full_share` is learned from, too, but only who won; with `alone` none is.
    ahead: iterations by which play runs ahead of learning, so that on a cluster neither waits for
        the other: its games are played by a network that many iterations old. The same seed gives
        the same parameters then if the run is not stopped in between.
    window: decisions that are kept to learn from. reuse: how often one is learned from. batch_size,
        learning_rate: of a step; the rate falls linearly to a twentieth over the run.
    search_share: of what the search thought in the targets of winning; the rest is who won.
    winning, points: weights of who wins and of final points in the loss; the policy weighs 1.
    precision: "float32", or "bfloat16" for the layers while learning, which is faster on processors
        that multiply such numbers, and slower on others.
    lessons: folders `window` of earlier runs. Each of their rows is learned from `lessons_reuse`
        times before the first game, the rate falling to a twentieth; no teacher is asked then.
    teacher: an agent whose games are learned from first, `teacher_games` of them or as many as fit
        into the window and into `teacher_share` of the run, a share `teacher_kept` of its
        decisions, each `teacher_reuse` times, before the first of its own; "" for none. A model's
        temperature (`net@0.5:NAME`) is that of the play that is learned.
    rated: agents that the network is rated against every `rate_every` seconds, without search, at
        `temperature`, in `rate_games` games each.
    """

    method: Annotated[str, one_of("expert")] = "expert"
    network: Annotated[str, one_of("seats", "features")] = "features"
    width: Annotated[int, Field(ge=4, le=8192)] = 384
    players: Players = (3, 4, 5)
    games: Count = 60
    batch_size: Count = 512
    learning_rate: Small = 5e-4
    full: Simulations = 64
    fast: Simulations = 16
    full_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    early: Annotated[int, Field(ge=0, le=1000)] = 30
    alone: bool = False
    past_share: Share = 0.1
    bot_share: Share = 0.05
    outnumbered: Share = 0.5
    bots: Bots = ("uct",)
    bot_simulations: Simulations = 100
    ahead: Annotated[int, Field(ge=0, le=100)] = 0
    window: Annotated[int, Field(ge=1, le=100_000_000)] = 500_000
    reuse: Annotated[float, Field(gt=0, le=100)] = 1.0
    search_share: Share = 0.5
    winning: Annotated[float, Field(ge=0, le=100)] = 1.5
    points: Annotated[float, Field(ge=0, le=10)] = 0.3
    precision: Annotated[str, one_of("float32", "bfloat16")] = "float32"
    lessons: tuple[str, ...] = ()
    lessons_reuse: Annotated[int, Field(ge=1, le=100)] = 1
    teacher: NoneOrSpec = ""
    teacher_games: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    teacher_share: Share = 0.5
    teacher_kept: Annotated[float, Field(gt=0, le=1)] = 0.5
    teacher_reuse: Annotated[float, Field(gt=0, le=100)] = 0.5
    keep_every: Count = 10
    temperature: Temperature = 0.1
    seconds: Seconds | None = 3600.0
    rated: Rated = ("greedy", "planner", "uct:100")
    rate_every: Seconds = 600.0
    rate_games: Count = 100
    threads: Threads = 1
    device: Annotated[str, one_of("auto", "cpu")] = "auto"

    @model_validator(mode="after")
    def _check_alone(self) -> Self:
        if self.alone and (self.teacher or self.lessons):
            raise ValueError("alone learns from its own games; allowed: no teacher, no lessons")
        if self.alone and self.past_share + self.bot_share >= 1:
            raise ValueError(
                f"past_share and bot_share add up to {self.past_share + self.bot_share:g}; allowed "
                "with alone: less than 1, since who wins is learned from games without opponents"
            )
        return self
