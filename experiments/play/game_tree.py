"""The record of a game that may be taken back: a tree of decisions.

Nodes are numbered as they come about; node 0 is the start. The main line goes from it by the first
child always, and is thereby kept whatever is tried later; other children are branches.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from busenv import Board, Game, Record, Rules
from busenv.core.state import GAME


@dataclass
class Node:
    """A decision and what it led to.

    parent, action, seat: -1 at the start. forced: it was the only legal action. state: the position
    after it, as bytes of a GAME record. turn: seat to decide then, -1 when the game is over.
    ways: how many actions are legal then. latest: the child that was played last, -1 for none.
    """

    parent: int
    action: int
    seat: int
    forced: bool
    ply: int
    round: int
    turn: int
    ways: int
    points: list[int]
    state: bytes
    children: dict[int, int] = field(default_factory=dict)  # by action
    latest: int = -1


class GameTree:
    """The decisions of a game from its beginning: a record without actions or result."""

    def __init__(self, begin: Record, board: Board) -> None:
        self.begin, self.board = begin, board
        game = Game.begin_record(begin, board)
        self.nodes = [_node(game, -1, -1, -1, False, 0)]

    def add(self, parent: int, action: int) -> int:
        """The node that a decision leads to, new or known already.

        IllegalActionError, and nothing is added, when it is not legal there.
        """
        before = self.nodes[parent]
        if action in before.children:
            before.latest = before.children[action]
            return before.latest
        game = self.position_game(parent)
        game.step(action)
        self.nodes.append(
            _node(game, parent, action, before.turn, before.ways == 1, before.ply + 1)
        )
        before.latest = before.children[action] = len(self.nodes) - 1
        return before.latest

    def forget(self, known: int) -> None:
        """Take back what was added since the tree had so many nodes: a last one, if any."""
        for node in self.nodes[known:]:
            parent = self.nodes[node.parent]
            del parent.children[node.action]
            parent.latest = max(parent.children.values(), default=-1)
        del self.nodes[known:]

    def position_game(self, node: int) -> Game:
        """The position at a node, as a game whose history begins there."""
        return game_of(self.nodes[node].state, self.begin.rules, self.board)

    def path(self, node: int) -> list[int]:
        """The nodes from the start to a node."""
        found = [node]
        while (node := self.nodes[node].parent) >= 0:
            found.append(node)
        return found[::-1]

    def line(self, node: int) -> list[int]:
        """The path to a node, and on along what was played last from there."""
        found = self.path(node)
        while (node := self.nodes[node].latest) >= 0:
            found.append(node)
        return found

    def main_line(self) -> list[int]:
        """The line that was played first."""
        found = [0]
        while children := self.nodes[found[-1]].children:
            found.append(min(children.values()))
        return found

    def pass_through(self, node: int) -> None:
        """Let the lines shown from now on go through a node."""
        for parent, child in zip(*(self.path(node)[k:] for k in (0, 1)), strict=False):
            self.nodes[parent].latest = child

    def record(self, node: int) -> Record:
        """The line to a node as the record of a game."""
        actions = tuple(self.nodes[k].action for k in self.path(node)[1:])
        begun = dataclasses.replace(self.begin, actions=actions, result=None)
        result = None
        if self.nodes[node].turn < 0:
            result = self.position_game(node).record().result
        return dataclasses.replace(begun, result=result)

    def game(self, node: int) -> Game:
        """The game at a node, with the history that led to it."""
        return Game.from_record(self.record(node), self.board)


def game_of(state: bytes, rules: Rules, board: Board) -> Game:
    """A game whose history begins in a position (`Node.state`)."""
    return Game.from_state(np.ndarray((1,), GAME, bytearray(state)), rules, board)


def _node(game: Game, parent: int, action: int, seat: int, forced: bool, ply: int) -> Node:
    """A node of the game as it stands after the decision."""
    return Node(
        parent,
        action,
        seat,
        forced,
        ply,
        game.round,
        game.current_player,
        len(game.legal_actions()),
        game.points,
        game.arrays()[0].tobytes(),
    )
