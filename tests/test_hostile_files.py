"""Damaged and malicious files are refused with a one-line message.

Tests marked `often` try 1,000 files or more; the slow variants try a hundred times as many.
"""

import contextlib
import dataclasses
import io
import json
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import busenv
from busenv import BoardError, Game, Record, RecordError, cli, load_board
from busenv.common.console import TextTable
from busenv.common.runs import SETTINGS, RunError, store_settings
from busenv.error_text import printable
from busenv.evaluation.game_log import GAMES, read_games
from busenv.evaluation.narration import load_recorded_game
from busenv.game.board import BOARDS
from busenv.game.rules import load_rules
from busenv.io import LARGEST
from busenv.schema import Schema, parse
from busenv.train.config_files import read_config
from tests.support.mutate import as_text, damaged, mutated
from tests.support.play import played
from tests.support.ratings import forfeited, rated_game

often = pytest.mark.parametrize("tries", [1000, pytest.param(100_000, marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """Two rated games, the second forfeited."""
    return [rated_game(7), forfeited(rated_game(8), plies=30, number=8)]


def outcome(read: Callable[[Any], Any], content: Any) -> tuple[Any, str]:
    """Return what is read, or the message of the refusal; fail for any other error."""
    try:
        return read(content), ""
    except ValueError as error:
        refusal = error
    assert type(refusal) in (RunError, RecordError, BoardError, ValueError)
    return None, str(refusal)


LIES = {  # a change of a line, and the message
    "ranking": (lambda line: line["ranking"].__setitem__(0, 7), "do not fit 3 seats"),
    "seats": (lambda line: line["points"].append(1), "do not fit 3 seats"),
    "negative": (lambda line: line.__setitem__("number", -5), "number is -5; input should be"),
    "half": (lambda line: line.__setitem__("number", 0.5), "number is 0.5; input should be"),
    "time": (lambda line: line["seconds"].__setitem__(1, float("nan")), "seconds.1 is "),
    "key": (lambda line: line.pop("forfeit"), "forfeit is missing"),
}


@pytest.mark.parametrize("change", LIES)
def test_false_games_are_reported_with_file_and_line(
    lines: list[dict[str, Any]], tmp_path: Path, change: str
) -> None:
    lie = json.loads(json.dumps(lines[0]))
    LIES[change][0](lie)
    path = tmp_path / GAMES
    path.write_bytes(as_text(lines[1]) + as_text(lie))
    with pytest.raises(
        RunError, match=f"{GAMES}, line 2, is damaged: .*{LIES[change][1]}"
    ) as error:
        read_games(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (Game.load, RecordError),
        (load_board, BoardError),
        (load_rules, ValueError),
        (load_recorded_game, RecordError),
    ],
)
@pytest.mark.parametrize("beginning", [b"", b'{"actions": [' + b"1," * LARGEST], ids=["", "list"])
def test_files_beyond_the_limit_are_refused_before_they_are_parsed(
    tmp_path: Path, read: Callable[[Any], Any], error: type[ValueError], beginning: bytes
) -> None:
    """Of 100 MB, only the first part is read."""
    path = tmp_path / "big.json"
    path.write_bytes(beginning)
    os.truncate(path, 100_000_000)
    tracemalloc.start()
    with pytest.raises(error, match=r"big\.json is larger than 16,777,216 bytes, the most"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 3 * LARGEST
    tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_json_files_may_have_a_byte_order_mark(encoding: str, tmp_path: Path) -> None:
    """Settings, the settings of a run, and a typed value such as a model's card."""
    path = tmp_path / SETTINGS
    path.write_text('{"width": 96}', encoding=encoding)
    assert read_config(str(path)).width == 96
    store_settings(tmp_path, {"width": 96})

    class Card(Schema):
        width: int

    assert parse(Card, path.read_bytes()).width == 96


HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\n\x9b31m\u202e\ud800"
ESCAPED = r"\x1b[2J\x1b]0;owned\x07\r\n\x9b31m\u202e\ud800"


def test_control_characters_of_files_do_not_reach_the_terminal(
    lines: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Texts of a board, two records and a games file, shown, listed and refused."""
    path, board, record = tmp_path / GAMES, tmp_path / "map.json", tmp_path / "game.json"
    city = json.loads((BOARDS / "city.json").read_text())
    board.write_text(json.dumps({**city, "name": HOSTILE}))
    played(seed=1).save(record)
    shown = HOSTILE[:-1]  # a games file with the lone surrogate is refused
    loser = {**lines[1]["forfeit"], "why": shown}
    games = [{**line, "agents": [shown] * 3} for line in lines]
    path.write_bytes(as_text(games[0]) + as_text({**games[1], "forfeit": loser}))
    wrong = {**json.loads(record.read_text()), "board": {"name": HOSTILE, "fingerprint": HOSTILE}}
    (tmp_path / "other.json").write_text(json.dumps(wrong))
    for key in ("players", "rules", "actions", HOSTILE):
        (tmp_path / f"{key[0]}.json").write_text(json.dumps({**wrong, key: HOSTILE}))
    tried = 0
    for words in (
        ["show", str(record), "--board", str(board)],
        ["show", str(path)],
        ["show", f"{path}:7"],
        ["show", f"{path}:8"],
        *(["show", str(file)] for file in (tmp_path / "other.json", *tmp_path.glob("?.json"))),
        ["rate", "random", f"exec:{HOSTILE[:-1]}"],
    ):
        with contextlib.suppress(SystemExit):
            cli.main(words)
        text = "".join(capsys.readouterr())
        assert all(letter.isprintable() for letter in text.replace("\n", ""))
        tried += r"\x1b" in text
    assert tried == 9
    console = Console(width=200, file=io.StringIO(), record=True)
    TextTable(HOSTILE, ["agent", "won\n95%"], [[HOSTILE, "1"]]).show(console)
    text = console.export_text()
    assert text.count(ESCAPED.split("\\r")[0]) == 2  # title and cell, each on one line
    assert all(letter.isprintable() for letter in text.replace("\n", ""))
    assert printable(HOSTILE) == ESCAPED
    assert printable("naïve → 日本 [x] #2") == "naïve → 日本 [x] #2"


def games_to_record() -> list[Game]:
    """Return a finished game, a running one, and one that began in a position."""
    begun = Game.from_position(played(num_players=5, seed=2, plies=90).position())
    begun.step(begun.legal_actions()[0])
    return [played(num_players=3, seed=1), played(seed=2, plies=40, rules="condensed"), begun]


def same_record(game: Game, content: dict[str, Any]) -> bool:
    """Return whether a game equals a record, apart from the board's name."""
    records = [json.loads(json.dumps(record)) for record in (game.record().to_dict(), content)]
    for record in records:
        record["board"]["name"] = ""
    return json.dumps(records[0], sort_keys=True) == json.dumps(records[1], sort_keys=True)


@often
def test_changed_records_are_refused_or_read_as_written(tries: int) -> None:
    rng = random.Random(3)
    contents = [json.loads(game.record().to_json()) for game in games_to_record()]
    refused = 0
    for _ in range(tries):
        changed = mutated(rng.choice(contents), rng)
        text = json.dumps(changed)
        game, refusal = outcome(lambda text: Game.from_record(Record.from_json(text)), text)
        assert refusal or same_record(game, changed)
        refused += bool(refusal)
    assert refused > 0.8 * tries


@often
def test_changed_boards_are_refused_or_read_as_written(tries: int, tmp_path: Path) -> None:
    """Accepted boards equal their file and can be played on."""
    rng = random.Random(5)
    city, path = json.loads((BOARDS / "city.json").read_text()), tmp_path / "map.json"
    accepted = 0
    for _ in range(tries):
        changed = mutated(city, rng)
        text = as_text(changed) if rng.random() < 0.8 else damaged(as_text(city), rng)
        path.write_bytes(text)
        board, refusal = outcome(load_board, path)
        if not refusal:
            content = json.loads(text)
            assert board.streets == tuple(map(tuple, content["streets"]))
            assert [(s.intersection, s.zone) for s in board.sites] == [
                (site["intersection"], site["zone"]) for site in content["sites"]
            ]
            assert [dataclasses.astuple(entry) for entry in board.intersections] == [
                tuple(entry[key] for key in ("x", "y", "roundabout", "train_station"))
                for entry in content["intersections"]
            ]
            assert busenv.random_playouts(1, board=board, seed=accepted).decisions > 0
            accepted += 1
    assert 0.1 * tries < accepted < 0.9 * tries
