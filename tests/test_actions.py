"""Action ids: descriptions, encoding and decoding."""

import random
from typing import Any

import numpy as np
import pytest

from busenv import (
    BoardAction,
    Building,
    Game,
    Move,
    decode,
    describe_action,
    encode,
    generate_board,
    load_board,
    parse_action,
)
from busenv.game.board import make_board
from tests.support.worlds import random_board

CITY = load_board("city")


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (0, "place marker on Line Expansion"),
        (5, "place marker on Vrrooomm!"),
        (7, "pass"),
        (8 + 3 * 0 + 2, "erect pub on site 0 at intersection 9, zone 1"),
        (8 + 3 * 46 + 1, "erect office on site 46 at intersection 35, zone 4"),
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


def test_parse_action_is_the_inverse_of_describe_action() -> None:
    for board in (
        CITY,
        generate_board(5),
        *(make_board(random_board(random.Random(seed))) for seed in range(20)),
    ):
        for action in range(board.num_actions):
            words = describe_action(board, action)
            assert parse_action(board, words) == action
            assert parse_action(board, f" {words.upper()} ".replace("→", "  -> ")) == action
    for words in ("", "8", "grow line 14 20", "erect house on site 0"):
        with pytest.raises(ValueError, match=f"no action '{words}'; allowed: words of describe"):
            parse_action(CITY, words)
    with pytest.raises(TypeError, match="words is None; allowed: a string"):
        parse_action(CITY, None)  # type: ignore[arg-type]


def test_encode_is_the_inverse_of_decode() -> None:
    for board in (CITY, *(make_board(random_board(random.Random(seed))) for seed in range(20))):
        moves = [decode(board, action) for action in range(board.num_actions)]
        assert [encode(board, move) for move in moves] == [*range(board.num_actions)]
        assert [encode(board, *move) for move in moves] == [*range(board.num_actions)]


def test_encode_takes_words_and_numbers() -> None:
    assert encode(CITY, "place", BoardAction.VRROOOMM) == 5
    assert encode(CITY, "pass") == encode(CITY, Move("pass")) == 7
    assert encode(CITY, "build", np.int64(2), Building.PUB) == 16
    assert encode(CITY, "grow", 33, 1) == 216
    assert type(encode(CITY, "clock", np.int64(1))) is int


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (("stop",), r"no kind of action 'stop'; allowed: \('place', 'pass'"),
        (("pickup", 3), "did you mean 'pick_up'"),
        (("place", 7), "place: no subject 7; allowed: 0 to 6"),
        (("pass", 1), "pass: no subject 1; allowed: 0 to 0"),
        (("build", 47, 0), "build: no subject 47; allowed: 0 to 46"),
        (("build", 3, 3), "build: no detail 3; allowed: 0 to 2"),
        (("grow", 70, 0), "grow: no subject 70; allowed: 0 to 69"),
        (("grow", 3, 2), "grow: no detail 2; allowed: 0 to 1"),
        (("set_down", 3, 1), "set_down: no detail 1; allowed: 0 to 0"),
        (("set_down", "3"), "set_down: no subject '3'"),
        (("build", 5.0), "build: no subject 5.0"),
        ((Move("build", 99, 0),), "no subject 99"),
    ],
)
def test_encode_refuses_moves_outside_the_board(move: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(CITY, *move)
