"""Records of games: JSON text, bytes, and replay."""

import dataclasses
import json
from pathlib import Path

import pytest

from busenv import EDITIONS, Game, RecordError, Rules
from busenv.io import write_whole
from tests.support.play import played
from tests.support.worlds import write_town


@pytest.mark.parametrize("plies", [0, 1, 33, 10_000])
@pytest.mark.parametrize("rules", [*EDITIONS, Rules(spaces=3, line_markers=None, bus_limit=9)])
def test_bytes_and_records_round_trip(plies: int, rules: str | Rules, tmp_path) -> None:  # type: ignore[no-untyped-def]
    game = played(seed=plies, plies=plies, rules=rules, num_players=3)
    game.save(tmp_path / "game.json")
    for twin in (Game.from_bytes(game.to_bytes()), Game.load(tmp_path / "game.json")):
        assert twin.position() == game.position()
        assert twin.history == game.history
        assert (twin.rules, twin.seed, twin.first_player) == (
            game.rules,
            game.seed,
            game.first_player,
        )
        assert twin.to_bytes() == game.to_bytes()
        assert twin.legal_actions() == game.legal_actions()


def test_damaged_bytes_are_refused() -> None:
    data = played(plies=50).to_bytes()
    for position in range(len(data)):
        damaged = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        with pytest.raises(RecordError):
            Game.from_bytes(damaged)
    for length in range(len(data)):
        with pytest.raises(RecordError):
            Game.from_bytes(data[:length])
    with pytest.raises(RecordError, match="version 1; this busenv reads 2"):
        Game.from_bytes(data.replace(b"BUSENV\0\2", b"BUSENV\0\1", 1))


def test_another_board_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = write_town(tmp_path / "smaller city.json")
    game = played(board=path)
    with pytest.raises(RecordError, match=r"played on board 'smaller city'.*not on 'city'"):
        Game.from_bytes(game.to_bytes())
    with pytest.raises(RecordError, match="not on 'smaller city'"):
        Game.from_bytes(played().to_bytes(), board=path)
    assert Game.from_bytes(game.to_bytes(), board=path).points == game.points


def test_records_are_small_readable_json(tmp_path) -> None:  # type: ignore[no-untyped-def]
    game = played()
    game.save(tmp_path / "game.json")
    data = json.loads((tmp_path / "game.json").read_text())
    assert data["format"] == "busenv-game"
    assert data["version"] == 2
    assert data["actions"] == game.history
    assert data["result"]["ranking"] == game.ranking()
    assert data["result"]["points"] == game.points
    assert (tmp_path / "game.json").stat().st_size < 4000
    assert played(plies=9).record().result is None
    assert [path.name for path in tmp_path.iterdir()] == ["game.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["actions"].__setitem__(21, 374), r"ply 21: action 374.*illegal.*phase"),
        (lambda d: d["actions"].append(0), r"ply \d+: action 0.*OVER"),
        (lambda d: d["actions"].__setitem__(3, "8"), r"actions\[3\]"),
        (lambda d: d["result"].__setitem__("points", [9, 9, 9, 9]), "the result is"),
        (lambda d: d.__setitem__("version", 1), "version 1"),
        (lambda d: d.__setitem__("format", "chess"), "not a game record"),
        (lambda d: d.__setitem__("players", 6), "players is 6; allowed: 3, 4 or 5"),
        (lambda d: d.__setitem__("first_player", 4), "first_player is 4"),
        (lambda d: d.__setitem__("actions", {}), "must be a list"),
        (lambda d: d.__setitem__("board", "city"), "board is 'city'"),
        (lambda d: d["rules"].pop("spaces"), "spaces"),
        (lambda d: d.__setitem__("note", 1), "note"),
    ],
)
def test_a_wrong_record_is_refused(change, message: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    data = played().record().to_dict()
    data = json.loads(json.dumps(data))
    change(data)
    path = tmp_path / "game.json"
    path.write_text(json.dumps(data))
    with pytest.raises(RecordError, match=message):
        Game.load(path)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "3", "[" * 100_000])
def test_text_that_is_no_record_is_refused(text: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "game.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"game\.json.*not a game record"):
        Game.load(path)


def test_replaying_goes_through_every_decision_and_to_the_end() -> None:
    played_game = played(num_players=5, rules="condensed")
    history = []
    for game, action in Game.replay(played_game.record()):
        assert game.history == history
        assert action in game.legal_actions()
        history.append(action)
    assert history == game.history == played_game.history
    assert game.is_over
    assert game.position() == played_game.position()


def test_replaying_part_of_a_game() -> None:
    part = played(plies=20).record()
    *_, (game, last) = Game.replay(part)
    assert game.history == [*part.actions]
    assert last == part.actions[-1]
    nothing = dataclasses.replace(part, actions=())
    assert [*Game.replay(nothing)] == []
    assert Game.begin_record(nothing).history == []


def test_a_replay_stops_where_the_record_is_wrong(tmp_path) -> None:  # type: ignore[no-untyped-def]
    record = played().record()
    wrong = dataclasses.replace(record, actions=(*record.actions[:21], 374))
    seen = []
    with pytest.raises(RecordError, match=r"record: ply 21: action 374.*is illegal for seat"):
        seen.extend(action for _, action in Game.replay(wrong))
    assert seen == [*wrong.actions]
    false_result = dataclasses.replace(record, result={**(record.result or {}), "points": [9] * 4})
    with pytest.raises(RecordError, match="the result is"):
        [*Game.replay(false_result)]
    with pytest.raises(RecordError, match="not on 'smaller city'"):
        next(Game.replay(record, write_town(tmp_path / "smaller city.json")))


def test_files_keep_their_mode_and_their_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    longest = tmp_path / ("x" * 255)
    write_whole(longest, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target", longest.name]


def test_errors_of_files_name_the_file_itself(tmp_path: Path) -> None:
    (file := tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file/x'$"):
        write_whole(file / "x", "new")
