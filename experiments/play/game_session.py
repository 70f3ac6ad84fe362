"""A game that people and agents play, and may take back: what may be done, and by whom.

Nothing here waits for anybody; `busenv.experiments.play.session` lets the agents decide, and tells
the pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from busenv import Board, IllegalActionError, Record
from busenv.experiments.play.game_store import Header, Line
from busenv.experiments.play.game_tree import GameTree, Node
from busenv.experiments.play.messages import Refusal

PACE = 0.6  # seconds at least between moves that go by themselves, at first
Waiting = Literal["over", "paused", "forced", "agent", "person"]


@dataclass(frozen=True)
class Place:
    """Who holds a link. role: "host" began the game, "seat" is a friend's, "watch" a spectator."""

    role: Literal["host", "seat", "watch"]
    seats: tuple[int, ...]
    token: str


class Table:
    """A game, where it stands in its tree of decisions, and who sits there.

    keep: called with what is to be kept of every change (`store.Line`), before anybody hears of it.
    version: counts the changes. trouble: why an agent could not decide. news: who changed what by
    hand last. moved: when the position changed last, in seconds of `time.monotonic`.
    """

    def __init__(
        self, header: Header, board: Board, keep: Callable[[dict[str, Any]], None]
    ) -> None:
        self.header, self._keep = header, keep
        self.tree = GameTree(Record.from_dict(header.record), board)
        if len(header.seats) != self.tree.begin.players:
            raise ValueError(f"{len(header.seats)} seats for {self.tree.begin.players} players")
        self.seats = list(header.seats)
        self.node, self.version, self.pace = 0, 0, PACE
        self.paused, self.trouble = False, ""
        self.news: dict[str, Any] | None = None
        self.moved = time.monotonic()
        self.places = _places(header)

    def replay(self, lines: Sequence[Line]) -> None:
        """Let happen again what was kept; ValueError when it cannot have happened."""
        for line in lines:
            if line.seat is not None:
                self._check_seat(line.seat)
                name = line.name or ""
                self.seats[line.seat] = self.seats[line.seat].model_copy(update={"name": name})
            elif line.stand is not None:
                self._find(line.stand)
                self.tree.pass_through(line.stand)
                self.node, self.paused = line.stand, line.paused
            else:
                if line.parent is None or line.action is None:
                    raise ValueError("a line tells of nothing")
                self._find(line.parent)
                self.node, self.paused = self.tree.add(line.parent, line.action), False

    @property
    def now(self) -> Node:
        """Where the game stands."""
        return self.tree.nodes[self.node]

    @property
    def waiting(self) -> Waiting:
        """What the game waits for."""
        if self.now.turn < 0:
            return "over"
        if not self._moves_by_itself(self.now):
            return "person"
        if self.paused:
            return "paused"
        return "forced" if self.now.ways == 1 else "agent"

    def decide(self, place: Place, node: int, action: int) -> None:
        """A person's decision. Refusals: only_watching, game_over, stale, not_your_turn,
        illegal_action."""
        _check_player(place)
        self._check_node(node)
        if self.now.turn < 0:
            raise Refusal("game_over", "The game is over.")
        if self.now.turn not in place.seats:
            raise Refusal("not_your_turn", f"It is the turn of seat {self.now.turn}.")
        self._play(action)

    def advance(self, action: int) -> None:
        """A decision that needs nobody: an agent's, or the only one."""
        self._play(action)

    def _play(self, action: int) -> None:
        known = len(self.tree.nodes)
        try:
            child = self.tree.add(self.node, action)
        except IllegalActionError as error:
            raise Refusal("illegal_action", str(error)) from None
        try:
            self._keep({"parent": self.node, "action": action})
        except OSError:  # as if it had not been decided
            self.tree.forget(known)
            raise
        self._stand(child, paused=False, news=None)

    def undo(self, place: Place, node: int) -> None:
        """Back to before the last decision of a person. Refusals: only_watching, stale,
        nothing_to_undo."""
        _check_player(place)
        self._check_node(node)
        if (target := self._before()) is None:
            raise Refusal("nothing_to_undo", "There is nothing to take back.")
        self._move_to(target, place, "undo")

    def redo(self, place: Place, node: int) -> None:
        """Forward to a person's next decision, or to the end of the line. Refusals: only_watching,
        stale, nothing_to_redo."""
        _check_player(place)
        self._check_node(node)
        if (target := self._after()) is None:
            raise Refusal("nothing_to_redo", "There is nothing to play again.")
        self._move_to(target, place, "redo")

    def go(self, place: Place, node: int, to: int) -> None:
        """Stand at any node; agents wait there. Refusals: only_watching, stale, no_such_node."""
        _check_player(place)
        self._check_node(node)
        self.find(to)
        self._move_to(to, place, "go")

    def find(self, node: int) -> Node:
        """A node by its number; Refusal no_such_node."""
        if not 0 <= node < len(self.tree.nodes):
            raise Refusal("no_such_node", f"There is no node {node} in this game.")
        return self.tree.nodes[node]

    def pause(self, place: Place, on: bool) -> None:
        """Let agents wait, or go on, also after trouble. Refusal: only_watching."""
        _check_player(place)
        self._keep({"stand": self.node, "paused": on})
        self._stand(self.node, paused=on, news=_news(place, "pause" if on else "on"))

    def set_pace(self, place: Place, seconds: float) -> None:
        """Seconds at least between moves that go by themselves. Refusal: only_watching."""
        _check_player(place)
        self.pace = seconds
        self._stand(self.node, self.paused, _news(place, "pace"))

    def rename(self, place: Place, seat: int, name: str) -> None:
        """Give a person's seat a name. Refusal: not_your_seat."""
        if seat not in place.seats:
            raise Refusal("not_your_seat", f"Seat {seat} is not yours to name.")
        self._keep({"seat": seat, "name": name})
        self.seats[seat] = self.seats[seat].model_copy(update={"name": name})

    def fail(self, words: str) -> None:
        """An agent could not decide: it waits until somebody lets it try again."""
        self._stand(self.node, paused=True, news=None)
        self.trouble = words

    def can_undo(self) -> bool:
        return self._before() is not None

    def can_redo(self) -> bool:
        return self._after() is not None

    def _before(self) -> int | None:
        """Where a person decided last before here; in a game of agents the node before."""
        node, nodes = self.now.parent, self.tree.nodes
        while node >= 0 and not self._stops(nodes[node]):
            node = nodes[node].parent
        return node if node >= 0 else None

    def _after(self) -> int | None:
        """Where a person decides next on the line shown, or its end; None at the end."""
        node, nodes = self.now.latest, self.tree.nodes
        if node < 0:
            return None
        while nodes[node].latest >= 0 and not self._stops(nodes[node]):
            node = nodes[node].latest
        return node

    def _stops(self, node: Node) -> bool:
        """Whether a person had a choice at a node; where no persons play, anybody."""
        if all(seat.kind == "agent" for seat in self.seats):
            return True
        return node.turn >= 0 and not self._moves_by_itself(node)

    def _move_to(self, node: int, place: Place, what: str) -> None:
        persons = any(seat.kind != "agent" for seat in self.seats)
        paused = (what == "go" or not persons) and self._moves_by_itself(self.tree.nodes[node])
        self._keep({"stand": node, "paused": paused})
        self.tree.pass_through(node)
        self._stand(node, paused, _news(place, what))

    def _moves_by_itself(self, node: Node) -> bool:
        """Whether the game goes on at a node without a person."""
        return node.turn >= 0 and (node.ways == 1 or self.seats[node.turn].kind == "agent")

    def _stand(self, node: int, paused: bool, news: dict[str, Any] | None) -> None:
        if node != self.node:
            self.moved = time.monotonic()
        self.node, self.paused, self.news, self.trouble = node, paused, news, ""
        self.version += 1

    def _check_node(self, node: int) -> None:
        if node != self.node:
            raise Refusal("stale", "The game has moved on.")

    def _find(self, node: int) -> None:
        if node >= len(self.tree.nodes):
            raise ValueError(f"there is no node {node} yet")

    def _check_seat(self, seat: int) -> None:
        if seat >= len(self.seats):
            raise ValueError(f"there is no seat {seat}")


def _check_player(place: Place) -> None:
    if place.role == "watch":
        raise Refusal("only_watching", "Spectators see the game, but cannot change it.")


def _news(place: Place, what: str) -> dict[str, Any]:
    return {"seat": place.seats[0] if place.seats else None, "role": place.role, "what": what}


def _places(header: Header) -> dict[str, Place]:
    """Who holds which link, by token."""
    mine = tuple(seat for seat, chair in enumerate(header.seats) if chair.kind == "me")
    found = [Place("host", mine, header.tokens.host), Place("watch", (), header.tokens.watch)]
    for seat, (chair, token) in enumerate(zip(header.seats, header.tokens.seats, strict=True)):
        if (chair.kind == "friend") != (token is not None):
            raise ValueError(f"seat {seat} is a {chair.kind}'s; only friends have a link of theirs")
        if token is not None:
            found.append(Place("seat", (seat,), token))
    return {place.token: place for place in found}
