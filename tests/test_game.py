"""The face of a game: names, errors, copies, bytes, records."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

import busenv
from busenv import EDITIONS, Game, IllegalActionError, Phase, RecordError, Rules
from busenv.files import write_whole


def played(seed: int = 5, plies: int = 10_000, **setup: object) -> Game:
    rng = random.Random(seed)
    game = Game(seed=seed, **setup)  # type: ignore[arg-type]
    while not game.is_over and len(game.history) < plies:
        game.step(rng.choice(game.legal_actions()))
    return game


def test_names_of_the_contract() -> None:
    game = Game()
    assert game.num_players == 4
    assert game.rules == EDITIONS["capstone-2024"]
    assert game.phase is Phase.SETUP_BUILDINGS
    assert " ".join(phase.name for phase in Phase) == (
        "SETUP_BUILDINGS SETUP_FIRST_LINE SETUP_SECOND_LINE SELECT_ACTIONS LINE_EXPANSION "
        "PASSENGERS BUILDINGS CLOCK PICK_UP SET_DOWN OVER"
    )
    mask = game.action_mask()
    assert mask.shape == (375,)
    assert mask.dtype == np.bool_
    assert game.legal_actions() == np.flatnonzero(mask).tolist()
    assert game.deliveries == game.time_stones == game.points == [0, 0, 0, 0]
    assert game.history == []
    assert not game.is_over


def test_results_are_plain_lists_of_ints() -> None:
    game = played()
    for values in (game.deliveries, game.time_stones, game.points, game.ranking(), game.history):
        assert isinstance(values, list)
        assert all(type(value) is int for value in values)
    assert type(game.current_player) is int
    assert type(game.round) is int
    assert type(game.is_over) is bool


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (0, "place marker on Line Expansion"),
        (5, "place marker on Vrrooomm!"),
        (7, "pass"),
        (8 + 3 * 0 + 2, "erect pub at intersection 9, zone 1"),
        (8 + 3 * 46 + 1, "erect office at intersection 35, zone 4"),
        (149 + 2 * 33 + 0, "grow line 14→20"),
        (149 + 2 * 33 + 1, "grow line 20→14"),
        (289 + 3, "passengers: 3 to the station at 10, the rest to 25"),
        (301, "let time advance"),
        (302, "stop time"),
        (303 + 35, "pick up a passenger at intersection 35"),
        (339, "set the passenger down at intersection 0"),
        (374, "set the passenger down at intersection 35"),
    ],
)
def test_describe(action: int, words: str) -> None:
    assert Game().describe(action) == words


def test_every_action_has_its_own_words() -> None:
    game = Game()
    words = [game.describe(action) for action in range(375)]
    # Sites of one intersection and zone read alike: 14, 15, 20 and 21 have two each in zone 1.
    assert len(set(words)) == 375 - 3 * 4


@pytest.mark.parametrize("action", [375, -1, 10**30, -(10**30), 7, 289, 374])
def test_illegal_actions_name_themselves_and_change_nothing(action: int) -> None:
    game = Game(first_player=2)
    before = game.to_bytes(), game.position()
    with pytest.raises(IllegalActionError, match=rf"action {action}.*seat 2.*SETUP_BUILDINGS"):
        game.step(action)
    assert (game.to_bytes(), game.position()) == before


def test_after_the_end_nothing_is_legal() -> None:
    game = played()
    assert game.is_over
    assert game.phase is Phase.OVER
    assert game.legal_actions() == []
    assert not game.action_mask().any()
    with pytest.raises(IllegalActionError, match="OVER"):
        game.step(0)


def test_numpy_actions_are_actions_and_others_are_not() -> None:
    game = Game(seed=1)
    game.step(np.int64(8))
    assert game.history == [8]
    for wrong in (11.0, "11", None):
        with pytest.raises(TypeError):
            game.step(wrong)  # type: ignore[arg-type]
    assert game.history == [8]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_players": 2}, "num_players is 2; allowed: 3, 4 or 5"),
        ({"num_players": "4"}, "num_players"),
        ({"num_players": 4.0}, "num_players is 4.0"),
        ({"first_player": 1.0}, "first_player is 1.0"),
        ({"rules": "capstone"}, "unknown rules 'capstone'; allowed.*capstone-2024"),
        ({"rules": None}, "unknown rules None"),
        ({"first_player": 4}, "first_player is 4; allowed: 0 to 3"),
        ({"first_player": -1}, "first_player"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": 2**64}, "seed"),
    ],
)
def test_wrong_setup_is_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Game(**wrong)


def test_unknown_board_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"no board 'town'.*city"):
        Game(board="town")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action_markers", 0),
        ("action_markers", 256),
        ("action_markers", 2.0),
        ("line_markers", (25,) * 4),
        ("line_markers", (1,) * 5),
        ("line_markers", 25),
        ("bus_limit", 0),
        ("spaces", 9),
        ("time_stones", (4,)),
        ("time_stones", (0, 5)),
        ("passengers", 16),
        ("passengers", True),
        ("start_passengers", 16),
        ("line_sharing", "never"),
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


def test_clone_is_independent() -> None:
    game = played(plies=60)
    twin = game.clone()
    before = game.position(), game.history
    while not twin.is_over:
        twin.step(twin.legal_actions()[-1])
    assert (game.position(), game.history) == before
    assert twin.history[:60] == game.history
    game.step(game.legal_actions()[0])
    assert twin.is_over


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copy_deepcopy_and_pickle(duplicate) -> None:  # type: ignore[no-untyped-def]
    game = played(plies=70, num_players=5, rules="condensed")
    twin = duplicate(game)
    assert twin.position() == game.position()
    assert twin.history == game.history
    assert twin.seed == game.seed
    twin.step(twin.legal_actions()[0])
    assert len(game.history) == 70


def test_repr_reads_well() -> None:
    assert repr(Game(3, first_player=1)) == (
        "<Bus, 3 players, capstone-2024, city: round 0, ply 0, points [0, 0, 0], "
        "seat 1 to decide SETUP_BUILDINGS>"
    )
    assert "over (markers), winner seat" in repr(played())


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


def test_bytes_that_are_off_are_refused() -> None:
    data = played(plies=50).to_bytes()
    for position in range(len(data)):
        damaged = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        with pytest.raises(RecordError):
            Game.from_bytes(damaged)
    for length in range(len(data)):
        with pytest.raises(RecordError):
            Game.from_bytes(data[:length])
    with pytest.raises(RecordError, match="version 2; this busenv reads 1"):
        Game.from_bytes(data.replace(b"BUSENV\0\1", b"BUSENV\0\2", 1))


def other_board(tmp_path) -> str:  # type: ignore[no-untyped-def]
    data = json.loads((busenv.board.BOARDS / "city.json").read_text())
    data["streets"].pop()
    data["name"] = "smaller city"
    path = tmp_path / "smaller.json"
    path.write_text(json.dumps(data))
    return str(path)


def test_another_board_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = other_board(tmp_path)
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
    assert data["version"] == 1
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
        (lambda d: d["actions"].__setitem__(3, 70_000), r"actions\[3\]"),
        (lambda d: d["result"].__setitem__("points", [9, 9, 9, 9]), "the result is"),
        (lambda d: d.__setitem__("result", None), "the result is"),
        (lambda d: d.__setitem__("version", 2), "version 2"),
        (lambda d: d.__setitem__("format", "chess"), "not a game record"),
        (lambda d: d.__setitem__("players", 6), "num_players is 6"),
        (lambda d: d.__setitem__("first_player", 4), "first_player is 4"),
        (lambda d: d.__setitem__("seed", -4), "seed is -4"),
        (lambda d: d.__setitem__("actions", {}), "must be a list"),
        (lambda d: d.__setitem__("board", "city"), "board is 'city'"),
        (lambda d: d["rules"].pop("spaces"), "spaces"),
        (lambda d: d["rules"].__setitem__("spaces", 99), "spaces is 99"),
        (lambda d: d.pop("seed"), "seed"),
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
    with pytest.raises(RecordError, match="not a game record"):
        Game.load(path)


@pytest.mark.parametrize("wrong", [{"games": -1}, {"num_players": 6}, {"rules": "x"}, {"seed": -1}])
def test_wrong_playouts_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="allowed"):
        busenv.random_playouts(**{"games": 3, **wrong})


def test_no_playouts() -> None:
    result = busenv.random_playouts(0)
    assert (result.games, result.decisions, result.rounds) == (0, 0, 0)


def test_files_keep_their_mode_and_their_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]
