"""Rules that differ between editions, as one frozen value."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from busenv.core.state import (
    MAX_PLAYERS,
    MAX_SPACES,
    NO_LIMIT,
    NUM_SPLITS,
    RULES,
    SINGLE,
    BoardAction,
)
from busenv.error_text import did_you_mean, quote
from busenv.io import is_int, read_json

# Allowed values of fields of Rules. The core's numbers of `sharing_again` are the indices.
CHOICES = {
    "line_sharing": ("final_segment", "line_end"),
    "sharing_again": ("never", "other_line", "always"),
    "extra_street": ("always", "with_power"),
}


@dataclass(frozen=True)
class Rules:
    """The rules of an edition. Change a field with `dataclasses.replace(EDITIONS[name], ...)`.

    action_markers: action markers of a player at the start, 1 to 255 (R4).
    line_markers: line markers by seat, 2 to 254 each; None for no limit (R10).
    bus_limit: the most buses that a player may have, 1 to 100 (R12).
    spaces: spaces of a multi-use action, 1 to 8 (R5).
    time_stones: stones on the clock with 3 players, and with 4 or 5; 1 to 100 each (R15).
    passengers: passengers in all, at most 11 of them in supply at the start, because an action id
        encodes how many of an arrival go to the first station (0 to 11).
    start_passengers: passengers in the city at the start, one by one on the roundabouts (R1).
    line_sharing: the streets of a line that others may share at its end (R9): "final_segment", the
        one by which it arrived, or "line_end", any.
    sharing_again: whether a line that has just run next to another may share at the next
        intersection (R9a): "never", "other_line" (with lines other than the one it ran next to), or
        "always".
    extra_street: with five players, the markers on Line Expansion that add one more street (R7):
        "always", or "with_power", those of power 1 or more.

    Raises ValueError, which names the field, for a value out of range.
    """

    action_markers: int = 20
    line_markers: tuple[int, ...] | None = (25, 25, 25, 25, 25)
    bus_limit: int = 5
    spaces: int = 6
    time_stones: tuple[int, int] = (4, 5)
    passengers: int = 15
    start_passengers: int = 4
    line_sharing: str = "final_segment"
    sharing_again: str = "other_line"
    extra_street: str = "always"

    def __post_init__(self) -> None:
        _check_int("action_markers", self.action_markers, 1, 255)
        _check_int("bus_limit", self.bus_limit, 1, 100)
        _check_int("spaces", self.spaces, 1, MAX_SPACES)
        _check_int("passengers", self.passengers, 0, 100)
        _check_int("start_passengers", self.start_passengers, 0, self.passengers)
        if self.passengers - self.start_passengers >= NUM_SPLITS:
            raise ValueError(
                f"Rules.passengers - Rules.start_passengers is "
                f"{self.passengers - self.start_passengers}; allowed: at most {NUM_SPLITS - 1}"
            )
        if self.line_markers is not None:
            _check_tuple("line_markers", self.line_markers, MAX_PLAYERS, 2, NO_LIMIT - 1)
        _check_tuple("time_stones", self.time_stones, 2, 1, 100)
        for name, allowed in CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"Rules.{name} is {quote(value)}; allowed: {allowed}")

    @property
    def name(self) -> str:
        """The name of the edition with these rules, or "custom"."""
        return next((name for name, rules in EDITIONS.items() if rules == self), "custom")

    def stones_for(self, num_players: int) -> int:
        """Return the number of time stones at the start (R1)."""
        return self.time_stones[0 if num_players == 3 else 1]

    def spaces_of(self, action: int) -> int:
        """Return the number of spaces of an action (`busenv.BoardAction`) (R5)."""
        return 1 if action in SINGLE else self.spaces

    def power(self, action: int, *, num_players: int, most_buses: int, space: int) -> int:
        """Return the power of a marker, at least 0 (R7).

        action: as for `spaces_of`. most_buses: of any player. space: 0 for A, 1 for B, and so on.
        """
        power = most_buses - space
        if action == BoardAction.LINE_EXPANSION and num_players == 5:
            power += power > 0 or self.extra_street == "always"
        return max(power, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Rules:
        """Make rules from the value of `to_dict`; ValueError names a missing or unknown field."""
        names = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(fields, dict) or set(fields) != names:
            wrong = sorted(names ^ set(fields)) if isinstance(fields, dict) else fields
            raise ValueError(f"rules with missing or unknown fields: {quote(wrong)}")
        return cls(**_plain(fields))

    def record(self, num_players: int) -> np.ndarray:
        """Return the rules for a number of players for kernels: RULES, (1,)."""
        record = np.zeros(1, RULES)
        record["line_markers"] = self.line_markers or NO_LIMIT
        record["action_markers"] = self.action_markers
        record["bus_limit"] = self.bus_limit
        record["spaces"] = self.spaces
        record["time_stones"] = self.stones_for(num_players)
        record["passengers"] = self.passengers
        record["start_passengers"] = self.start_passengers
        record["final_segment"] = self.line_sharing == "final_segment"
        record["sharing_again"] = CHOICES["sharing_again"].index(self.sharing_again)
        record["extra_needs_power"] = self.extra_street == "with_power"
        record["players"] = num_players
        return record


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Replace the lists of JSON fields by tuples."""
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }


def _check_int(name: str, value: object, low: int, high: int) -> None:
    if not is_int(value, low, high):
        raise ValueError(f"Rules.{name} is {quote(value)}; allowed: a whole number {low} to {high}")


def _check_tuple(name: str, value: object, length: int, low: int, high: int) -> None:
    if not isinstance(value, tuple) or len(value) != length:
        raise ValueError(f"Rules.{name} is {quote(value)}; allowed: a tuple of {length} numbers")
    for entry in value:
        _check_int(name, entry, low, high)


EDITIONS: dict[str, Rules] = {
    "capstone-2024": Rules(),
    "capstone-2019": Rules(line_sharing="line_end", sharing_again="never"),
    "splotter-1999": Rules(
        line_markers=(28, 28, 28, 18, 18),
        bus_limit=20,
        line_sharing="line_end",
        sharing_again="never",
    ),
    "condensed": Rules(
        line_markers=None,
        bus_limit=20,
        line_sharing="line_end",
        sharing_again="always",
        extra_street="with_power",
    ),
}


def as_rules(rules: str | Path | Rules | dict[str, Any]) -> Rules:
    """Return rules given by the name of an edition, the path of a JSON file, or as rules.

    A dict is the value of `Rules.to_dict`, as in a recorded `gymnasium.envs.registration.EnvSpec`.
    Raises ValueError, which names what is allowed, or what is wrong in the file (`load_rules`).
    """
    if isinstance(rules, Rules):
        return rules
    if isinstance(rules, dict):
        return Rules.from_dict(rules)
    if isinstance(rules, str) and rules in EDITIONS:
        return EDITIONS[rules]
    if isinstance(rules, (str, Path)) and os.path.isfile(rules):
        return load_rules(rules)
    if str(rules).endswith(".json"):
        raise ValueError(f"rules are {str(rules)!r}, but there is no such file")
    raise ValueError(
        f"unknown rules {quote(rules)}; allowed: a Rules value, the path of a JSON file, or one of "
        f"{[*EDITIONS]}{did_you_mean(str(rules), EDITIONS)}"
    )


def load_rules(path: str | Path) -> Rules:
    """Load rules from a JSON file: an object with the fields of `Rules` to change.

    The other fields are those of the edition under "edition", capstone-2024 by default:

        {"edition": "splotter-1999", "bus_limit": 5, "time_stones": [3, 4]}

    Raises ValueError, which names the file and the wrong field; OSError for a missing file.
    """
    changes = read_json(path)
    if not isinstance(changes, dict):
        raise ValueError(f"{path}: rules are a JSON object, not {type(changes).__name__}")
    edition = changes.pop("edition", "capstone-2024")
    if not isinstance(edition, str) or edition not in EDITIONS:
        raise ValueError(
            f"{path}: edition is {quote(edition)}; allowed: {[*EDITIONS]}"
            f"{did_you_mean(str(edition), EDITIONS)}"
        )
    names = [field.name for field in dataclasses.fields(Rules)]
    for key in changes:
        if key not in names:
            raise ValueError(
                f"{path}: rules have no field {quote(key)}; allowed: edition, {', '.join(names)}"
                f"{did_you_mean(key, names)}"
            )
    try:
        return dataclasses.replace(EDITIONS[edition], **_plain(changes))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def check_players(num_players: int) -> int:
    """Return the number of players, 3 to 5, as an int; else raise ValueError (R1)."""
    if not isinstance(num_players, (int, np.integer)) or num_players not in (3, 4, 5):
        raise ValueError(f"num_players is {quote(num_players)}; allowed: 3, 4 or 5")
    return int(num_players)


def player_counts(num_players: int | Sequence[int]) -> list[int]:
    """Return one number of players, or several to draw from, as a list."""
    counts = [*num_players] if isinstance(num_players, Iterable) else [num_players]
    if not counts:
        raise ValueError("num_players is empty; allowed: 3, 4 or 5, or several of them")
    return [check_players(count) for count in counts]
