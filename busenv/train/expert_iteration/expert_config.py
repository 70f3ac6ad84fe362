"""Settings of self-play by a search, of fitting a network, and of expert iteration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from busenv.train.config import Bot, GameSettings, LimitedConfig, RunConfig, Settings

Simulations = Annotated[int, Field(ge=1, le=100_000)]


class SearchSettings(Settings):
    """How games of self-play by a guided search are played."""

    fast_simulations: Simulations = Field(
        default=16, description="simulations of a decision that does not become a sample"
    )
    full_search_share: float = Field(
        default=0.25, gt=0, le=1, description="share of decisions that become samples"
    )
    bot_share: float = Field(
        default=0.05, ge=0, le=1, description="share of games in which a bot plays"
    )
    bots: tuple[Literal["uct", "planner", "greedy"], ...] = Field(
        default=("uct",),
        min_length=1,
        description="bots; a game with a bot draws one, which holds one seat or all seats but one",
    )
    bot_simulations: Simulations = Field(default=100, description="simulations of the bot `uct`")


class SelfPlayConfig(SearchSettings, GameSettings):
    """Settings of `busenv selfplay`; the description of each field states its meaning.

    With an agent `az:MODEL:SIMULATIONS`, a share `full_search_share` of the decisions is searched
    with SIMULATIONS and becomes samples; the others are searched with `fast_simulations` (playout
    cap randomisation, Wu 2019). The search evaluates no leaf by playouts. Samples hold the policy
    that the search improved, and its estimate of each player's chance to win. Bots' decisions
    become samples without a policy.

    Other agents play against themselves; samples hold their action probabilities. `bots`,
    `fast_simulations` and `threads` are ignored for them. To search on four threads, name the agent
    `uct@4:50`.

    The games do not depend on the number of threads, nor, apart from rounding in the network, on
    the device.
    """

    agent: Bot = Field(default="uct:50", description="agent that plays against itself")
    samples: int = Field(
        default=100_000,
        ge=1,
        le=10**9,
        description="minimum number of samples; games are played in parts of 64 (8,192 with "
        "`device=cuda`), and a part is always completed",
    )
    device: Literal["cpu", "cuda"] = Field(
        default="cpu",
        description="device that plays the games and runs the network; `cuda` requires an `az` "
        "agent with a network of kind `seats` or `features`, `bot_share=0` and a single board",
    )


class FitSettings(RunConfig):
    """How a network learns from samples."""

    network: Literal["seats", "features", "board"] = Field(
        default="features",
        description="kind of network. `seats`: observation only; `features`: also evaluation and "
        "playout features; `board`: a graph network that plays every board",
    )
    value_target_mix: float = Field(
        default=0.5, ge=0, le=1, description="share of the search's value in the value target"
    )
    value_weight: float = Field(
        default=1.5, ge=0, le=100, description="weight of the loss for the winner"
    )
    score_weight: float = Field(
        default=0.3, ge=0, le=10, description="weight of the loss for the final points"
    )


class FitConfig(FitSettings):
    """Settings of `busenv fit`; the description of each field states its meaning.

    The network learns from every sample once in each epoch. The same settings, with one thread of
    torch, give the same parameters.
    """

    method: Literal["fit"] = Field(default="fit", description="training method")
    data: tuple[str, ...] = Field(default=(), description="folders of samples")
    validation: tuple[str, ...] = Field(
        default=(),
        description="folders of samples that are not learned from; TensorBoard shows the losses "
        "on them at the end of each iteration (100 minibatches) in which an epoch ends",
    )
    epochs: int = Field(default=1, ge=1, le=100, description="passes over the samples")


class ExpertConfig(FitSettings, LimitedConfig, SearchSettings):
    """Settings of expert iteration; the description of each field states its meaning.

    A network guides a search, as in `SelfPlayConfig`, and learns from its decisions. An iteration
    plays `games` games and then updates the network with samples of the replay buffer. A run ends
    after `seconds`, or after `decisions` samples. With `decisions`, the same seed and one thread of
    torch give the same parameters.
    """

    method: Literal["expert"] = Field(default="expert", description="training method")
    games: int = Field(default=60, ge=1, le=10**6, description="games of an iteration")
    num_simulations: Simulations = Field(
        default=64, description="simulations of a decision that becomes a sample"
    )
    replay_size: int = Field(
        default=500_000, ge=1, le=10**8, description="capacity of the replay buffer, in samples"
    )
    reuse: float = Field(
        default=1.0, gt=0, le=100, description="mean number of updates that use a sample"
    )
