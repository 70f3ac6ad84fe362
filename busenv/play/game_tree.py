"""The tree of decisions of a game in which players can undo.

Nodes are numbered in order of creation; node 0 is the start.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from busenv import Board, Game, Record
from busenv.core.state import GAME


@dataclass(slots=True)
class GameNode:
    """A decision and the position after it.

    parent, action, seat: -1 at the start. forced: whether the action was the only legal one.
    turn: the seat to decide next, -1 when the game is over. legal_count: the number of legal
    actions of that seat. state: the position as bytes of a GAME record. children: nodes by action.
    latest: the child that was visited last, -1 for none.
    """

    parent: int
    action: int
    seat: int
    forced: bool
    ply: int
    round: int
    turn: int
    legal_count: int
    state: bytes
    children: dict[int, int] = field(default_factory=dict)
    latest: int = -1


class GameTree:
    """All decisions made in a game, branches included.

    start: the record of the game before the first action.
    """

    def __init__(self, start: Record, board: Board) -> None:
        self.start, self.board = start, board
        self.nodes = [_make_node(Game.begin_record(start, board), -1, -1, -1, False, 0)]

    def add(self, parent: int, action: int) -> int:
        """Return the node after a decision, and add it if it is new.

        IllegalActionError if the action is not legal at `parent`; nothing is added then.
        """
        before = self.nodes[parent]
        if action not in before.children:
            game = self.position_game(parent)
            game.step(action)
            forced = before.legal_count == 1
            node = _make_node(game, parent, action, before.turn, forced, before.ply + 1)
            before.children[action] = len(self.nodes)
            self.nodes.append(node)
        before.latest = before.children[action]
        return before.latest

    def position_game(self, node: int) -> Game:
        """The position at a node as a game with an empty history."""
        state = np.ndarray((1,), GAME, bytearray(self.nodes[node].state))
        return Game.from_state(state, self.start.rules, self.board)

    def path(self, node: int) -> list[int]:
        """The nodes from the start to a node."""
        nodes = [node]
        while (node := self.nodes[node].parent) >= 0:
            nodes.append(node)
        return nodes[::-1]

    def variation(self, node: int) -> list[int]:
        """The path to a node, continued by the children that were visited last."""
        nodes = self.path(node)
        while (node := self.nodes[node].latest) >= 0:
            nodes.append(node)
        return nodes

    def select(self, node: int) -> None:
        """Make the variations of all ancestors of a node contain the node."""
        while (parent := self.nodes[node].parent) >= 0:
            self.nodes[parent].latest = node
            node = parent

    def record(self, node: int) -> Record:
        """The record of the game up to a node."""
        actions = tuple(self.nodes[k].action for k in self.path(node)[1:])
        over = self.nodes[node].turn < 0
        result = self.position_game(node).record().result if over else None
        return dataclasses.replace(self.start, actions=actions, result=result)

    def game(self, node: int) -> Game:
        """The game at a node, with its history."""
        return Game.from_record(self.record(node), self.board)


def _make_node(game: Game, parent: int, action: int, seat: int, forced: bool, ply: int) -> GameNode:
    return GameNode(
        parent,
        action,
        seat,
        forced,
        ply,
        game.round,
        game.current_player,
        len(game.legal_actions()),
        game.arrays()[0].tobytes(),
    )
