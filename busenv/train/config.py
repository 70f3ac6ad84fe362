"""Settings of a training run: frozen, validated values, and the presets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal, get_origin

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import from_json
from typing_extensions import Self

from busenv.agents import AgentError, make_agent
from busenv.error_text import did_you_mean, truncate
from busenv.errors import BoardError
from busenv.game.board import Board
from busenv.game.board_specs import GeneratedBoards, board_at, is_held_out, load_boards
from busenv.game.rules import as_rules
from busenv.networks.factory import MAX_WIDTH
from busenv.networks.logits import HIGHEST_TEMPERATURE
from busenv.schema import LONGEST_SENTENCE, Schema
from busenv.train.ppo import PPOSettings


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


def _check_batch_agent(spec: str) -> None:
    """Check the spec of an agent that plays in training; "" for none."""
    if spec:
        agent = make_agent(spec)
        agent.close()
        if agent.needs_history:
            raise ValueError("allowed: an agent that plays batches of games, not exec or llm")


def _check_bot(spec: str) -> None:
    if not spec:
        raise ValueError("allowed: an agent that plays batches of games")
    _check_batch_agent(spec)


def _with_one_limit(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in which one limit, `seconds` or `decisions`, removes the other."""
    for limit, other in (("decisions", "seconds"), ("seconds", "decisions")):
        if settings.get(limit) is not None and other not in settings:
            return {**settings, other: None}
    return settings


Count = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
SmallPositive = Annotated[float, Field(ge=1e-8, le=1)]
Seconds = Annotated[float, Field(ge=1e-3, le=1e9)]
Scale = Annotated[float, Field(ge=1e-6, le=1e6)]
PlayerCounts = Annotated[tuple[Annotated[int, Field(ge=3, le=5)], ...], Field(min_length=1)]
Temperature = Annotated[float, Field(ge=0, le=HIGHEST_TEMPERATURE)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Spec = Annotated[str, accepted_by(lambda spec: make_agent(spec).close())]
Teacher = Annotated[str, accepted_by(_check_batch_agent)]
Bot = Annotated[str, accepted_by(_check_bot)]
Rated = Annotated[tuple[Spec, ...], Field(min_length=1)]


class RunConfig(Schema):
    """Settings that all kinds of runs share; docs/training_settings.md describes every field."""

    network: str
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = 256
    relative_types: bool = True
    init_from: str = ""
    players: PlayerCounts = (4,)
    board: Annotated[str, accepted_by(training_boards)] = "city"
    rules: Annotated[str, accepted_by(as_rules)] = "capstone-2024"
    games: Count
    batch_size: Count
    learning_rate: SmallPositive = 4e-4
    seconds: Seconds | None = 180.0
    decisions: Annotated[int, Field(ge=1, le=10**15)] | None = None
    temperature: Temperature = 0.25
    rated: Rated = ("random", "greedy", "planner")
    rate_every: Seconds = 20.0
    rate_games: Count = 128
    snapshot_every: Count = 25
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    threads: Threads = 2
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __init__(self, /, **settings: Any) -> None:
        # JSON has lists where the fields are tuples.
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        try:
            super().__init__(**_with_one_limit(settings))
        except ValidationError as error:
            raise ValueError(truncate(_sentence(error, type(self)), LONGEST_SENTENCE)) from None

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if (self.seconds is None) == (self.decisions is None):
            raise ValueError(
                f"seconds is {self.seconds} and decisions is {self.decisions}; allowed: exactly "
                "one of them"
            )
        return self

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

    def changed(self, changes: dict[str, Any]) -> Self:
        """Return a copy with some fields changed; setting one limit removes the other.

        ValueError names an unknown field, or a wrong value and what is allowed.
        """
        return type(self)(**{**self.model_dump(), **_with_one_limit(changes)})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return self.model_dump(mode="json")


DEFAULTS = PPOSettings()


class PPOConfig(RunConfig):
    """Settings of a PPO run; docs/training_settings.md describes every field.

    A run ends after `seconds`, or after `decisions` training decisions: exactly one of the two is
    given. With `decisions`, the same seed, device and precision and one thread of torch give the
    same parameters. The learning rate falls with the progress of the run, so a run that resumes
    with a larger `seconds` or `decisions` raises it. `gamma`, `gae_lambda`, `clip_range` and
    `max_grad_norm` are as in Schulman et al. (2017).

    One seat of each game is the learner's. `opponent_share` is the probability that any other seat
    is a bot's or a past self's. If it is above 0, copies of one opponent hold all other seats in
    40% of the games, as in ratings.

    ValueError, in one line, names a setting, its value and what is allowed.
    """

    method: Literal["ppo"] = "ppo"
    network: Literal["mlp"] = "mlp"
    reward: Literal["win", "rank", "margin", "deliveries", "shaped"] = "margin"
    reward_unit: Scale = DEFAULTS.reward_unit
    games: Count = 256
    steps: Annotated[int, Field(ge=1, le=10_000)] = DEFAULTS.steps
    batch_size: Count = DEFAULTS.batch_size
    gamma: Share = DEFAULTS.gamma
    gae_lambda: Share = DEFAULTS.gae_lambda
    epochs: Annotated[int, Field(ge=1, le=100)] = DEFAULTS.epochs
    clip_range: SmallPositive = DEFAULTS.clip_range
    entropy_coef: Annotated[float, Field(ge=0, le=10)] = DEFAULTS.entropy_coef
    value_coef: Annotated[float, Field(ge=0, le=100)] = DEFAULTS.value_coef
    max_grad_norm: Scale = DEFAULTS.max_grad_norm
    opponent_share: Share = 0.5
    bots: tuple[Bot, ...] = ("greedy", "planner")
    pool_size: Annotated[int, Field(ge=1, le=100)] = 12

    @model_validator(mode="after")
    def _check_bots(self) -> Self:
        if self.opponent_share and not self.bots:
            raise ValueError(
                f"opponent_share is {self.opponent_share}, but bots is empty; "
                "allowed: at least one bot, or opponent_share=0"
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
    # Hours; repeatable.
    "full": PPOConfig(
        width=384,
        players=(3, 4, 5),
        reward="shaped",
        reward_unit=1.0,
        gamma=0.999,
        batch_size=2048,
        epochs=2,
        learning_rate=3e-4,
        entropy_coef=0.01,
        opponent_share=0.6,
        bots=("greedy", "planner", "uct@2:40"),
        pool_size=24,
        snapshot_every=20,
        decisions=12_000_000,
        temperature=0.1,
        rated=("greedy", "planner", "uct:100"),
        rate_every=900.0,
        rate_games=400,
        threads=1,
    ),
}


def parse_settings(
    assignments: list[str], config_class: type[RunConfig] = PPOConfig
) -> dict[str, Any]:
    """Parse settings such as `seconds=60`; tuples are written with commas, or as JSON lists.

    ValueError names an unknown setting, another method than that of `config_class`, or a wrong
    value and what is allowed.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ValueError(f"setting {assignment!r}; allowed: NAME=VALUE")
        field = config_class.model_fields.get(name)
        if field is None:
            raise ValueError(_unknown(name, config_class))
        method = config_class.model_fields["method"].default
        if name == "method" and text != method:
            raise ValueError(
                f"{assignment} differs from the method of the preset, file or run; allowed: "
                f"{method}, or a settings file FILE.json with method ppo or expert"
            )
        several = get_origin(field.annotation) is tuple
        value: Any = tuple(part for part in text.split(",") if part) if several else text
        if several and text.startswith("["):
            with suppress(ValueError):  # not JSON: validated as the parts between commas
                value = tuple(from_json(text))
        annotated: Any = Annotated[field.annotation, field]
        try:
            settings[name] = TypeAdapter(annotated).validate_python(value)
        except ValidationError as error:
            raise ValueError(_sentence(error, config_class, name)) from None
    return settings


def _sentence(error: ValidationError, config_class: type[RunConfig], setting: str = "") -> str:
    """Describe the first error: the setting, its value, and what is allowed.

    config_class: of the settings. setting: the only one that was validated, if there was one.
    """
    first = error.errors(include_url=False)[0]
    where = [*([setting] if setting else []), *first["loc"]]
    if not where:  # settings that exclude each other
        return str(first["ctx"]["error"])
    name, *entry = map(str, where)
    if first["type"] == "extra_forbidden":
        return _unknown(name, config_class)
    schema = config_class.model_json_schema()["properties"][name]
    value = first["input"] if setting else repr(first["input"])
    message = f"{name} {'has' if entry else 'is'} {value}"
    if first["type"] == "value_error":
        return f"{message}; {first['ctx']['error']}"
    return f"{message}; allowed: {_allowed(schema['items'] if entry else schema)}"


def _allowed(schema: dict[str, Any]) -> str:
    """Describe the allowed values of a field by its JSON schema."""
    schema = schema.get("anyOf", [schema])[0]
    if schema["type"] == "array":
        return f"{'one or more' if 'minItems' in schema else 'any number'}, separated by commas"
    if "const" in schema or "enum" in schema:
        return ", ".join(schema.get("enum") or [schema["const"]])
    if schema["type"] == "string":
        return "a text"
    if schema["type"] == "boolean":
        return "true or false"
    kind, style = ("a whole number", ",") if schema["type"] == "integer" else ("a number", "g")
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    above = "" if "minimum" in schema else "above "
    return f"{kind} {above}{low:{style}} to {schema['maximum']:{style}}"


def _unknown(name: str, config_class: type[RunConfig]) -> str:
    """Describe an unknown setting."""
    meant = did_you_mean(name, config_class.model_fields)
    return f"no setting {name!r}" + (meant or f"; there are {', '.join(config_class.model_fields)}")
