"""The messages that pages receive, as plain JSON values."""

from __future__ import annotations

from typing import Any

from busenv import Building, Phase
from busenv.agents.specs import short_spec
from busenv.game.actions import decode
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.play.agent_pool import PositionAnalysis
from busenv.play.catalogue import agent_name
from busenv.play.game_session import GameSession
from busenv.play.game_store import Participant
from busenv.play.game_tree import GameNode, GameTree
from busenv.play.messages import Seat
from busenv.render.click_targets import click_targets, target_shapes
from busenv.render.layout import scaled_layout
from busenv.render.phrases import (
    ENDING_WORDS,
    POWER_WORDS,
    count,
    describe_move,
    headline,
    headline_seat,
    merge_moves,
    remaining,
)
from busenv.render.pieces import BUILDINGS
from busenv.render.replay import MIN_SHARE
from busenv.render.svg import CITY, PANELS, describe_last, draw_map, draw_panels

DRAWING = {  # panels_from: the first part of the panels
    "view_boxes": {"city": CITY, "panels": PANELS},
    "panels_from": "frames",
    "buildings": {kind.name.lower(): BUILDINGS[kind] for kind in Building},
}
MAX_BEST_MOVES = 5  # of an estimate
PROMPTS = {
    Phase.SETUP_BUILDINGS: "Choose a site for your next building",
    Phase.SETUP_FIRST_LINE: "Choose the first street of your line",
    Phase.SETUP_SECOND_LINE: "Choose the second street of your line",
    Phase.SELECT_ACTIONS: "Place a marker on an action",
    Phase.LINE_EXPANSION: "Choose a street to extend your line",
    Phase.PASSENGERS: "Choose how many of the arriving passengers each station receives",
    Phase.BUILDINGS: "Choose a site to build on",
    Phase.CLOCK: "Let time advance, or stop it and take a time stone",
    Phase.PICK_UP: "Choose where your next bus picks up a passenger",
    Phase.SET_DOWN: "Choose where the bus sets the passenger down",
}


def node_entry(tree: GameTree, node: int) -> dict[str, Any]:
    """A node for the list of moves."""
    entry, is_start = tree.nodes[node], node == 0
    return {
        "id": node,
        "parent": None if is_start else entry.parent,
        "seat": entry.seat,
        "text": "start" if is_start else describe(tree, entry.parent, entry.action),
        "ply": entry.ply,
        "round": entry.round,
        "turn": entry.turn,
        "forced": entry.forced,
        "delivery": None if is_start else _delivery(tree.board, entry.action),
    }


def _delivery(board: Board, action: int) -> list[float] | None:
    """Where on the map an action delivers a passenger, if it does."""
    kind, subject, _ = decode(board, action)
    return [*scaled_layout(board).intersections[subject]] if kind == "set_down" else None


def view(tree: GameTree, node: int) -> dict[str, Any]:
    """The drawing at a node."""
    board, rules, entry = tree.board, tree.start.rules, tree.nodes[node]
    is_start, position = node == 0, tree.position_game(node).position()
    last = None if is_start else (entry.seat, entry.action)
    before = None if is_start else tree.position_game(entry.parent).position()
    return {
        "type": "view",
        "node": node,
        "seat": headline_seat(position),
        "headline": headline(position),
        "last": describe_last(board, position, last, before),
        "parts": draw_map(board, position, last) | draw_panels(board, position, rules, last),
    }


def state(game: GameSession, participant: Participant) -> dict[str, Any]:
    """The state of a game, with the choices of a participant."""
    tree, current, status = game.tree, game.current, game.status
    now = tree.position_game(game.node)
    position = now.position()
    yours = current.turn in participant.seats and status == "person"
    is_host = participant.role == "host"
    targets: list[dict[str, Any]] = []
    if yours:
        targets = click_targets(tree.board, tree.start.rules, position, now.legal_actions())
    turn = {
        "seat": current.turn,
        "yours": yours,
        "phase": position.phase.name,
        "prompt": _prompt(position, current) if current.turn >= 0 else "",
    }
    return {
        "type": "state",
        "node": game.node,
        "variation": tree.variation(game.node),
        "turn": turn if current.turn >= 0 else None,
        "targets": targets,
        "status": status,
        "paused": game.paused,
        "delay": game.delay,
        "can_undo": is_host and game.undo_target() is not None,
        "can_redo": is_host and game.redo_target() is not None,
        "failure": game.failure or None,
        "last_change": game.last_change or None,
        "result": _result(position) if status == "over" else None,
    }


def _prompt(position: Position, node: GameNode) -> str:
    """What the seat to decide has to do."""
    text = PROMPTS[position.phase]
    if position.phase in POWER_WORDS and (left := remaining(position)) > 1:
        rest = "" if position.phase == Phase.PASSENGERS else " left"
        text += f" ({count(left, POWER_WORDS[position.phase])}{rest})"
    may_pass = position.phase == Phase.SELECT_ACTIONS and position.placed[node.turn] >= 2
    return text + (", or pass" if may_pass else "")


def _result(position: Position) -> dict[str, Any]:
    return {
        "ending": ENDING_WORDS[position.ending],
        "ranking": position.ranking,
        "points": position.points,
        "deliveries": position.deliveries,
        "time_stones": position.time_stones,
    }


def init(game: GameSession, participant: Participant, host_info: dict[str, Any]) -> dict[str, Any]:
    """The first message to a page. host_info: the links, which only the host receives."""
    return {
        "type": "init",
        **DRAWING,
        "edition": game.tree.start.rules.name,
        "board": game.tree.board.name,
        "you": {"role": participant.role, "seats": [*participant.seats]},
        **(host_info if participant.role == "host" else {"links": None, "addresses": []}),
    }


def participants(
    game: GameSession, participant: Participant, holders: list[Participant]
) -> dict[str, Any]:
    """The players' names, and how many pages are open. holders: of the open pages."""
    seats = []
    for k, seat in enumerate(game.seats):
        yours = seat.kind != "agent" and k in participant.seats and not seat.name
        seats.append(
            {
                "seat": k,
                "kind": seat.kind,
                "name": "you" if yours else seat_name(seat, k),
                "spec": short_spec(seat.spec) if seat.spec else None,
                "connections": sum(k in holder.seats for holder in holders),
            }
        )
    spectators = sum(holder.role == "spectator" for holder in holders)
    return {"type": "participants", "seats": seats, "spectators": spectators}


def seat_name(seat: Seat, k: int) -> str:
    """The name of the player at a seat, for everybody."""
    return seat.name or (agent_name(seat.spec) if seat.spec else f"player {k}")


def describe(tree: GameTree, node: int, action: int) -> str:
    """An action at a node in words."""
    return describe_move(tree.board, tree.position_game(node).position(), action)


def estimate(tree: GameTree, node: int, value: PositionAnalysis) -> dict[str, Any]:
    """An agent's estimate of the position at a node; its best moves with their shapes."""
    position = tree.position_game(node).position()
    moves = merge_moves(tree.board, position, value.best_actions)
    return {
        "node": node,
        "chances": [round(chance, 4) for chance in value.chances],
        "best_moves": [
            {
                "action": action,
                "text": words,
                "share": round(share, 4),
                **target_shapes(tree.board, tree.start.rules, position, action),
            }
            for words, action, share in moves[:MAX_BEST_MOVES]
            if share >= MIN_SHARE
        ],
    }
