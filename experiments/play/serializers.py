"""What a page is told of a game, as plain JSON values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from busenv import Phase
from busenv.experiments.play.agent_pool import Opinion
from busenv.experiments.play.catalogue import ANALYSTS, helpers_of, short_spec
from busenv.experiments.play.game_session import Place, Table
from busenv.experiments.play.game_tree import GameTree, Node, game_of
from busenv.game.actions import describe_action
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render.click_targets import click_targets, target_shapes
from busenv.render.phrases import ENDING_WORDS, POWER_WORDS, count, headline
from busenv.render.pieces import BUILDINGS, BUS, PAWN
from busenv.render.svg import CITY, PANELS, Decision, describe_last, draw_map, draw_panels

DRAWING = {  # how positions are drawn, and by which version of the protocol they are told
    "protocol": 1,
    "views": {"city": CITY, "panels": PANELS},
    "pieces": {"buildings": [*BUILDINGS], "pawn": PAWN, "bus": BUS},
}
LEAST_SHARE = 0.005  # of a favourite that is shown: a per cent, rounded
ASK_WORDS = {
    Phase.SETUP_BUILDINGS: "Choose a site for one of your first buildings",
    Phase.SETUP_FIRST_LINE: "Choose the street where your line begins",
    Phase.SETUP_SECOND_LINE: "Choose the second street of your line",
    Phase.SELECT_ACTIONS: "Place a marker on an action",
    Phase.LINE_EXPANSION: "Choose the street by which your line grows",
    Phase.PASSENGERS: "Share the arriving passengers out to the two stations",
    Phase.BUILDINGS: "Choose a site to build on",
    Phase.CLOCK: "Let time advance, or stop it for a time stone",
    Phase.PICK_UP: "Choose where a bus picks up a passenger",
    Phase.SET_DOWN: "Choose where the bus sets the passenger down",
}


def entry(tree: GameTree, node: int) -> dict[str, Any]:
    """A node for the page's list of moves."""
    found = tree.nodes[node]
    begun = node == 0
    return {
        "id": node,
        "parent": None if begun else found.parent,
        "seat": found.seat,
        "action": None if begun else found.action,
        "words": "start" if begun else describe_action(tree.board, found.action),
        "ply": found.ply,
        "round": found.round,
        "turn": found.turn,
        "points": found.points,
        "forced": found.forced,
        "over": found.turn < 0,
    }


@lru_cache(maxsize=256)
def _drawn(
    board: Board, rules: Rules, state: bytes, last: Decision | None
) -> tuple[dict[str, str], Position]:
    """The parts of the drawing of a position, and the position; remembered, since pages ask for
    the same ones, and changes are told against the position before."""
    position = game_of(state, rules, board).position()
    parts = draw_map(board, position, last) | draw_panels(board, position, rules, last)
    return parts, position


def _draw(tree: GameTree, node: int) -> tuple[dict[str, str], Position]:
    found = tree.nodes[node]
    last = (found.seat, found.action) if found.parent >= 0 else None
    return _drawn(tree.board, tree.begin.rules, found.state, last)


def view(tree: GameTree, node: int, base: int | None) -> dict[str, Any]:
    """The picture at a node: all of its parts, or those in which it differs from another node's."""
    parts, position = _draw(tree, node)
    found = tree.nodes[node]
    last = (found.seat, found.action) if found.parent >= 0 else None
    over = position.phase == Phase.OVER
    shown = {
        "type": "view",
        "node": node,
        "base": base,
        "seat": position.ranking.index(0) if over else position.current_player,
        "headline": headline(position),
        "last": describe_last(tree.board, position, last),
    }
    if base is None:
        return {**shown, "panels_from": "frames", "parts": parts}
    before, _ = _draw(tree, base)
    changed = {name: part for name, part in parts.items() if part != before[name]}
    return {**shown, "parts": changed}


def state(table: Table, place: Place) -> dict[str, Any]:
    """Where a game stands, for who holds a link."""
    tree, now, waiting = table.tree, table.now, table.waiting
    _, position = _draw(tree, table.node)
    yours = now.turn in place.seats
    turn = None
    if now.turn >= 0:
        turn = {
            "seat": now.turn,
            "kind": table.seats[now.turn].kind,
            "yours": yours,
            "phase": position.phase.name,
            "ask": _ask(position, now),
        }
    offered: list[dict[str, Any]] = []
    if yours and waiting == "person":
        actions = tree.position_game(table.node).legal_actions()
        offered = click_targets(tree.board, tree.begin.rules, position, actions)
    return {
        "type": "state",
        "version": table.version,
        "node": table.node,
        "line": tree.line(table.node),
        "turn": turn,
        "spots": offered,
        "thinking": waiting == "agent",
        "forced": waiting == "forced",
        "paused": table.paused,
        "pace": table.pace,
        "undo": place.role != "watch" and table.can_undo(),
        "redo": place.role != "watch" and table.can_redo(),
        "trouble": table.trouble or None,
        "news": table.news,
        "over": waiting == "over",
        "result": _result(position) if waiting == "over" else None,
    }


def _ask(position: Position, node: Node) -> str:
    """What the seat to decide is asked for."""
    words = ASK_WORDS[position.phase]
    if position.phase in POWER_WORDS and position.power > 1:
        words += f", {count(position.power, POWER_WORDS[position.phase])} to go"
    passing = position.phase == Phase.SELECT_ACTIONS and position.placed[node.turn] >= 2
    return words + (", or pass" if passing else "")


def _result(position: Position) -> dict[str, Any]:
    return {
        "ending": ENDING_WORDS[position.ending],
        "ranking": position.ranking,
        "points": position.points,
        "deliveries": position.deliveries,
        "time_stones": position.time_stones,
    }


def hello(table: Table, place: Place, for_host: dict[str, Any]) -> dict[str, Any]:
    """The first that a page is told. for_host: links and addresses, which only the host is told."""
    begin = table.tree.begin
    helpers = helpers_of(chair.spec for chair in table.seats)
    return {
        "type": "hello",
        **DRAWING,
        "you": {"role": place.role, "seats": [*place.seats]},
        "game": {
            "id": table.header.id,
            "players": begin.players,
            "rules": begin.rules.name,
            "board": begin.board["name"],
            "first_player": begin.first_player,
            "seed": str(begin.seed),
            "begun": table.header.begun,
        },
        **(for_host if place.role == "host" else {"links": None, "addresses": []}),
        "helpers": helpers,
        "analysts": [*ANALYSTS],
    }


def who(table: Table, place: Place, here: dict[str, int]) -> dict[str, Any]:
    """Who sits where, and how many connections each has. here: by token."""
    seats = []
    for seat, chair in enumerate(table.seats):
        holders = [
            token
            for token, one in table.places.items()
            if seat in one.seats and one.role != "watch"
        ]
        spec = short_spec(chair.spec) if chair.spec else None
        person = "you" if seat in place.seats else f"player {seat}"
        seats.append(
            {
                "seat": seat,
                "kind": chair.kind,
                "name": chair.name or spec or person,
                "spec": spec,
                "here": sum(here.get(token, 0) for token in holders),
            }
        )
    watching = sum(count for token, count in here.items() if table.places[token].role == "watch")
    return {"type": "who", "seats": seats, "watching": watching}


def opinion(tree: GameTree, node: int, found: Opinion) -> dict[str, Any]:
    """What an agent makes of a position: chances, and favourite moves with their marks."""
    chances, favourites, _ = found
    _, position = _draw(tree, node)
    return {
        "node": node,
        "chances": [round(chance, 4) for chance in chances],
        "favourites": [
            {
                "action": action,
                "words": describe_action(tree.board, action),
                "share": round(share, 4),
                **target_shapes(tree.board, tree.begin.rules, position, action),
            }
            for action, share in favourites
            if share >= LEAST_SHARE
        ],
    }
