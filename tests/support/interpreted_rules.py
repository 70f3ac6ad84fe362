"""The rules of the core in the Python interpreter, compared with the second engine.

For mutation testing (CONTRIBUTING.md): no mutant has to be compiled. Exits with status 1 at the
first difference.

    NUMBA_DISABLE_JIT=1 python -m tests.support.interpreted_rules
"""

import random
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from busenv import EDITIONS, Board, Rules, load_board
from busenv.core.rules import drive, legal, score
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, NO_ACTION, OVER
from busenv.game.actions import Phase
from busenv.game.board import make_board
from busenv.game.position import ENDINGS, Position, read_position
from busenv.render.phrases import POWER_WORDS
from tests.support.compare import CITY, SHARED_FIELDS, reference_rules, reference_view
from tests.support.play import STYLES, choose
from tests.support.reference import ReferenceGame
from tests.support.worlds import random_board, random_rules

GAMES, WORLDS = 6, 40  # games on the city, and on random boards with random rules


class Record:
    """A record with its fields as attributes; small integers become int, as in compiled code."""

    def __init__(self, record: np.void) -> None:
        object.__setattr__(self, "_record", record)

    def __getattr__(self, name: str) -> Any:
        value = self._record[name]
        return int(value) if isinstance(value, np.integer) and value.itemsize < 8 else value

    def __setattr__(self, name: str, value: Any) -> None:
        size = self._record.dtype[name].itemsize
        self._record[name] = int(value) & (2 ** (8 * size) - 1)


def waiting_and_vacant(position: Position, board: Board) -> tuple[list[int], list[int]]:
    """Intersections with a waiting passenger, and with a free building, in Vrrooomm! (R16).

    Both are empty in other phases.
    """
    surplus = [0] * len(board.intersections)  # passengers minus matching buildings
    if position.phase in (Phase.PICK_UP, Phase.SET_DOWN):
        surplus = list(position.passengers)
        for site, kind in zip(board.sites, position.buildings, strict=True):
            surplus[site.intersection] -= kind == position.clock
    waiting = [i for i, passengers in enumerate(surplus) if passengers > 0]
    return waiting, [i for i, passengers in enumerate(surplus) if passengers < 0]


def clear_record(record: Record, first: int, count: int) -> None:
    """Set all bytes of a record to 0, as the rules use `clear_bytes`."""
    assert (first, count) == (0, record._record.dtype.itemsize)
    for name in record._record.dtype.names:
        record._record[name] = 0


def interpret_intrinsics() -> None:
    """Replace the compiled intrinsics that the rules use, in every module that imports them."""
    replaced = {
        "popcount": lambda word: np.uint64(int(word).bit_count()),
        "lowest": lambda word: np.uint64((int(word) & -int(word)).bit_length() - 1 if word else 64),
        "clear_bytes": clear_record,
    }
    for name, module in [*sys.modules.items()]:
        if name.startswith("busenv.core."):
            for function in replaced.keys() & vars(module).keys():
                setattr(module, function, replaced[function])


def core_view(array: np.ndarray, game: Record, board: Board) -> dict:
    """What is compared (`tests.support.compare.core_view`), by the rules' functions."""
    position, record = read_position(array, board), Record(board.array[0])
    words, ids = np.zeros((board.num_actions + 63) // 64, np.uint64), np.zeros(999, np.int64)
    legal_ids = ids[: legal.legal_ids(game, record, words, ids)].tolist()
    tested = [a for a in range(-2, board.num_actions + 2) if legal.is_legal(game, record, a)]
    assert tested == legal_ids
    random_words = [np.uint64(-(-(i << 32) // len(legal_ids)) << 32) for i in range(len(legal_ids))]
    assert sorted(legal.random_action(game, record, word) for word in random_words) == legal_ids
    if legal_ids:
        assert legal.random_action(game, record, np.uint64(2**64 - 1)) in legal_ids
    view = {name: getattr(position, name) for name in SHARED_FIELDS}
    view["turn"] = (position.current_player, Phase(game.phase).name, int(game.round))
    view["legal"] = legal_ids
    view["ranking"] = [score.rank_of(game, seat) for seat in range(game.players)]
    view["choosing"] = position.choosing
    assert view["points"] == [score.points_of(game, seat) for seat in range(game.players)]
    check_derived(game, position, board)
    return view


def bitset(members: Iterable[int]) -> int:
    return sum(1 << member for member in {*members})


def check_derived(game: Record, position: Position, board: Board) -> None:
    """Fields that the state derives from the position agree with it."""
    lines = [{i for s in streets for i in board.streets[s]} for streets in position.streets]
    assert game.reach.tolist()[: len(lines)] == [bitset(line) for line in lines]
    marked = int(game.marked[0]) | int(game.marked[1]) << 64
    assert marked == bitset(s for streets in position.streets for s in streets)
    sites = [*zip(board.sites, position.buildings, strict=True)]
    assert game.free_sites == bitset(i for i, (_, kind) in enumerate(sites) if kind < 0)
    for kind in range(3):
        assert game.built[kind] == bitset(s.intersection for s, built in sites if built == kind)
    free_zones = [site.zone - 1 for site, kind in sites if kind < 0]
    assert game.zone == min(free_zones, default=max(site.zone for site, _ in sites))
    assert game.occupied == bitset(i for i, count in enumerate(position.passengers) if count)
    assert (position.waiting, position.vacant) == waiting_and_vacant(position, board)
    driving = position.phase in (Phase.PICK_UP, Phase.SET_DOWN)
    assert driving or not (game.waiting or game.vacant)
    growing = position.phase in (Phase.LINE_EXPANSION, Phase.SETUP_SECOND_LINE)
    assert growing or not (game.grow_head.any() or game.grow_tail.any())
    limits = [1 if action in (1, 4, 6) else game.space_limit for action in range(7)]
    spaces = position.spaces
    assert game.open == bitset(a for a in range(7) if len(spaces[a]) < limits[a])
    assert game.placed.tolist()[: len(lines)] == position.placed or position.phase == Phase.OVER
    assert game.max_buses == max(position.buses)
    assert game.delivered == sum(position.deliveries)
    unused = slice(game.players, MAX_PLAYERS)
    for field in ("line", "line_markers", "buses", "markers", "placed", "stones", "deliveries"):
        assert not getattr(game, field)[unused].any()
    if position.phase not in POWER_WORDS:
        assert not game.power
    if position.resolving == -1 or position.phase == Phase.CLOCK:
        assert not game.space
    if position.phase != Phase.SELECT_ACTIONS:
        assert not game.choosing
    assert position.phase != Phase.OVER or game.seat == 0
    for action, owners in enumerate(spaces):
        assert not game.spaces[action, len(owners) :].any()
    assert (game.action == NO_ACTION) == (position.resolving == -1)


def compare_game(players: int, rules: Rules, seed: int, *, board: Board, data: dict) -> None:
    """Play one game on both engines; AssertionError at the first difference."""
    rng, first = random.Random(seed), seed % players
    array = np.full(GAME.itemsize, 0xAA, np.uint8).view(GAME)  # new_game writes every field
    game, record = Record(array[0]), Record(board.array[0])
    new_game(game, record, Record(rules.record(players)[0]), first)
    reference = ReferenceGame(data, reference_rules(rules), players, first)
    marks: dict[tuple, int] = {}
    while True:
        ours, theirs = core_view(array, game, board), reference_view(reference)
        assert ours == theirs, {k: (ours[k], theirs[k]) for k in ours if ours[k] != theirs[k]}
        last = {seat: i for i, seat in enumerate(reference.delivered)}
        order = [
            sorted(last.values()).index(last[s]) + 1 if s in last else 0 for s in range(players)
        ]
        assert game.delivery_order.tolist()[:players] == order
        mark = (*ours["deliveries"], *ours["time_stones"])
        assert marks.setdefault(mark, score.points_version(game)) == score.points_version(game)
        if game.phase == OVER:
            break
        visited = {i for s in ours["streets"][reference.current_player] for i in board.streets[s]}
        action = choose(rng, board, ours["legal"], STYLES[seed % len(STYLES)], visited)
        step(game, record, action)
        reference.step(action)
    assert len({*marks.values()}) == len(marks)
    assert ENDINGS[game.ending] == reference.ending


def compare_rankings(rng: random.Random) -> None:
    """Rank random results, in which ties are frequent, as the second engine does (R20)."""
    for _ in range(200):
        players, first = rng.choice([3, 4, 5]), rng.randrange(3)
        reference = ReferenceGame(CITY, reference_rules(Rules()), players, first)
        reference.time_stones = [rng.randrange(3) for _ in range(players)]
        reference.delivered = [rng.randrange(players) for _ in range(rng.randrange(9))]
        game = Record(np.zeros(1, GAME)[0])
        game.players, game.first = players, first
        game.stones[:players] = reference.time_stones
        for seat in reference.delivered:
            game.deliveries[seat] += 1
            drive.order_last_delivery(game, seat)
        assert [score.rank_of(game, seat) for seat in range(players)] == reference.ranking()


def main() -> None:
    city, editions = load_board("city"), [*EDITIONS.values()]
    for seed in range(GAMES):
        rules = replace(editions[seed % 4], action_markers=7 + seed)
        compare_game(3 + seed % 3, rules, seed, board=city, data=CITY)
    rng = random.Random(1)
    for seed in range(WORLDS):
        data, rules = random_board(rng), random_rules(rng)
        players, board = rng.choice([3, 4, 5]), make_board(data)
        compare_game(players, rules, seed, board=board, data=data)
    compare_rankings(rng)
    # The streets that lines share most often come last, in the second word of a set.
    central = {**CITY, "streets": sorted(CITY["streets"], key=lambda street: 14 in street)}
    for seed in range(3 * GAMES):
        rules = editions[seed % 4]
        compare_game(5, rules, seed, board=make_board(central), data=central)


if __name__ == "__main__":
    np.seterr(all="ignore")
    interpret_intrinsics()
    try:
        main()
    except Exception as error:  # a mutant may fail in any way
        sys.exit(f"{type(error).__name__}: {error}"[:300])
