"""Generated boards: the same for ever, well shaped, and named by specs in every place."""

import collections
import dataclasses
import hashlib
import json
import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import busenv
from busenv import Board, BoardError, Game, RecordError, generate_board, load_board
from busenv.core import map_geometry
from busenv.core.map_generation import CLEARANCE, LONGEST, SPACING
from busenv.evaluation.narration import load_recorded_game
from busenv.game import board_generator
from busenv.game.board import make_board
from busenv.game.board_generator import SIZES
from busenv.game.board_specs import BoardSet, as_boards, sizes_of

# SHA-256 of the boards of seeds 0 to 99, with coordinates. Another digest is another version.
DIGESTS = {
    "small": "d6c282308d2c54bdb91680a408fddc609901173c39b98d66b2262824a53f904d",
    "medium": "474d4f407bbaec8679030ca881a112a0a31b682fff341f1a35a5f3a7ed1dc425",
    "city": "4f756ccca442ec7a6f1cff73a1cef705fe1a7faf7ce162a5c634d7f7ae6d433b",
    "large": "4e37a1c2b834becf5425570380bc175587dc4987eabf20882d2930bc738b07e9",
}


@cache
def sample() -> list[Board]:
    return [generate_board(seed, size) for size in SIZES for seed in range(25)]


def as_data(board: Board) -> dict:
    return {
        "name": board.name,
        "intersections": [
            {"id": i, **dataclasses.asdict(entry)} for i, entry in enumerate(board.intersections)
        ],
        "streets": [[*ends] for ends in board.streets],
        "sites": [{"id": i, **dataclasses.asdict(site)} for i, site in enumerate(board.sites)],
    }


@pytest.mark.parametrize("size", SIZES)
def test_a_version_of_the_generator_never_changes(size: str) -> None:
    assert board_generator.GENERATOR_VERSION == 1
    boards = [as_data(generate_board(seed, size)) for seed in range(100)]
    assert hashlib.sha256(json.dumps(boards).encode()).hexdigest() == DIGESTS[size]


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: str) -> None:
    numbers = SIZES[size]
    for board in (board for board in sample() if board.name.split(":")[1] == size):
        assert sizes_of(board) == (numbers.intersections, numbers.streets, sum(numbers.zones))
        zones = collections.Counter(site.zone for site in board.sites)
        assert tuple(zones[zone] for zone in (1, 2, 3, 4)) == numbers.zones
    city = load_board("city")
    assert sizes_of(generate_board(2**64 - 1)) == sizes_of(city)
    assert generate_board(0).num_actions == city.num_actions


def test_generated_boards_are_valid() -> None:
    for board in sample():
        assert make_board(as_data(board)).fingerprint == board.fingerprint


def test_streets_are_straight_and_do_not_cross() -> None:
    for board in sample()[::5]:
        points = np.array([(i.x, i.y) for i in board.intersections], np.int64)
        for a, b in board.streets:
            assert SPACING - 20 <= math.dist(points[a], points[b]) <= LONGEST or {a, b} <= {
                i for i, entry in enumerate(board.intersections) if entry.roundabout
            }
            for i in {*range(len(points))} - {a, b}:
                assert not map_geometry.is_near(points, a, b, i, CLEARANCE)
        for one, other in combinations(board.streets, 2):
            if not {*one} & {*other}:
                assert not map_geometry.crosses(points, *one, *other)


def test_specs() -> None:
    board = load_board("generated:city:7")
    assert board is load_board("generated:city:7") is generate_board(7)
    assert (board.name, board.generator) == ("generated:city:7", 1)
    game = Game(board="generated:small:3", seed=1)
    assert game.board.name == "generated:small:3"
    assert busenv.random_playouts(2, board="generated:small:3").decisions > 0
    boards = as_boards("generated:small:test:3")
    assert [one.name for one in boards] == [f"generated:small:{2 * 10**9 + k}" for k in range(3)]
    assert boards.array["tag"].tolist() == [int(one.fingerprint[:8], 16) for one in boards]
    assert len(as_boards("generated:small:validation")) == 1000
    assert as_boards(boards) is boards
    assert len(as_boards("city")) == len(as_boards(board)) == 1
    assert len(as_boards(["city", board])) == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("generated:town:7", "no size 'town' .* allowed: small, medium, city, large"),
        ("generated:citty:7", "did you mean 'city'"),
        ("generated:city", "generated:city:SPLIT with one of train, .* and a seed 0 to 2"),
        (f"generated:city:{2**64}", "a seed 0 to 2\\*\\*64 - 1"),
        ("generated:city:tset", "one of train, validation, test"),
        ("generated:city:test:1001", "'1001' boards; allowed: 1 to 1000"),
        ("generated:city:train", "is a set of boards, and one board is needed here"),
    ],
)
def test_specs_that_name_no_board(spec: str, message: str) -> None:
    with pytest.raises(BoardError, match=message):
        Game(board=spec)


def test_wrong_seeds_and_sets() -> None:
    for seed in (-1, 2**64, 1.5, "7"):
        with pytest.raises(ValueError, match="allowed: a whole number 0 to"):
            generate_board(seed)  # type: ignore[arg-type]
    with pytest.raises(BoardError, match="no size 'huge'"):
        generate_board(1, "huge")
    with pytest.raises(BoardError, match=r"different sizes .*: .*'city'.*'generated:small:1'"):
        BoardSet(["city", "generated:small:1"])
    for wrong in ([], {"a": 1}, "city"):
        with pytest.raises(BoardError, match="allowed: one board or more in a list"):
            BoardSet(wrong)  # type: ignore[arg-type]


def test_a_record_finds_its_board(tmp_path) -> None:  # type: ignore[no-untyped-def]
    game = Game(3, board="generated:small:5", seed=1)
    while not game.is_over:
        game.step(game.legal_actions()[0])
    game.save(tmp_path / "game.json")
    assert game.record().board["generator"] == 1
    for twin in (
        Game.load(tmp_path / "game.json"),
        Game.from_bytes(game.to_bytes()),
        load_recorded_game(tmp_path / "game.json").end(),
    ):
        assert twin.position() == game.position()
        assert twin.board is game.board
    with pytest.raises(RecordError, match=r"'generated:small:5' .* not on 'city'"):
        Game.load(tmp_path / "game.json", "city")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"generator": 2}, "generator version 2; this busenv generates version 1"),
        ({"name": "generated:small:train"}, "is a set of boards"),
        ({"name": "/etc/passwd"}, "no size '/etc/passwd'"),
        ({"name": "generated:small:6"}, "not on 'generated:small:6'"),
    ],
)
def test_a_record_of_another_board(change: dict, message: str) -> None:
    data = Game(3, board="generated:small:5", seed=1).record().to_dict()
    data["board"] = data["board"] | change
    with pytest.raises(RecordError, match=message):
        Game.from_record(busenv.Record.from_dict(data))
