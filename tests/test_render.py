"""The drawing shows what is on the table, on any board; the environments' render modes."""

from __future__ import annotations

import random
import re
import sys
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import render_test

from busenv import Game, Phase, bus_v0, load_board
from busenv.board import make_board
from busenv.render.panels import LEFT_WORDS, RESOLVED_IN, space_middle
from busenv.render.pieces import BUILDINGS, PAWN, SEAT_COLOURS
from busenv.render.places import lay_out
from busenv.render.raster import Window, draw_pixels
from busenv.render.svg import draw_parts
from tests.support.play import played
from tests.support.worlds import random_board, random_rules


def at(game: Game, ply: int) -> Game:
    """The game after some of its plies."""
    now = Game(game.num_players, game.rules, game.board, game.first_player, game.seed)
    for action in game.history[:ply]:
        now.step(action)
    return now


def parts_of(game: Game) -> dict[str, str]:
    return draw_parts(game.board, game.position(), game.rules, game.last_decision)


def check_map(game: Game) -> None:
    """Lines, ends, buildings and passengers are drawn as they lie."""
    table, parts = game.position(), parts_of(game)
    for street in range(len(game.board.streets)):
        drawn = parts[f"street-{street}"]
        for seat, colour in enumerate(SEAT_COLOURS[: game.num_players]):
            on = street in table.streets[seat]
            assert (f'stroke="{colour}"' in drawn) == on
            assert drawn.count(f'fill="{colour}"') == table.arrivals[seat].count(street)
    people = 0
    for site, kind in enumerate(table.buildings):
        drawn = parts[f"site-{site}"]
        assert [shape in drawn for shape in BUILDINGS] == [kind == k for k in range(3)]
        assert kind >= 0 or f">{game.board.sites[site].zone}<" in drawn
        people += drawn.count(PAWN)
    for place in range(len(game.board.intersections)):
        drawn = parts[f"people-{place}"]
        several = re.search(r"×(\d+)<", drawn)
        people += int(several[1]) if several else drawn.count(PAWN)
    assert people == sum(table.passengers)


@pytest.mark.parametrize("players", [3, 4, 5])
def test_the_drawing_shows_what_lies_on_the_table(players: int) -> None:
    game = played(players, seed=players)
    for ply in range(0, len(game.history) + 1, 7):
        now = at(game, ply)
        check_map(now)
        ElementTree.fromstring(now.svg())
    table, parts = game.position(), parts_of(game)
    for seat in range(players):
        words = re.findall(r">([^<]*)</text>", parts[f"player-{seat}"])
        for value in (table.points[seat], table.buses[seat], table.action_markers[seat]):
            assert str(value) in words
    for action, seats in enumerate(table.spaces):
        colours = re.findall(r'r="12" fill="(#\w+)"', parts[f"action-{action}"])
        assert colours == [SEAT_COLOURS[seat] for seat in seats]


def test_any_board_and_rules_can_be_drawn() -> None:
    rng = random.Random(2)
    for _ in range(12):
        board = make_board(random_board(rng))
        game = Game(rng.choice([3, 4, 5]), random_rules(rng), board, seed=1)
        while not game.is_over:
            game.step(rng.choice(game.legal_actions()))
        check_map(game)
        ElementTree.fromstring(game.svg())


def test_nothing_on_the_city_stands_on_something_else() -> None:
    places = lay_out(load_board("city"))
    points = np.array(places.intersections + places.sites + places.people)
    gaps = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    np.fill_diagonal(gaps, np.inf)
    assert gaps.min() > 22


def test_intersections_on_one_spot_are_drawn_apart() -> None:
    data = random_board(random.Random(1))
    for entry in data["intersections"]:
        entry["x"] = entry["y"] = 3
    points = np.array(lay_out(make_board(data)).intersections)
    assert len(np.unique(points.round(), axis=0)) == len(points)


def test_the_headline_tells_turn_and_last_action() -> None:
    game = Game(3, seed=1)
    assert parts_of(game)["last"] == ""
    mover = game.current_player
    game.step(game.legal_actions()[0])
    parts = parts_of(game)
    assert f"Last: seat {mover}, erect house" in parts["headline"]
    assert f"seat {game.current_player} to move" in parts["headline"]
    assert "glow" in parts["last"]
    over = played(3, seed=2)
    assert f"seat {over.ranking().index(0)} wins" in over.svg()
    assert over._repr_svg_() == over.svg()


def test_the_marker_being_resolved_is_ringed_and_what_is_left_is_told() -> None:
    game, seen = played(5, seed=3), set()
    now = at(game, 0)
    for action in game.history:
        table, parts = now.position(), parts_of(now)
        rings = [name for name, part in parts.items() if 'class="acting"' in part]
        if table.resolving >= 0:
            row = RESOLVED_IN[now.phase]
            assert table.spaces[row][table.resolving] == now.current_player
            x, y = space_middle(now.rules, row, table.resolving)
            assert rings == [f"action-{row}"]
            assert f'<circle cx="{x}" cy="{y}" r="13.5" class="acting"/>' in parts[rings[0]]
        else:
            assert rings == []
        note = re.search(r">to move: (\d+) \w+ to go", parts[f"player-{now.current_player}"])
        assert bool(note) == (table.power > 0)
        seen |= {now.phase} if note else set()
        now.step(action)
    assert seen == set(LEFT_WORDS)


def test_every_kind_of_last_action_is_lit_up() -> None:
    kinds = set()
    game = played(4, seed=5)
    now = at(game, 0)
    for action in game.history:
        phase = now.phase
        now.step(action)
        assert "glow" in parts_of(now)["last"]
        kinds.add(phase)
    assert kinds == set(Phase) - {Phase.OVER}


def test_pixels_have_one_size_and_change_with_the_game() -> None:
    game = played(3, seed=1)
    end, start = draw_pixels(game.svg()), draw_pixels(at(game, 0).svg())
    assert end.shape == start.shape == (800, 1200, 3)
    assert end.dtype == np.uint8
    assert (end != start).any()
    assert (end == draw_pixels(game.svg())).all()


def test_the_window_shows_the_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window, pixels = Window(), draw_pixels(Game(3, seed=1).svg())
    window.show(pixels)
    shown = pygame.surfarray.array3d(pygame.display.get_surface())
    assert (shown.transpose(1, 0, 2) == pixels).all()
    window.close()
    assert not pygame.display.get_init()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "busenv\[render\]"'):
        bus_v0.env(render_mode="rgb_array")
    bus_v0.env(render_mode="ansi")


def test_render_modes_of_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    render_test(bus_v0.env)
    for mode in ("ansi", "rgb_array", "human"):
        env = gymnasium.make("busenv/Bus-v0", render_mode=mode, illegal="lose").unwrapped
        check_env(env)
        env.close()
