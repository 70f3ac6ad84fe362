"""Observations: complete, egocentric, named and correct."""

import random

import numpy as np
import pytest
import torch

from busenv import EDITIONS, Game, Phase, load_board
from busenv.batch.batch import Batch
from busenv.core import kernels
from busenv.game.board import make_board
from busenv.observation import ObservationLayout, observe, observe_games
from tests.support.play import seen_by
from tests.support.positions import step
from tests.support.rebuild import rebuild
from tests.support.worlds import random_board, random_rules

CITY = load_board("city")
LAYOUT = ObservationLayout(CITY)


def random_positions(games: int, seed: int = 1):  # type: ignore[no-untyped-def]
    """Games at positions of every kind: all of each of some random games."""
    rng = random.Random(seed)
    for number in range(games):
        game = Game(3 + number % 3, [*EDITIONS][number % 4], CITY, seed=number)
        while True:
            yield game
            if game.is_over:
                break
            step(game, rng, number)


def masks_of(games: np.ndarray) -> np.ndarray:
    masks = np.empty((len(games), 375), np.bool_)
    kernels.legal_bytes(games, CITY.array, masks)
    return masks


def test_layout_covers_every_byte_once() -> None:
    seen = np.zeros(LAYOUT.size, int)
    for part in LAYOUT.parts.values():
        marks = np.zeros(LAYOUT.size, int)
        view = LAYOUT.part(marks, part.name)
        assert view.shape == part.shape
        assert np.shares_memory(view, marks)
        view[...] = 1
        seen += marks
    assert (seen == 1).all()
    assert LAYOUT.scale.shape == (LAYOUT.size,)
    torch.from_numpy(LAYOUT.scale)  # without a warning
    assert LAYOUT.view(np.zeros((7, 3, LAYOUT.size)), "streets").shape == (7, 3, 70, 10)
    assert LAYOUT.view(np.zeros((7, LAYOUT.size)), "table").shape == (7, 46)
    with pytest.raises(KeyError, match=r"no part 'players.hats'.*players.buses"):
        LAYOUT["players.hats"]
    with pytest.raises(KeyError, match=r"no section 'player'; there are .*'players'"):
        LAYOUT.view(np.zeros(LAYOUT.size), "player")


def test_values_stay_in_their_published_ranges() -> None:
    highest = np.zeros(LAYOUT.size, np.uint8)
    for game in random_positions(48):
        np.maximum(highest, observe(game), out=highest)
    for part in LAYOUT.parts.values():
        assert LAYOUT.part(highest, part.name).max() <= 2 * part.high, part.name


def test_the_state_can_be_rebuilt_and_plays_on_alike() -> None:
    rng = random.Random(5)
    rebuilt = 0
    for game in random_positions(12):
        if rng.random() > 0.15 and game.phase != Phase.OVER:
            continue
        state, board = game.arrays()
        viewer = int(state["seat"][0])
        twin, players = rebuild(CITY, observe(game)), game.num_players
        assert (masks_of(twin) == masks_of(state)).all()
        turned = [(viewer + slot) % players for slot in range(players)]
        original = state.copy()
        while original["phase"][0] != Phase.OVER:
            masks = masks_of(original)
            assert (masks_of(twin) == masks).all()
            assert (int(twin["seat"][0]) + viewer) % players == original["seat"][0]
            rows = [seen_by(g, CITY, g["seat"].astype(np.int64)) for g in (twin, original)]
            assert (rows[0] == rows[1]).all()
            action = np.array([rng.choice(np.flatnonzero(masks[0]))])
            for games in (original, twin):
                assert kernels.step_games(games, board, action) == -1
        ranks, turned_ranks = (kernels.rankings(g, players)[0] for g in (original, twin))
        assert turned_ranks.tolist() == [ranks[seat] for seat in turned]
        assert twin["ending"] == original["ending"]
        rebuilt += 1
    assert rebuilt > 150


def test_rotating_the_seats_rotates_what_is_seen() -> None:
    rng = random.Random(2)
    for players in (3, 4, 5):
        for turn in range(1, players):
            one = Game(players, board=CITY, first_player=0, seed=0)
            other = Game(players, board=CITY, first_player=turn, seed=0)
            while not one.is_over:
                assert one.legal_actions() == other.legal_actions()
                assert (one.current_player + turn) % players == other.current_player
                for seat in range(players):
                    seen = observe(one, seat)
                    assert (seen == observe(other, (seat + turn) % players)).all()
                action = rng.choice(one.legal_actions())
                one.step(action)
                other.step(action)


def check_derived_features(game: Game, row: np.ndarray) -> None:
    """Recompute the derived parts from the position, in plain Python."""
    layout = ObservationLayout(game.board)
    table, players = game.position(), game.num_players
    viewer = int(game.arrays()[0]["seat"][0])
    people, board = table.passengers, game.board

    def homes(i: int, kind: int) -> int:
        return sum(
            b == kind
            for b, s in zip(table.buildings, board.sites, strict=True)
            if s.intersection == i
        )

    for later in range(3):
        kind = (table.clock + later) % 3
        waiting = [max(0, p - homes(i, kind)) for i, p in enumerate(people)]
        vacant = [max(0, homes(i, kind) - p) for i, p in enumerate(people)]
        assert layout.part(row, "intersections.waiting")[:, later].tolist() == waiting
        assert layout.part(row, "intersections.vacant")[:, later].tolist() == vacant
        for slot in range(players):
            seat = (viewer + slot) % players
            reach = {i for s in table.streets[seat] for i in board.streets[s]}
            w, v = sum(waiting[i] for i in reach), sum(vacant[i] for i in reach)
            assert layout.part(row, "players.waiting")[slot, later] == w
            assert layout.part(row, "players.vacant")[slot, later] == v
            assert layout.part(row, "players.drive")[slot, later] == min(w, v, table.buses[seat])
            assert layout.part(row, "players.reached")[slot, 0] == len(reach)
    for end, part in enumerate(("players.head_shared", "players.tail_shared")):
        shared = np.zeros((5, 5), int)
        for seat, ends in enumerate(table.shared_with):
            for other in ends[end] if ends else []:
                shared[(seat - viewer) % players, (other - viewer) % players] = 1
        assert (layout.part(row, part) == shared).all()
    m = max(table.buses)
    powers = [
        0 if len(table.spaces[a]) == game.rules.spaces else max(0, m - len(table.spaces[a]))
        for a in (0, 2, 3)
    ]
    if players == 5 and len(table.spaces[0]) < game.rules.spaces:
        always = game.rules.extra_street == "always"
        powers[0] = max(0, m - len(table.spaces[0]) + 1) if always else powers[0] + (powers[0] > 0)
    assert layout.part(row, "table.next_power").tolist() == powers
    places = layout.part(row, "players.rank")[:players, 0].tolist()
    assert places == [game.ranking()[(viewer + slot) % players] for slot in range(players)]
    first_street = 8 + 3 * len(board.sites)
    if game.phase in (Phase.LINE_EXPANSION, Phase.SETUP_SECOND_LINE):
        grow = layout.part(row, "streets.may_grow")[:, 0]
        legal = {(a - first_street) // 2 for a in game.legal_actions()}
        assert set(np.flatnonzero(grow).tolist()) == legal
        assert layout.part(row, "players.growth")[0, 0] == len(legal)
    if game.phase == Phase.SELECT_ACTIONS:
        nexts = layout.part(row, "players.chooses_next")[:players, 0].tolist()
        others = [s for s in range(1, players) if (viewer + s) % players in table.choosing]
        assert nexts == [int(others[:1] == [slot]) for slot in range(players)]


def test_cached_observations_equal_fresh_ones_on_boards_of_any_width() -> None:
    rng = random.Random(5)
    for number in range(40):
        rules, board = random_rules(rng), make_board(random_board(rng))
        games = Batch(2, num_players=rng.choice([3, 4, 5]), rules=rules, board=board)
        games.reset(number)
        for _ in range(120):
            rows = seen_by(games.games, board, games.seats)
            assert (rows == games.observations).all()
            games.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in games.masks]))


def test_derived_features_agree_with_the_position() -> None:
    rng = random.Random(6)
    for number in range(40):
        board = make_board(random_board(rng))
        game = Game(rng.choice([3, 4, 5]), random_rules(rng), board, seed=number)
        while not game.is_over:
            check_derived_features(game, observe(game))
            game.step(rng.choice(game.legal_actions()))


def test_observe_games_equals_observe_of_each_game() -> None:
    games = [game.clone() for game in random_positions(2)][::9]
    rows, masks = observe_games(np.concatenate([game.arrays()[0] for game in games]), CITY)
    for game, row, mask in zip(games, rows, masks, strict=True):
        assert (row == observe(game)).all()
        assert (mask == game.action_mask()).all()
    with pytest.raises(ValueError, match="not begun"):
        observe_games(np.zeros_like(games[0].arrays()[0]), CITY)
