"""Click targets: every legal action of whole games, and no other."""

import dataclasses
import random

import pytest

import busenv
from busenv import Rules
from busenv.core.state import BoardAction, Building, Phase
from busenv.game.actions import KINDS, Move, decode, encode
from busenv.render.click_targets import click_targets, target_shapes
from busenv.render.layout import scaled_layout
from busenv.render.phrases import describe_move, merge_moves
from busenv.render.svg import CITY, PANELS
from tests.support.positions import at_passengers

BOXES = {"city": CITY, "panels": PANELS}


def inside(shape: dict, box: tuple[int, ...]) -> bool:
    left, top, width, height = box
    x, y = (shape["x1" if shape["kind"] == "line" else "x"], shape.get("y1", shape.get("y")))
    ends = (shape.get("x2", x + shape.get("width", 0)), shape.get("y2", y + shape.get("height", 0)))
    points = [(x, y), ends]
    return all(left <= x <= left + width and top <= y <= top + height for x, y in points)


@pytest.mark.parametrize(("players", "rules"), [(3, "condensed"), (5, "capstone-2024")])
def test_every_legal_action_has_a_target_on_the_drawing(players: int, rules: str) -> None:
    game, rng = busenv.Game(players, rules, seed=players), random.Random(players)
    phases = set()
    while not game.is_over:
        legal = game.legal_actions()
        position = game.position()
        targets = click_targets(game.board, game.rules, position, legal)
        assert (
            sorted(choice["action"] for target in targets for choice in target["choices"]) == legal
        )
        assert len({target["id"] for target in targets}) == len(targets)
        for target in targets:
            for shape in [*target["shapes"], *(s for c in target["choices"] for s in c["shapes"])]:
                assert inside(shape, BOXES[target["in"]]), target
            assert len({choice["short"] for choice in target["choices"]}) == len(target["choices"])
        phases.add(game.phase)
        game.step(rng.choice(legal))
    assert phases == {*Phase} - {Phase.OVER}


def test_targets_are_where_the_pieces_are_drawn() -> None:
    game = busenv.Game(4, first_player=0)
    layout = scaled_layout(game.board)
    for target in click_targets(game.board, game.rules, game.position(), game.legal_actions()):
        site = int(target["id"].removeprefix("site-"))
        x, y = layout.sites[site]
        assert target["shapes"][0] | {"r": 0} == {
            "kind": "circle",
            "x": pytest.approx(x, abs=0.1),
            "y": pytest.approx(y, abs=0.1),
            "r": 0,
        }
        assert [choice["short"] for choice in target["choices"]] == ["house", "office", "pub"]
    for action in range(149, 289):
        _, street, way = decode(game.board, action)
        (line,) = target_shapes(game.board, game.rules, game.position(), action)["shapes"]
        x, y = layout.intersections[game.board.streets[street][way]]
        near = abs(line["x1"] - x) + abs(line["y1"] - y)
        assert near < abs(line["x2"] - x) + abs(line["y2"] - y)  # from where the line's end is


def test_moves_are_described_by_what_the_drawing_shows() -> None:
    game = at_passengers()
    position = game.position()
    assert (position.power, position.supply) == (2, 11)
    words = {
        Move("place", BoardAction.VRROOOMM): "place marker on Vrrooomm!",
        Move("pass"): "pass",
        Move("build", 5, Building.PUB): "erect pub at intersection 16, zone 1",
        Move("grow", 33, 0): "grow line 14→20",
        Move("grow", 33, 1): "grow line 20→14",
        Move("split", 0): "passengers: 2 to station 25",
        Move("split", 1): "passengers: 1 to station 10, 1 to station 25",
        Move("split", 2): "passengers: 2 to station 10",
        Move("clock", 0): "let time advance",
        Move("clock", 1): "stop time",
        Move("pick_up", 9): "pick up a passenger at intersection 9",
        Move("set_down", 9): "set the passenger down at intersection 9",
    }
    assert {move.kind for move in words} == {*KINDS}
    actions = [encode(game.board, move) for move in words]
    assert [describe_move(game.board, position, action) for action in actions] == [*words.values()]
    targets = click_targets(game.board, game.rules, position, actions)
    choices = {c["action"]: c["words"] for target in targets for c in target["choices"]}
    assert choices == dict(zip(actions, words.values(), strict=True))


def test_notes_state_the_effect_of_a_marker() -> None:
    game = busenv.Game(5, first_player=0, seed=1)
    while game.phase != Phase.SELECT_ACTIONS:
        game.step(game.legal_actions()[0])

    def notes() -> dict[BoardAction, str]:
        targets = click_targets(game.board, game.rules, game.position(), game.legal_actions())
        placed = {c["action"]: c["note"] for target in targets for c in target["choices"]}
        return {BoardAction(action): note for action, note in placed.items() if action < 7}

    while_one = "while no player has more than 1 bus"
    assert notes() == {
        BoardAction.LINE_EXPANSION: f"space A: up to 2 streets {while_one}",
        BoardAction.BUSES: "you will have 2 buses",
        BoardAction.PASSENGERS: f"space A: up to 1 passenger {while_one}",
        BoardAction.BUILDINGS: f"space A: up to 1 building {while_one}",
        BoardAction.CLOCK: "stop time or let it advance",
        BoardAction.VRROOOMM: "space A: your bus carries one passenger",
        BoardAction.STARTING_PLAYER: "start the next round",
    }
    game.step(BoardAction.PASSENGERS)
    assert notes()[BoardAction.PASSENGERS] == f"space B: no passenger {while_one}"


def test_notes_state_that_a_marker_has_no_effect() -> None:
    game = busenv.Game(3, Rules(bus_limit=1, line_markers=(2,) * 5), first_player=0, seed=1)
    while game.phase != Phase.SELECT_ACTIONS:
        game.step(game.legal_actions()[0])
    emptied = dataclasses.replace(game.position(), supply=0, buildings=[0] * len(game.board.sites))
    targets = click_targets(game.board, game.rules, emptied, game.legal_actions())
    notes = {c["action"]: c["note"] for target in targets for c in target["choices"]}
    assert notes[BoardAction.BUSES] == "no effect: you have the maximum of 1 bus"
    assert notes[BoardAction.LINE_EXPANSION] == "no effect: no line markers are left"
    assert notes[BoardAction.PASSENGERS] == "no effect: no passengers in the supply are left"
    assert notes[BoardAction.BUILDINGS] == "no effect: no free sites are left"


def test_moves_of_equal_words_are_merged() -> None:
    game = busenv.Game(3, seed=1)
    places = [(site.intersection, site.zone) for site in game.board.sites]
    first = next(k for k, place in enumerate(places) if place in places[k + 1 :])
    second = places.index(places[first], first + 1)
    other = next(k for k, place in enumerate(places) if place != places[first])
    pub = Building.PUB
    actions = [encode(game.board, Move("build", site, pub)) for site in (other, first, second)]
    shares = zip(actions, (0.4, 0.35, 0.25), strict=True)
    position = game.position()
    words = [describe_move(game.board, position, action) for action in actions]
    assert merge_moves(game.board, position, shares) == [
        (words[1], actions[1], pytest.approx(0.6)),
        (words[0], actions[0], 0.4),
    ]
