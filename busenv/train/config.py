"""Settings of a training run: frozen, validated values, and the presets of PPO."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from typing_extensions import Self

from busenv.agents import AgentError, make_agent
from busenv.error_text import did_you_mean
from busenv.errors import BoardError
from busenv.game.board import Board
from busenv.game.board_specs import GeneratedBoards, board_at, is_held_out, load_boards
from busenv.game.rules import as_rules
from busenv.networks.factory import MAX_WIDTH
from busenv.networks.logits import HIGHEST_TEMPERATURE
from busenv.schema import Schema, first_error


def accepted_by(use: Callable[[str], object]) -> AfterValidator:
    """Validate a text by calling `use`, which raises an error for an invalid one."""

    def check(value: str) -> str:
        try:
            use(value)
        except (AgentError, ImportError, OSError, RecursionError) as error:
            raise ValueError(str(error)) from error
        return value

    return AfterValidator(check)


def training_boards(spec: str) -> Board | GeneratedBoards:
    """Load the board, or the set of boards, of a run.

    Raises BoardError for a board of the validation or test split, and the errors of `load_board`.
    """
    boards = load_boards(spec)
    if is_held_out(board_at(boards, 0)):
        raise BoardError(
            "boards for validation and tests are never trained on; allowed: generated:SIZE:train, "
            "generated:SIZE:train:COUNT, or a SEED below 1,000,000,000"
        )
    return boards


def check_batch_agent(spec: str) -> None:
    """Raise ValueError unless a spec is that of an agent that plays batches of games."""
    with closing(make_agent(spec)) as agent:
        if agent.single_game_only:
            raise ValueError("allowed: an agent that plays batches of games (with `choose`)")


Spec = Annotated[str, accepted_by(lambda spec: make_agent(spec).close())]
Bot = Annotated[str, accepted_by(check_batch_agent)]


class Settings(Schema):
    """Validated settings of a run; errors are those of pydantic, which are ValueErrors."""

    @model_validator(mode="before")
    @classmethod
    def _as_fields(cls, settings: dict[str, Any]) -> dict[str, Any]:
        # JSON has lists where the fields are tuples.
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        # One limit removes the other.
        for limit, other in (("decisions", "seconds"), ("seconds", "decisions")):
            if settings.get(limit) is not None and other in cls.model_fields:
                settings.setdefault(other, None)
        return settings

    def changed(self, changes: dict[str, Any]) -> Self:
        """Return a copy with some fields changed.

        Setting one limit removes the other, and `rate_every` removes `rate_decisions`.
        ValueError, in one line, names an unknown field, or a wrong value and what is allowed.
        """
        unknown = [name for name in changes if name not in type(self).model_fields]
        if unknown:
            raise ValueError(unknown_setting(unknown[0], type(self)))
        settings = self.model_dump()
        if any(changes.get(limit) is not None for limit in ("seconds", "decisions")):
            settings = {k: v for k, v in settings.items() if k not in ("seconds", "decisions")}
        if "rate_every" in changes:
            settings.pop("rate_decisions", None)
        try:
            return type(self)(**{**settings, **changes})
        except ValidationError as error:
            raise ValueError(first_error(error)) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return self.model_dump(mode="json")


def unknown_setting(name: str, kind: type[Settings]) -> str:
    """Return the error message for a setting that does not exist."""
    meant = did_you_mean(name, kind.model_fields)
    return f"no setting {name!r}" + (meant or f"; there are {', '.join(kind.model_fields)}")


class GameSettings(Settings):
    """Settings that runs and self-play share: the games, the seed and the threads."""

    players: tuple[Annotated[int, Field(ge=3, le=5)], ...] = Field(
        default=(4,),
        min_length=1,
        description="numbers of players; PPO draws one for each game, self-play takes them in turn",
    )
    board: Annotated[str, accepted_by(training_boards)] = Field(
        default="city",
        description="`city`, path of a board file, `generated:SIZE:SEED`, or a set of boards "
        "such as `generated:SIZE:train`",
    )
    rules: Annotated[str, accepted_by(as_rules)] = Field(
        default="capstone-2024", description="edition, or path of a rules file"
    )
    seed: int = Field(
        default=0, ge=0, le=2**63 - 1, description="seed of weights, games and minibatches"
    )
    threads: int = Field(
        default=2, ge=1, le=1024, description="threads that play games and compute updates"
    )


class RunConfig(GameSettings):
    """Settings that all kinds of runs share."""

    network: str
    width: int = Field(
        default=256,
        ge=4,
        le=MAX_WIDTH,
        description="units of a layer; with `board` networks, of an intersection",
    )
    relative_types: bool = Field(
        default=True, description="count building types from the clock in observations and actions"
    )
    init_from: str = Field(
        default="", description="model whose weights training starts from; empty: random weights"
    )
    batch_size: int = Field(
        default=512, ge=1, le=10**6, description="training decisions per minibatch"
    )
    learning_rate: float = Field(
        default=4e-4,
        ge=1e-8,
        le=1,
        description="initial learning rate; decreases linearly to a twentieth of it",
    )
    temperature: float = Field(
        default=0.25,
        ge=0,
        le=HIGHEST_TEMPERATURE,
        description="temperature of the trained agent, in ratings and as `net:PATH`; 0: most "
        "likely action",
    )
    rated: tuple[Spec, ...] = Field(
        default=("random", "greedy", "planner"),
        min_length=1,
        description="agents against which the learner is rated",
    )
    rate_every: float = Field(
        default=20.0,
        ge=1e-3,
        le=1e9,
        description="seconds between ratings; longer if ratings would take more than a tenth of "
        "the run",
    )
    rate_decisions: int | None = Field(
        default=None,
        ge=1,
        le=10**12,
        description="training decisions between ratings; `rate_every` replaces it",
    )
    rate_games: int = Field(
        default=128, ge=1, le=10**6, description="games of a rating against each agent of `rated`"
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto",
        description="precision of matrix products in updates, except in the first layer on a CPU; "
        "`auto`: bfloat16 on CPUs with instructions for it",
    )

    @model_validator(mode="after")
    def _check_board_sizes(self) -> Self:
        boards = load_boards(self.board)
        is_mixed = isinstance(boards, GeneratedBoards) and len(boards.sizes) > 1
        if is_mixed and self.network != "board":
            raise ValueError(
                f"network is {self.network!r}; allowed with board {self.board!r}, which has boards "
                "of several sizes: 'board' (expert iteration)"
            )
        return self

    @property
    def rating_players(self) -> int:
        """Number of players in ratings: 4 if the run has games of 4, else its first number."""
        return 4 if 4 in self.players else self.players[0]


class LimitedConfig(RunConfig):
    """Settings of runs that play: they end after a time or a number of decisions."""

    seconds: float | None = Field(
        default=180.0,
        ge=1e-3,
        le=1e9,
        description="length of the run in seconds, including ratings",
    )
    decisions: int | None = Field(
        default=None, ge=1, le=10**15, description="length of the run in training decisions"
    )

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if (self.seconds is None) == (self.decisions is None):
            raise ValueError(
                f"seconds is {self.seconds} and decisions is {self.decisions}; allowed: exactly "
                "one of them"
            )
        return self


class PPOConfig(LimitedConfig):
    """Settings of a PPO run; the description of each field states its meaning.

    A run ends after `seconds`, or after `decisions` training decisions: exactly one of the two is
    given. With `decisions`, the same seed, device, precision and number of threads give the same
    parameters. The learning rate falls with the progress of the run, so a run that resumes
    with a larger `seconds` or `decisions` raises it. `gamma`, `gae_lambda`, `clip_range` and
    `max_grad_norm` are as in Schulman et al. (2017).

    Opponents are bots and past selves. At least one seat of each game is the learner's.
    """

    method: Literal["ppo"] = Field(default="ppo", description="training method")
    network: Literal["mlp"] = Field(default="mlp", description="kind of network")
    reward: Literal["win", "rank", "margin", "deliveries", "shaped"] = Field(
        default="margin", description="name of the reward"
    )
    reward_unit: float = Field(
        default=5.0, ge=1e-6, le=1e6, description="rewards are divided by it"
    )
    learning_rate: float = Field(
        default=7e-4, ge=1e-8, le=1, description=RunConfig.model_fields["learning_rate"].description
    )
    games: int = Field(default=128, ge=1, le=10**6, description="games played in parallel")
    steps: int = Field(default=128, ge=1, le=10_000, description="steps of a rollout in each game")
    gamma: float = Field(default=0.99, ge=0, le=1, description="discount per decision")
    gae_lambda: float = Field(
        default=0.95, ge=0, le=1, description="lambda of generalized advantage estimation"
    )
    epochs: int = Field(default=2, ge=1, le=100, description="passes over a rollout")
    clip_range: float = Field(
        default=0.2, ge=1e-8, le=1, description="clip range of the policy ratio"
    )
    entropy_coef: float = Field(
        default=0.02, ge=0, le=10, description="weight of the entropy bonus in the loss"
    )
    value_coef: float = Field(default=0.5, ge=0, le=100, description="weight of the value loss")
    max_grad_norm: float = Field(
        default=0.5, ge=1e-6, le=1e6, description="gradients are clipped to this norm"
    )
    opponent_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="In 60% of games each non-learner seat goes to an opponent with this "
        "probability; in the other 40% one opponent fills every non-learner seat. 0: no opponents",
    )
    bots: tuple[Bot, ...] = Field(default=("greedy", "planner"), description="scripted opponents")
    pool_size: int = Field(default=12, ge=1, le=100, description="past selves to keep")
    snapshot_every: int = Field(
        default=25, ge=1, le=10**6, description="iterations between two past selves"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="device of games and network; `auto`: a GPU if there is one, numba-cuda is "
        "installed and `bots` lists only `random` and `greedy`",
    )

    @model_validator(mode="after")
    def _check_bots(self) -> Self:
        if self.opponent_share and not self.bots:
            raise ValueError(
                f"opponent_share is {self.opponent_share}, but bots is empty; add a bot or set "
                "opponent_share to 0"
            )
        return self


PRESETS = {
    # Three minutes on two cores.
    "quick": PPOConfig(),
    # An hour on two cores.
    "standard": PPOConfig(
        players=(3, 4, 5),
        batch_size=1024,
        gamma=0.995,
        seconds=3600.0,
        rate_every=240.0,
        rate_games=400,
    ),
    # The settings of `city-5`, but repeatable: 95 minutes on two cores, on the city only.
    "full": PPOConfig(
        width=384,
        players=(4, 3, 4, 5),
        games=256,
        gamma=0.997,
        batch_size=1024,
        learning_rate=5e-4,
        entropy_coef=0.01,
        bots=("greedy", "planner", "net:city-4"),
        decisions=70_000_000,
        temperature=0.1,
        rated=("greedy", "planner", "uct:100", "uct:300", "net:city-4"),
        rate_every=1400.0,
        rate_games=400,
    ),
}
