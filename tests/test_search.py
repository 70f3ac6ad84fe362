"""Evaluation features, playouts, and the search with handcrafted knowledge."""

from __future__ import annotations

import random

import numpy as np
import pytest

from busenv import EDITIONS, Game, Phase, load_board
from busenv.agents.uct_agent import UctAgent
from busenv.core.bits import GOLDEN, mix, subtract_bytes
from busenv.core.jit import kernel
from busenv.core.rules.legal import is_legal
from busenv.core.rules.step import step
from busenv.core.state import OVER
from busenv.game.board import make_board
from busenv.heuristics.evaluation import FEATURES, compute_features, make_evaluation
from busenv.heuristics.playout import playout_action
from busenv.search.uct_search import UctSettings
from tests.support.worlds import random_board, random_rules

CITY = load_board("city")
CLOCK = 4  # action id of a marker on the clock


def test_features_are_those_of_the_position() -> None:
    rng, evaluated = random.Random(3), make_evaluation()
    for number in range(12):
        game = Game(3 + number % 3, [*EDITIONS][number % 4], CITY, seed=number)
        while not game.is_over:
            if rng.random() < 0.2:
                compute_features(game.arrays()[0][0], CITY.array[0], evaluated)
                check_features(game, evaluated.features)
            game.step(rng.choice(game.legal_actions()))


def check_features(game: Game, features: np.ndarray) -> None:
    """Recompute the features from the position, in plain Python."""
    position, players, board = game.position(), game.num_players, game.board
    homes = [[0] * len(board.intersections) for _ in range(3)]
    free = []
    for built, site in zip(position.buildings, board.sites, strict=True):
        if built < 0:
            free.append(site)
        else:
            homes[built][site.intersection] += 1
    lowest = min((site.zone for site in free), default=None)
    driving = game.phase in (Phase.PICK_UP, Phase.SET_DOWN)
    reach = [{i for s in position.streets[p] for i in board.streets[s]} for p in range(players)]
    for seat in range(players):
        seen = dict(zip(FEATURES, features[seat], strict=False))
        most = max(m for other, m in enumerate(position.action_markers) if other != seat)
        usable = min(position.action_markers[seat], most + 3)
        left = usable / 20
        assert seen["points"] == game.points[seat]
        assert seen["markers"] == usable
        assert seen["reach"] == len(reach[seat])
        for later, name in enumerate(("drive_now", "drive_next", "drive_last")):
            kind = (position.clock + later + (not driving)) % 3
            waiting = sum(max(position.passengers[i] - homes[kind][i], 0) for i in reach[seat])
            vacant = sum(max(homes[kind][i] - position.passengers[i], 0) for i in reach[seat])
            assert seen[name] == min(waiting, vacant, position.buses[seat])
            assert seen[name + "_left"] == pytest.approx(seen[name] * left)
        others = set().union(*(reach[p] for p in range(players) if p != seat))
        assert seen["shared_left"] == pytest.approx(len(reach[seat] & others) * left)
        stations = (
            len(
                reach[seat]
                & {i for i, place in enumerate(board.intersections) if place.train_station}
            )
            if position.supply
            else 0
        )
        assert seen["stations_left"] == pytest.approx(stations * left)
        on_line = [site for site in free if site.intersection in reach[seat]]
        now = sum(site.zone == lowest for site in on_line)
        assert seen["open_sites_left"] == pytest.approx(now * left)
        assert seen["later_sites_left"] == pytest.approx((len(on_line) - now) * left)
        people = sum(position.passengers[i] for i in reach[seat])
        assert seen["people_left"] == pytest.approx(people * left)
        if game.phase == Phase.SELECT_ACTIONS:
            top = max(position.buses)
            for name, action, bonus in (("lines", 0, players == 5), ("passengers", 2, 0)):
                counts = [top - k for k in range(len(position.spaces[action]))]
                needs_power = game.rules.extra_street == "with_power"
                powers = [max(n + (bonus and (n > 0 or not needs_power)), 0) for n in counts]
                mine = sum(
                    p for p, o in zip(powers, position.spaces[action], strict=True) if o == seat
                )
                assert seen[name + "_pending"] == mine
            assert seen["vroom_markers"] == position.spaces[5].count(seat)
            if position.spaces[5][:1] == [seat]:
                assert seen["vroom_pending"] >= seen["drive_now"]


def test_bytes_are_subtracted_side_by_side() -> None:
    pairs = np.random.default_rng(5).integers(0, 128, (200, 2, 8)).astype(np.uint8)
    pairs[0] = [[0, 127, 0, 127, 1, 0, 5, 126], [0, 127, 127, 0, 0, 1, 5, 127]]
    for some, other in pairs:
        difference = np.uint64(subtract_bytes(some.view(np.uint64)[0], other.view(np.uint64)[0]))
        expected = np.maximum(some.astype(int) - other, 0)
        assert np.array([difference]).view(np.uint8).tolist() == expected.tolist()


@kernel
def _play_out(game, board, seed):  # type: ignore[no-untyped-def]
    """Play a game as playouts do; -1, or the first illegal action."""
    while game[0].phase != OVER:
        seed += GOLDEN
        action = playout_action(game[0], board[0], mix(seed))
        if not is_legal(game[0], board[0], action):
            return action
        step(game[0], board[0], action)
    return -1


def test_playouts_are_legal_on_any_board_and_by_any_rules() -> None:
    rng = random.Random(8)
    for seed in range(60):
        board = make_board(random_board(rng)) if seed % 2 else CITY
        game = Game(3 + seed % 3, random_rules(rng), board, seed=seed)
        assert _play_out(game.arrays()[0], board.array, np.uint64(seed)) == -1
        assert game.is_over


def test_long_searches_play_out_to_the_end() -> None:
    """Early in a game, playouts to the end give other values than playouts of two rounds."""

    def chances(**settings: int) -> np.ndarray:
        agent = UctAgent(400, seed=1, settings=UctSettings(**settings))
        return np.array(agent.estimate(Game(4, first_player=0, seed=1))[0])

    assert (chances() == chances(full_playout_visits=10**9)).all()
    assert (chances() != chances(full_playout_visits=200)).any()
    assert (chances(full_playout_visits=0) == chances(playout_rounds=1000)).all()


def test_trees_of_another_board_are_cleared() -> None:
    """Positions of a larger board have actions that overrun the arrays of a smaller one."""
    agent, game = UctAgent(20), Game(board="generated:small:1", first_player=0)
    agent.act(Game(board="generated:large:1"))
    assert all(tree.used.all() for tree in agent._trees)
    agent._prepare(game.board)
    assert not any(tree.used.any() for tree in agent._trees)
    agent.reset(3)
    assert agent.act(game) == UctAgent(20, seed=3).act(game)
