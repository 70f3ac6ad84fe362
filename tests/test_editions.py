"""Rules as values, by name, and from files."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busenv import EDITIONS, Game, Rules, load_rules
from busenv.core.rules.resolve import power_of
from busenv.core.state import GAME, BoardAction
from busenv.game.rules import as_rules


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action_markers", 0),
        ("line_markers", (1,) * 5),
        ("line_markers", 25),
        ("bus_limit", 0),
        ("spaces", 9),
        ("time_stones", (0, 5)),
        ("passengers", 16),
        ("start_passengers", 16),
        ("line_sharing", "never"),
        ("sharing_again", "line_end"),
        ("extra_street", True),
    ],
)
def test_wrong_rules_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"Rules\.{field}.*allowed"):
        dataclasses.replace(EDITIONS["capstone-2024"], **{field: value})  # type: ignore[arg-type]


def test_rules_are_frozen_and_named() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rules().spaces = 7  # type: ignore[misc]
    assert Rules().name == "capstone-2024"
    assert Rules(spaces=7).name == "custom"
    assert Rules.from_dict(Rules(line_markers=None).to_dict()) == Rules(line_markers=None)


def write(folder: Path, content: Any) -> Path:
    path = folder / "rules.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_rules_from_a_file_change_an_edition(tmp_path: Path) -> None:
    path = write(tmp_path, {"edition": "splotter-1999", "bus_limit": 3, "time_stones": [2, 3]})
    rules = dataclasses.replace(EDITIONS["splotter-1999"], bus_limit=3, time_stones=(2, 3))
    assert load_rules(path) == as_rules(path) == as_rules(str(path)) == rules
    assert Game(3, rules=path).rules == rules
    assert load_rules(write(tmp_path, {})) == EDITIONS["capstone-2024"]
    assert load_rules(write(tmp_path, {"line_markers": None})).line_markers is None
    for rules in (*EDITIONS.values(), Rules(spaces=3, passengers=9)):
        assert load_rules(write(tmp_path, rules.to_dict())) == rules


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "rules.json is not JSON text"),
        ("[" * 100_000, "rules.json is not JSON text"),
        ([], "rules.json: rules are a JSON object, not list"),
        ({"edition": "capstone"}, "edition is 'capstone'.*did you mean 'capstone-2024'"),
        ({"bus_limits": 3}, "no field 'bus_limits'; allowed: edition,.*mean 'bus_limit'"),
        ({"bus_limit": 0}, r"rules.json: Rules\.bus_limit is 0; allowed: a whole number 1 to 100"),
        ({"passengers": 30}, r"Rules\.passengers - Rules\.start_passengers is 26"),
    ],
)
def test_a_file_of_wrong_rules_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        as_rules(write(tmp_path, content))


def test_a_name_that_is_nearly_right_is_hinted_at() -> None:
    with pytest.raises(ValueError, match="did you mean 'condensed'"):
        as_rules("condenced")
    with pytest.raises(ValueError, match=r"unknown rules 'chess'.*'condensed'\]$"):
        as_rules("chess")
    with pytest.raises(FileNotFoundError):
        load_rules("no-such-file.json")
    with pytest.raises(ValueError, match=r'unknown rules .\{"edition"'):  # the text of a file
        as_rules(json.dumps({"edition": "condensed", **Rules().to_dict()}))


def test_spaces_and_stones_of_an_edition() -> None:
    rules = Rules(spaces=4, time_stones=(2, 7))
    assert [rules.spaces_of(action) for action in BoardAction] == [4, 1, 4, 4, 1, 4, 1]
    assert [rules.stones_for(players) for players in (3, 4, 5)] == [2, 7, 7]


@pytest.mark.parametrize("extra_street", ["always", "with_power"])
def test_rules_power_equals_the_compiled_one(extra_street: str) -> None:
    rules, game = Rules(extra_street=extra_street), np.zeros(1, GAME)
    game["extra_needs_power"] = extra_street == "with_power"
    for players, buses, space in itertools.product((3, 4, 5), range(1, 6), range(6)):
        game["players"], game["max_buses"] = players, buses
        for action in BoardAction:
            power = rules.power(action, num_players=players, most_buses=buses, space=space)
            assert power == power_of(game[0], action.value, space)
