"""How a run trains: one frozen value, saved with the run, and the presets."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from busenv.agents import make_agent
from busenv.agents.neural.networks import NETWORKS

from busenv.checks import check_seed
from busenv.rewards import REWARDS
from busenv.rules import as_rules, player_counts


def _among(name: str, value: str, allowed: Any) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(allowed)}")


def _within(config: Any, name: str, low: float, high: float | None) -> None:
    value = getattr(config, name)
    if not (low <= value and (high is None or value <= high)):
        limit = f"{low:g} to {high:g}" if high is not None else f"at least {low:g}"
        raise ValueError(f"{name} is {value!r}; allowed: {limit}")


@dataclass(frozen=True)
class Config:
    """Settings of a run. Every field can be set on the command line and in a JSON file.

    A run ends after so many `seconds`, or after so many `decisions` learned from: one of the two is
    given. With `decisions`, the same seed and device and one thread give the same parameters.

    network, width: see `agents.neural.networks`. start: a model whose weights to begin with;
        "" for fresh ones. players: how many play, drawn evenly for each game.
    reward, reward_unit: what seats are paid (busenv.rewards), divided by the unit.
    games: whole games of a rollout. learning_rate: of PPO; falls linearly to a twentieth.
    entropy, value: weights in the loss. The other settings of PPO are called as in the literature.
    warm_start: an agent to imitate during the first `warm_share` of the run, at a learning rate of
        its own; "" for none. It follows `start` too, so a model that is to be improved by PPO alone
        wants none. Of a search (`uct@2:150`) the shares of its visits are learned, not only what it
        chooses.
    opponent_share: share of seats that are not the learner's, but of scripted `bots` and of frozen
        past selves, one of which is kept every `keep_every` rollouts, `pool` of them at most; above
        0, two games in five have one learner's seat among copies of one opponent besides.
    temperature: at which the trained agent plays, in ratings and in the warm start too; 0 for its
        favourites only. What PPO learns from is played at 1.
    rated: agents against three of which the learner is rated every `rate_every` seconds, in
        `rate_games` games each.
    threads: of torch. device: "auto" takes a GPU when there is one.
    """

    network: str = "mlp"
    width: int = 256
    start: str = ""
    players: tuple[int, ...] = (4,)
    rules: str = "capstone-2024"
    reward: str = "margin"
    reward_unit: float = 5.0
    gamma: float = 0.99
    gae_lambda: float = 0.9
    games: int = 64
    batch_size: int = 2048
    epochs: int = 2
    learning_rate: float = 4e-4
    clip_range: float = 0.2
    entropy: float = 0.02
    value: float = 0.5
    max_grad_norm: float = 0.5
    warm_start: str = "planner"
    warm_share: float = 0.3
    opponent_share: float = 0.5
    bots: tuple[str, ...] = ("greedy", "planner")
    pool: int = 12
    keep_every: int = 25
    seconds: float | None = 180.0
    decisions: int | None = None
    temperature: float = 0.25
    rated: tuple[str, ...] = ("random", "greedy", "planner")
    rate_every: float = 20.0
    rate_games: int = 128
    seed: int = 0
    threads: int = 2
    device: str = "auto"

    def __post_init__(self) -> None:
        player_counts(self.players)
        as_rules(self.rules)
        check_seed(self.seed)
        _among("network", self.network, NETWORKS)
        _among("reward", self.reward, REWARDS)
        _among("device", self.device, ("auto", "cpu", "cuda"))
        for name in (
            "width",
            "games",
            "batch_size",
            "epochs",
            "pool",
            "keep_every",
            "threads",
            "rate_games",
        ):
            _within(self, name, 1, None)
        for name in ("rate_every", "reward_unit", "learning_rate", "clip_range", "max_grad_norm"):
            _within(self, name, 1e-9, None)
        for name in ("gamma", "gae_lambda", "warm_share", "opponent_share"):
            _within(self, name, 0, 1)
        for name in ("entropy", "value", "temperature"):
            _within(self, name, 0, None)
        if (self.seconds is None) == (self.decisions is None):
            raise ValueError("give seconds or decisions, and not both")
        _within(self, "seconds" if self.decisions is None else "decisions", 1e-9, None)
        for spec in (*self.bots, *self.rated, *([self.warm_start] if self.warm_start else [])):
            make_agent(spec).close()

    def changed(self, changes: dict[str, Any]) -> Config:
        """With some fields changed; setting one limit lifts the other.

        ValueError names a field that does not exist, or what is wrong with a value.
        """
        names = [field.name for field in fields(self)]
        if unknown := sorted(changes.keys() - set(names)):
            raise ValueError(f"no setting {unknown[0]!r}; there are {', '.join(names)}")
        if "decisions" in changes and "seconds" not in changes:
            changes = {**changes, "seconds": None}
        if "seconds" in changes and "decisions" not in changes:
            changes = {**changes, "decisions": None}
        return replace(self, **{name: _fitting(name, value) for name, value in changes.items()})

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return json.loads(json.dumps(asdict(self)))


TYPES: dict[str, tuple[type, ...]] = {
    field.name: {
        "str": (str,),
        "int": (int,),
        "float": (int, float),
        "float | None": (int, float, type(None)),
        "int | None": (int, type(None)),
        "tuple[int, ...]": (list, tuple),
        "tuple[str, ...]": (list, tuple),
    }[str(field.type)]
    for field in fields(Config)
}

PRESETS = {
    # Three minutes on two cores.
    "quick": Config(),
    # An hour on two cores.
    "standard": Config(
        players=(3, 4, 5),
        games=96,
        batch_size=4096,
        gamma=0.995,
        gae_lambda=0.95,
        warm_share=0.05,
        seconds=3600.0,
        rate_every=240.0,
        rate_games=400,
    ),
    # Hours; repeatable. The shipped agent was made by settings like these, which its card names.
    "full": Config(
        width=384,
        players=(3, 4, 5),
        reward="shaped",
        reward_unit=1.0,
        gamma=0.999,
        gae_lambda=0.95,
        games=256,
        learning_rate=3e-4,
        entropy=0.01,
        warm_start="uct@2:150",
        warm_share=0.2,
        opponent_share=0.6,
        bots=("greedy", "planner", "uct@2:40"),
        pool=24,
        keep_every=20,
        seconds=None,
        decisions=12_000_000,
        temperature=0.1,
        rated=("greedy", "planner", "uct:100"),
        rate_every=900.0,
        rate_games=400,
        threads=1,
    ),
}


def read_config(source: str) -> Config:
    """A preset by its name, or a JSON file with fields that differ from those of "quick".

    ValueError when it is neither or holds a wrong field, OSError when the file cannot be read.
    """
    if source in PRESETS:
        return PRESETS[source]
    path = Path(source)
    if path.suffix != ".json":
        raise ValueError(f"unknown preset {source!r}; allowed: {', '.join(PRESETS)}, or FILE.json")
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise TypeError("it holds no object")
        return Config().changed(content)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def parse_settings(words: list[str]) -> dict[str, Any]:
    """Settings from words such as `seconds=60`; tuples are written with commas.

    ValueError names a word that is no setting.
    """
    settings: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in TYPES:
            raise ValueError(f"setting {word!r}; allowed: NAME=VALUE, NAME one of {[*TYPES]}")
        kinds = TYPES[name]
        try:
            if kinds == (str,):
                settings[name] = text
            elif tuple in kinds:
                words = [part for part in text.split(",") if part]
                settings[name] = tuple(int(w) for w in words) if name == "players" else tuple(words)
            else:
                settings[name] = kinds[-1](text) if type(None) not in kinds else kinds[-2](text)
        except ValueError as error:
            raise ValueError(f"setting {word!r}: {error}") from error
    return settings


def _fitting(name: str, value: Any) -> Any:
    if not isinstance(value, TYPES[name]) or isinstance(value, bool):
        allowed = " or ".join(kind.__name__ for kind in TYPES[name])
        raise ValueError(f"{name} is {value!r}; allowed: {allowed}")
    return tuple(value) if isinstance(value, list) else value
