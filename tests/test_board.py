"""Boards: the city, other maps, and errors that name the entry."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from busenv import BoardError, Game, load_board, random_playouts
from busenv.game.board import BOARDS, make_board
from tests.support.worlds import largest, one_street


def city() -> dict:
    return json.loads((BOARDS / "city.json").read_text())


def test_city() -> None:
    board = load_board("city")
    assert (len(board.intersections), len(board.streets), len(board.sites)) == (36, 70, 47)
    assert board.num_actions == 375
    assert board.stations == (10, 25)
    assert [s.zone for s in board.sites].count(4) == 15
    assert load_board("city") is board
    assert load_board(BOARDS / "city.json").fingerprint == board.fingerprint
    with pytest.raises(ValueError, match="read-only"):
        board.array["streets"] = 3


def test_a_board_that_is_not_there() -> None:
    with pytest.raises(
        FileNotFoundError, match=r"no board 'citty'.*\['city'\]; did you mean 'city'"
    ):
        load_board("citty")
    with pytest.raises(FileNotFoundError, match=r"no board 'atlantis/x.json'.*\['city'\]$"):
        load_board("atlantis/x.json")
    with pytest.raises(FileNotFoundError, match=r"no board 'x{199}\.\.\. \(302 characters\)"):
        load_board("x" * 300)  # longer than the name of a file may be


def test_fingerprint_is_of_what_matters_to_play() -> None:
    fingerprint = make_board(city()).fingerprint
    moved = city()
    moved["intersections"][3]["x"] += 1
    moved["name"] = "other"
    assert make_board(moved).fingerprint == fingerprint
    for change in (
        lambda d: d["streets"].pop(),
        lambda d: d["streets"][0].reverse(),
        lambda d: d["sites"][5].update(intersection=0),
        lambda d: d["intersections"][0].update(roundabout=True),
    ):
        data = city()
        change(data)
        assert make_board(data).fingerprint != fingerprint


def edit(path: str, value: object):  # type: ignore[no-untyped-def]
    """A change of one entry: "streets/3" = value."""

    def change(data: dict) -> None:
        *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        entry = data
        for key in parents:
            entry = entry[key]
        entry[last] = value

    return change


def without_roundabouts(data: dict) -> None:
    for entry in data["intersections"]:
        entry["roundabout"] = False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit("intersections", {}), "'intersections' must be a list"),
        (edit("intersections", []), "'intersections' has 0 entries; allowed: 1 to 64"),
        (edit("intersections/4", 7), "intersection 4 must be an object"),
        (edit("intersections/4", {"id": 4}), "intersection 4 has no 'x'"),
        (without_roundabouts, "no intersection is a roundabout"),
        (edit("intersections/4/id", 5), "intersection 4 has id 5"),
        (edit("intersections/4/x", "1"), "intersection 4: 'x' is '1'; allowed: a number"),
        (edit("intersections/4/roundabout", 1), "intersection 4: 'roundabout' is 1"),
        (edit("intersections/4/train_station", True), r"stations at intersections \[4, 10, 25\]"),
        (edit("streets/3", [1, 36]), r"street 3 is \[1, 36\].*0 to 35"),
        (edit("streets/3", "12"), "street 3 is '12'"),
        (edit("streets/3", [2, 2]), "street 3 joins intersection 2 to itself"),
        (edit("streets/3", [1, 0]), "street 3 joins 1 and 0 as street 0 does"),
        (edit("streets", [[0, 1]]), "intersection 2 cannot be reached from intersection 0"),
        (edit("streets", [[0, 1]] * 129), "'streets' has 129 entries"),
        (edit("sites/7/id", 8), "site 7 has id 8"),
        (edit("sites/7/intersection", 36), "site 7: 'intersection' is 36; allowed: 0 to 35"),
        (edit("sites/7/zone", 0), "site 7: 'zone' is 0; allowed: 1, 2, 3"),
        (edit("sites/46/zone", 6), "site 46 is in zone 6, but zone 5 has no site"),
        (edit("name", "a\ud800"), r"'name' is 'a\\ud800'; allowed: up to \d+ printable letters"),
        (edit("colour", 1), "the board has an unknown key 'colour'; allowed: name, source, inters"),
        (edit("sites/7/zones", 1), "site 7 has an unknown key 'zones'.*did you mean 'zone'"),
    ],
)
def test_wrong_boards_are_refused(change, message: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    data = city()
    change(data)
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BoardError, match=message):
        load_board(path)


def test_sizes_follow_from_the_board() -> None:
    board = make_board(largest())
    assert board.num_actions == 8 + 3 * 64 + 2 * 128 + 12 + 2 + 2 * 64
    game = Game(5, "condensed", board, seed=3)
    assert game.action_mask().shape == (board.num_actions,)
    rng = np.random.default_rng(1)
    while not game.is_over:
        game.step(int(rng.choice(game.legal_actions())))
    assert random_playouts(500, 5, board=board).games == 500


@pytest.mark.slow
def test_the_largest_board_stays_within_its_arrays(tmp_path: Path) -> None:
    program = (
        "from tests.support.worlds import largest; from busenv.game.board import make_board; "
        "from busenv import Rules; from busenv.batch.batch import Batch; import numpy as np\n"
        "rules = Rules(bus_limit=100, action_markers=60, spaces=8, line_markers=None)\n"
        "settings = {'rules': rules, 'board': make_board(largest()), 'opponents': 'greedy'}\n"
        "batch = Batch(4, num_players=[3, 5], **settings)\n"
        "batch.reset(0)\n"
        "rng = np.random.default_rng(0)\n"
        "for _ in range(400):\n"
        "    batch.step(np.where(batch.masks, rng.random(batch.masks.shape), -1).argmax(axis=1))\n"
        "print('within')"
    )
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    environment = {**os.environ, **checked}
    done = subprocess.check_output([sys.executable, "-c", program], text=True, env=environment)
    assert done.strip() == "within"


def test_smallest_board() -> None:
    result = random_playouts(50, 3, board=make_board(one_street(sites=1)))
    assert result.endings["sites"] == 50
    assert result.rounds == 1
