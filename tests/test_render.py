"""Drawings on any board, and the environments' render modes."""

import dataclasses
import math
import random
import re
from typing import Any
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import render_test

from busenv import Game, Phase, Position, bus_v0, load_board
from busenv.core.state import RESOLVED_IN
from busenv.game.board import make_board
from busenv.render import game_svg, game_text
from busenv.render.click_targets import click_targets
from busenv.render.layout import WIDTH, rim, scaled_layout
from busenv.render.map_drawing import FIRST_END, ROAD, passengers
from busenv.render.panels import PANEL_WIDTH, draw_players, space_centre
from busenv.render.panels import X as PANELS_X
from busenv.render.phrases import POWER_WORDS, headline
from busenv.render.pieces import BUILDINGS, PAWN, SEAT_COLOURS, SMALL
from busenv.render.raster import DisplayWindow, draw_pixels
from busenv.render.svg import describe_last, draw_map, draw_svg
from busenv.render.text import draw_text
from tests.support.drawings import drawn_parts
from tests.support.play import played
from tests.support.positions import at_ply
from tests.support.worlds import largest, random_board, random_rules


def check_map(game: Game) -> None:
    """Compare the drawn lines, ends, buildings and passengers with the position."""
    position, parts = game.position(), drawn_parts(game)
    for street in range(len(game.board.streets)):
        drawn = parts[f"street-{street}"]
        for seat, colour in enumerate(SEAT_COLOURS[: game.num_players]):
            on = street in position.streets[seat]
            assert (f'stroke="{colour}"' in drawn) == on
            assert drawn.count(f'fill="{colour}"') == position.arrivals[seat].count(street)
    people = 0
    for site, kind in enumerate(position.buildings):
        drawn = parts[f"site-{site}"]
        assert [shape in drawn for shape in BUILDINGS] == [kind == k for k in range(3)]
        assert kind >= 0 or f">{game.board.sites[site].zone}<" in drawn
        people += drawn.count(PAWN)
    for place in range(len(game.board.intersections)):
        drawn = parts[f"people-{place}"]
        several = re.search(r"<text[^>]*>(\d+)<", drawn)
        people += int(several[1]) if several else drawn.count(PAWN)
    assert people == sum(position.passengers)


def test_line_ends_do_not_touch_the_numbers_of_waiting_passengers() -> None:
    board = load_board("city")
    layout = scaled_layout(board)
    for station in board.stations:
        (x, y), (middle, height) = layout.intersections[station], layout.passengers[station]
        width = float(re.findall(r'width="(\d+)"', passengers(middle, height, 12))[0])
        for street in board.streets:
            if station in street:
                (other,) = {*street} - {station}
                far = layout.intersections[other]
                share = (rim(board, station) + FIRST_END) / math.dist((x, y), far)
                end = (x + share * (far[0] - x), y + share * (far[1] - y))
                aside = max(abs(end[0] - middle) - width / 2, 0)
                assert math.hypot(aside, max(abs(end[1] - height) - 14, 0)) > 11  # its radius


def check_text(drawing: str) -> None:
    """Check that text has 12 pixels or more when the drawing is 830 pixels wide."""
    sizes = [
        float(element.attrib["font-size"])
        for element in ElementTree.fromstring(drawing).iter()
        if element.tag.endswith("text")
    ]
    assert min(sizes) >= SMALL
    assert SMALL * 830 / WIDTH >= 12


@pytest.mark.parametrize("players", [3, 4, 5])
def test_the_drawing_shows_the_position(players: int) -> None:
    game = played(players, seed=players)
    for ply in range(0, len(game.history) + 1, 7):
        now = at_ply(game, ply)
        check_map(now)
        check_text(game_svg(now))
    position, parts = game.position(), drawn_parts(game)
    assert [name for name in parts if name.startswith("player-")] == [
        f"player-{seat}" for seat in range(players)
    ]
    for seat in range(players):
        words = re.findall(r">([^<]*)</text>", parts[f"player-{seat}"])
        for value in (position.points[seat], position.buses[seat], position.action_markers[seat]):
            assert str(value) in words
    for action, seats in enumerate(position.spaces):
        colours = re.findall(r'r="13" fill="(#\w+)"', parts[f"action-{action}"])
        assert colours == [SEAT_COLOURS[seat] for seat in seats]


def test_five_lines_share_a_street_side_by_side() -> None:
    game = Game(5, seed=1)
    position = dataclasses.replace(
        game.position(), streets=[[0]] * 5, line_ends=[[0, 1]] * 5, arrivals=[[0, 0]] * 5
    )
    drawn = draw_map(game.board, position, None)["street-0"]
    ways = re.findall(r'd="M([\d.]+) ([\d.]+)L[^"]*" class="line"', drawn)
    starts = np.array(ways, float)
    across = np.hypot(*(starts - starts[0]).T)
    assert len(starts) == 5
    assert np.diff(across).min() > 4
    assert across.max() < ROAD
    ends = np.array(re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawn), float)
    gaps = np.hypot(*(ends[:, None] - ends).transpose(2, 0, 1))
    np.fill_diagonal(gaps, np.inf)
    assert len(ends) == 10
    assert gaps.min() > 8


def test_any_board_and_rules_are_drawn() -> None:
    rng = random.Random(2)
    for _ in range(12):
        board = make_board(random_board(rng))
        game = Game(rng.choice([3, 4, 5]), random_rules(rng), board, seed=1)
        while not game.is_over:
            game.step(rng.choice(game.legal_actions()))
        check_map(game)
        check_text(game_svg(game))
        last = game.rules.spaces - 1
        x, _ = space_centre(game.rules, 2, last)
        assert x < PANELS_X + PANEL_WIDTH - 13


def least_gap(points: Any) -> float:
    points = np.array(points)
    gaps = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    np.fill_diagonal(gaps, np.inf)
    return float(gaps.min())


def test_pieces_of_the_city_do_not_overlap() -> None:
    layout = scaled_layout(load_board("city"))
    assert least_gap(layout.intersections + layout.sites + layout.passengers) > 22


def test_intersections_at_one_point_are_drawn() -> None:
    data = largest()
    for entry in data["intersections"]:
        entry["x"] = entry["y"] = 0
    game = Game(3, board=make_board(data), seed=1)
    assert game_svg(game)
    assert click_targets(game.board, game.rules, game.position(), game.legal_actions())


def comparable(position: Position) -> Position:
    """The position with an empty `shared_with` for lines not yet begun, as the text implies."""
    memory = [ends or [[], []] for ends in position.shared_with]
    return dataclasses.replace(position, shared_with=memory)


def test_the_text_shows_every_field_of_the_position() -> None:
    rng = random.Random(3)
    for players in (3, 4, 5):
        games = [played(players, seed, plies=rng.randrange(20, 150)) for seed in range(8)]
        positions = [at_ply(game, ply).position() for game in games for ply in (0, 9, 60, 150)]
        board, rules = games[0].board, games[0].rules
        for position in positions:
            over = position.phase == Phase.OVER
            other = rng.choice([p for p in positions if (p.phase == Phase.OVER) == over])
            text = draw_text(board, position, rules)
            for field in dataclasses.fields(position):
                changed = dataclasses.replace(position, **{field.name: getattr(other, field.name)})
                same_text = draw_text(board, changed, rules) == text
                assert same_text == (comparable(changed) == comparable(position)), field.name


def test_the_headline_has_turn_and_last_action() -> None:
    game = Game(3, seed=1)
    parts = drawn_parts(game)
    assert parts["lit-city"] == parts["lit-panels"] == ""
    assert "No moves yet" in game_svg(game)
    mover = game.current_player
    game.step(game.legal_actions()[0])
    drawing = game_svg(game)
    assert f"Last: seat {mover}, erect house" in drawing
    assert f"seat {game.current_player} to move, 1 building to go" in drawing
    assert "glow" in drawn_parts(game, (mover, game.history[-1]))["lit-city"]
    over = played(3, seed=2)
    assert f"seat {over.ranking().index(0)} wins with " in game_svg(over)
    assert "The last time stone is taken. Last: seat" in describe_last(
        over.board, dataclasses.replace(over.position(), ending="time_stones"), (0, 302)
    )
    position = over.position()
    unknown = draw_svg(over.board, position, over.rules)  # without the last action
    assert unknown != game_svg(over)
    assert "No moves yet" not in unknown
    text = draw_text(over.board, position, over.rules)
    assert headline(position).lower() in text.lower()
    assert text == game_text(over)


def test_the_marker_being_resolved_has_a_ring_and_the_headline_its_power() -> None:
    game, phases = played(5, seed=3), set()
    now = at_ply(game, 0)
    for action in game.history:
        position, parts = now.position(), drawn_parts(now)
        rings = [name for name, part in parts.items() if 'class="acting"' in part]
        if position.resolving >= 0:
            row = RESOLVED_IN[now.phase]
            assert position.spaces[row][position.resolving] == now.current_player
            x, y = space_centre(now.rules, row, position.resolving)
            assert rings == [f"action-{row}"]
            assert f'<circle cx="{x:g}" cy="{y:g}" r="13" class="acting"/>' in parts[rings[0]]
        else:
            assert rings == []
        rest = re.search(r", (\d+) \w+ to go$", headline(position))
        assert bool(rest) == (position.power > 0)
        phases |= {now.phase} if rest else set()
        now.step(action)
    assert phases == set(POWER_WORDS)


def test_every_kind_of_last_action_is_highlighted() -> None:
    kinds = set()
    game = played(4, seed=5)
    now = at_ply(game, 0)
    for action in game.history:
        seat, phase = now.current_player, now.phase
        now.step(action)
        parts = drawn_parts(now, (seat, action))
        assert ("glow" in parts["lit-city"]) != ("glow" in parts["lit-panels"])
        kinds.add(phase)
    assert kinds == set(Phase) - {Phase.OVER}


def test_the_window_shows_the_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window, pixels = DisplayWindow(), draw_pixels(game_svg(Game(3, seed=1)))
    window.show(pixels)
    shown = pygame.surfarray.array3d(pygame.display.get_surface())
    assert (shown.transpose(1, 0, 2) == pixels).all()
    window.close()
    assert not pygame.display.get_init()


def test_render_modes_of_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    render_test(bus_v0.env)
    env = gymnasium.make("busenv/Bus-v0", render_mode="rgb_array", illegal="lose").unwrapped
    assert {*env.metadata["render_modes"]} == {"ansi", "rgb_array", "human"}
    check_env(env)  # in every mode
    env.close()


def test_a_player_without_markers_is_out_and_not_passed() -> None:
    game = played(3, seed=1)
    now = at_ply(game, 0)
    while now.phase != Phase.SELECT_ACTIONS:
        now.step(now.legal_actions()[0])
    position = dataclasses.replace(now.position(), choosing=[0], action_markers=[3, 0, 2])
    rows = draw_players(position)
    assert ["passed" in row for row in rows] == [False, False, True]
    assert [">out<" in row for row in rows] == [False, True, False]
