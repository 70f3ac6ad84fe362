"""Ratings are balanced: seats, turn order, neighbours, line-ups."""

import json
import pickle
from collections import Counter
from pathlib import Path

import pytest

import busenv
from busenv import Rules
from busenv.agents.match import circular_orders
from busenv.common.runs import RunError
from busenv.evaluation.schedule import Schedule, round_robin
from busenv.game.board_specs import load_boards


def schedule(
    entrants: int, players: int, *, against: str | None = None, games: int = 1
) -> Schedule:
    return Schedule(tuple(f"agent{k}" for k in range(entrants)), players, games, against=against)


@pytest.mark.parametrize("players", [3, 4, 5])
@pytest.mark.parametrize(
    ("entrants", "against"), [(2, None), (3, None), (4, None), (6, None), (2, "other")]
)
def test_every_agent_has_every_seat_and_turn_equally_often(
    entrants: int, against: str | None, players: int
) -> None:
    design = schedule(entrants, players, against=against)
    counts: Counter[tuple[int, int, int]] = Counter()
    for number in range(design.block):
        seats, first = design.seating(number)
        for seat, entrant in enumerate(seats):
            if entrant < entrants:  # not one of the copies
                counts[entrant, seat, (seat - first) % players] += 1
    assert len(counts) == entrants * players**2
    assert len(set(counts.values())) == 1


def test_round_robin_lists_every_line_up() -> None:
    assert round_robin(2, 4) == [(0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 1)]
    assert round_robin(3, 3) == [(0, 1, 2)]
    assert len(round_robin(5, 3)) == 10
    assert len(round_robin(3, 5)) == 6


def test_circular_orders_are_as_frequent_as_by_chance() -> None:
    assert circular_orders((0, 1, 2)) == [(0, 1, 2), (0, 2, 1)]
    assert circular_orders((0, 0, 1, 1)) == [(0, 0, 1, 1), (0, 0, 1, 1), (0, 1, 0, 1)]
    assert circular_orders((0, 1, 1, 1, 1)) == [(0, 1, 1, 1, 1)]
    assert len(circular_orders((0, 1, 2, 3))) == 6
    assert len(circular_orders((0, 1, 2, 3, 4))) == 24


@pytest.mark.parametrize(
    ("entrants", "players", "full_block"),
    [(3, 3, 18), (4, 4, 96), (5, 5, 600), (2, 4, 144), (4, 3, 72), (5, 4, 480), (2, 5, 200)],
)
def test_a_full_block_balances_neighbours(entrants: int, players: int, full_block: int) -> None:
    """Each entrant has each other one on its left equally often, with every seat and turn."""
    design = schedule(entrants, players, games=full_block)
    assert design.full_block == design.total == full_block
    assert "neighbours are balanced" in design.balance
    follows: Counter[tuple[int, ...]] = Counter()
    for number in range(design.total):
        seats, first = design.seating(number)
        for seat, entrant in enumerate(seats):
            other = seats[(seat + 1) % players]
            if other != entrant:
                follows[entrant, other, seat, (seat - first) % players] += 1
    assert len(follows) == entrants * (entrants - 1) * players**2
    assert len(set(follows.values())) == 1


def test_games_are_rounded_up_to_whole_blocks() -> None:
    """To full blocks, if these do not add more than half."""
    assert schedule(2, 4, games=1).total == 48
    assert schedule(2, 4, games=100).total == 144
    assert schedule(4, 4, games=1000).total == 1056
    assert schedule(8, 4, games=1000).total == 1120
    assert "they would be in a multiple of 6,720 games" in schedule(8, 4, games=1000).balance
    assert schedule(1, 5, against="other", games=26).total == 50


def test_too_many_line_ups_are_refused_at_once() -> None:
    with pytest.raises(RunError, match=r"100 agents have 75,287,520 line-ups of 5, .* --against"):
        schedule(100, 5)
    assert schedule(100, 5, against="other").block == 2500


def test_games_alternate_the_boards_of_a_set() -> None:
    on_city = schedule(2, 4, against="other")
    assert {on_city.board_of(number).name for number in range(40)} == {"city"}
    assert [board.name for board in on_city.sample_boards] == ["city"]
    assert on_city.num_boards == 1
    design = Schedule(("a", "b"), against="c", games=192, board="generated:mixed:test:5")
    boards = [board.name for board in design.loaded_boards]
    played = [design.board_of(number).name for number in range(design.total)]
    visits = played[::8]  # two line-ups, four rotations of the seats
    assert played == [name for name in visits for _ in range(8)]
    assert visits[:5] == boards
    assert visits[5:20] == 3 * boards
    assert visits[20] == boards[1]
    assert design.num_boards == 5
    assert Schedule(("a",), against="b", games=16, board="generated:city:test").num_boards == 4
    sizes = [len(board.sites) for board in design.sample_boards]
    assert len(set(sizes[:4])) == len(set(sizes[4:])) == 4


@pytest.mark.parametrize("count", [4, 6])
def test_each_board_of_a_set_has_every_first_player(count: int) -> None:
    board = f"generated:small:test:{count}"
    design = Schedule(("a",), against="b", games=4 * 4 * count, board=board)
    turns = Counter(
        (design.board_of(number).name, *design.seating(number)) for number in range(design.total)
    )
    assert len(turns) == 16 * count  # every seat with every first player on every board


def test_labels_number_copies() -> None:
    assert Schedule(("greedy", "random", "greedy"), against="greedy").labels == (
        "greedy",
        "random",
        "greedy#2",
        "greedy#3",
    )


def test_invalid_schedules_are_refused() -> None:
    with pytest.raises(RunError, match="needs two agents: add a second"):
        schedule(1, 4)
    with pytest.raises(RunError, match="games is 0"):
        schedule(2, 4, games=0)
    with pytest.raises(ValueError, match="allowed: 3, 4 or 5"):
        schedule(2, 6)
    with pytest.raises(FileNotFoundError, match="no board 'nowhere'"):
        Schedule(("a", "b"), board="nowhere")
    with pytest.raises(ValueError, match="unknown rules 'nowhere'"):
        Schedule(("a", "b"), rules="nowhere")


def test_a_pickled_schedule_holds_the_content_of_its_files(tmp_path: Path) -> None:
    rules, board = tmp_path / "rules.json", tmp_path / "map.json"
    rules.write_text(json.dumps(Rules(bus_limit=3).to_dict()))
    city = Path(busenv.__file__).parent / "boards/city.json"
    board.write_bytes(city.read_bytes())
    schedule = Schedule(("a", "b"), rules=str(rules), board=str(board))
    assert Schedule(("a", "b"), rules=str(rules), board=str(board)) == schedule
    for path in (rules, board):
        path.write_text("{}")
    sent = pickle.loads(pickle.dumps(schedule))
    assert sent.loaded_rules == Rules(bus_limit=3)
    assert sent.loaded_boards.fingerprint == busenv.load_board("city").fingerprint
    settings = json.loads(json.dumps(sent.settings()))
    assert settings["rules"] == {"from": str(rules), **Rules(bus_limit=3).to_dict()}
    assert settings["board"] == {
        "from": str(board),
        "fingerprint": busenv.load_board("city").fingerprint,
    }


def test_rules_and_boards_may_be_objects() -> None:
    rules, board = Rules(bus_limit=3), busenv.load_board("generated:small:3")
    settings = Schedule(("a", "b"), rules=rules, board=board).settings()
    assert json.loads(json.dumps(settings))["rules"] == {"from": rules.name, **rules.to_dict()}
    assert settings["board"] == {"from": board.name, "fingerprint": board.fingerprint}
    for one in (board, load_boards("generated:small:test:3")):
        tables = [
            busenv.rate(["greedy"], 16, against="random", board=given) for given in (one, one.name)
        ]
        assert tables[0]["won"].tolist() == tables[1]["won"].tolist()
