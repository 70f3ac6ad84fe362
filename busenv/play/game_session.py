"""A game with people and agents: its current position, its history, and who may change it.

`busenv.play.session` runs the agents and informs the pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from busenv import Board, IllegalActionError, Record
from busenv.play.game_store import GameEvent, GameHeader, Participant
from busenv.play.game_tree import GameNode, GameTree
from busenv.play.messages import RequestError

DEFAULT_DELAY = 0.6  # seconds; "normal" on the page
Status = Literal["over", "paused", "forced", "agent", "person"]


class GameSession:
    """A game tree, the current node in it, and the players.

    save: called with every change (`busenv.play.game_store.GameEvent` as a dict) before
    the change takes effect. delay: minimum seconds between automatic moves. failure: why an agent
    could not decide. last_change: the host's last change other than a decision. moved_at: time of
    the last move (`time.monotonic`).
    """

    def __init__(
        self, header: GameHeader, board: Board, save: Callable[[dict[str, Any]], None]
    ) -> None:
        self.header, self.save = header, save
        self.tree = GameTree(Record.from_dict(header.record), board)
        if len(header.seats) != self.tree.start.players:
            raise ValueError(f"{len(header.seats)} seats for {self.tree.start.players} players")
        self.seats = list(header.seats)
        self.node, self.delay = 0, DEFAULT_DELAY
        self.paused, self.failure, self.last_change = False, "", ""
        self.moved_at = time.monotonic()

    def restore(self, events: Sequence[GameEvent]) -> None:
        """Apply saved events. ValueError if they do not fit the game."""
        try:
            for event in events:
                if event.seat is not None:
                    self._set_name(event.seat, event.name or "")
                elif event.node is not None:
                    self.tree.select(event.node)
                    self.node, self.paused = event.node, event.paused
                elif event.parent is None or event.action is None:
                    raise ValueError("an event has neither a decision, a node nor a name")
                else:
                    self.node = self.tree.add(event.parent, event.action)
        except IndexError:
            raise ValueError("an event names a seat or node that does not exist") from None

    def link(self, role: str, seats: Sequence[int] = ()) -> str | None:
        """The address of a participant's page by role, and by seats of a friend; None for none."""
        for one in self.header.participants:
            if one.role == role and (role != "friend" or one.seats == tuple(seats)):
                return f"/play/{one.token}"
        return None

    @property
    def current(self) -> GameNode:
        """The current node."""
        return self.tree.nodes[self.node]

    @property
    def status(self) -> Status:
        """What the game waits for.

        "over": nothing. "paused": the host. "forced": a forced move. "agent", "person": a decision.
        """
        if self.current.turn < 0:
            return "over"
        if not self._is_automatic(self.current):
            return "person"
        if self.paused:
            return "paused"
        return "forced" if self.current.legal_count == 1 else "agent"

    def decide(self, participant: Participant, node: int, action: int) -> None:
        """Make a person's decision.

        RequestError: only_watching, stale, game_over, not_your_turn, illegal_action.
        """
        if participant.role == "spectator":
            raise RequestError("only_watching", "Spectators cannot change the game.")
        self._check_node(node)
        if self.current.turn < 0:
            raise RequestError("game_over", "The game is over.")
        if self.current.turn not in participant.seats:
            raise RequestError("not_your_turn", f"It is the turn of seat {self.current.turn}.")
        self.advance(action)

    def advance(self, action: int) -> None:
        """Make a decision at the current node. RequestError: illegal_action."""
        try:
            self.tree.position_game(self.node).step(action)
        except IllegalActionError as error:
            raise RequestError("illegal_action", str(error)) from None
        self.save({"parent": self.node, "action": action})
        self._set_current(self.tree.add(self.node, action), self.paused, "")

    def undo_or_redo(
        self, participant: Participant, node: int, direction: Literal["undo", "redo"]
    ) -> None:
        """Move to the previous or next decision of a person in the variation.

        RequestError: only_host, stale, nothing_to_undo, nothing_to_redo.
        """
        _check_host(participant)
        self._check_node(node)
        target = self.undo_target() if direction == "undo" else self.redo_target()
        if target is None:
            raise RequestError(f"nothing_to_{direction}", f"There is nothing to {direction}.")
        self._move_to(target, direction)

    def jump(self, participant: Participant, node: int, target: int) -> None:
        """Continue the game from any node; agents are paused there.

        RequestError: only_host, stale, no_such_node.
        """
        _check_host(participant)
        self._check_node(node)
        self.get_node(target)
        self._move_to(target, "jump")

    def get_node(self, node: int) -> GameNode:
        """Return a node by its number. RequestError: no_such_node."""
        if not 0 <= node < len(self.tree.nodes):
            raise RequestError("no_such_node", f"There is no node {node} in this game.")
        return self.tree.nodes[node]

    def pause(self, participant: Participant, enabled: bool) -> None:
        """Pause the agents, or let them continue. RequestError: only_host."""
        _check_host(participant)
        if enabled != self.paused:
            self.save({"node": self.node, "paused": enabled})
        self._set_current(self.node, enabled, "pause" if enabled else "continue")

    def set_delay(self, participant: Participant, seconds: float) -> None:
        """Set the minimum time between automatic moves. RequestError: only_host."""
        _check_host(participant)
        self.delay, self.last_change = seconds, "delay"

    def rename(self, participant: Participant, seat: int, name: str) -> None:
        """Set a person's name. RequestError: not_your_seat."""
        if seat not in participant.seats:
            raise RequestError("not_your_seat", f"Seat {seat} is not yours.")
        if name == self.seats[seat].name:
            return
        self.save({"seat": seat, "name": name})
        self._set_name(seat, name)

    def fail(self, message: str) -> None:
        """Record that an agent could not decide, and pause until the host continues."""
        self._set_current(self.node, paused=True, change="")
        self.failure = message

    def undo_target(self) -> int | None:
        """The node to which undo moves, if any."""
        nodes, node = self.tree.nodes, self.current.parent
        while node >= 0 and not self._is_stop(nodes[node]):
            node = nodes[node].parent
        return node if node >= 0 else None

    def redo_target(self) -> int | None:
        """The node to which redo moves, if any: a person's decision, or the variation's end."""
        nodes, node = self.tree.nodes, self.current.latest
        if node < 0:
            return None
        while nodes[node].latest >= 0 and not self._is_stop(nodes[node]):
            node = nodes[node].latest
        return node

    def _is_stop(self, node: GameNode) -> bool:
        """Whether undo and redo stop at a node: where people choose; without people, everywhere."""
        return not self._has_people() or (node.turn >= 0 and not self._is_automatic(node))

    def _is_automatic(self, node: GameNode) -> bool:
        """Whether the next move at a node needs no person."""
        return node.turn >= 0 and (node.legal_count == 1 or self.seats[node.turn].kind == "agent")

    def _has_people(self) -> bool:
        return any(seat.kind != "agent" for seat in self.seats)

    def _move_to(self, node: int, change: str) -> None:
        may_pause = change == "jump" or not self._has_people()
        paused = self.paused or (may_pause and self._is_automatic(self.tree.nodes[node]))
        self.save({"node": node, "paused": paused})
        self.tree.select(node)
        self._set_current(node, paused, change)

    def _set_current(self, node: int, paused: bool, change: str) -> None:
        if node != self.node:
            self.moved_at = time.monotonic()
        self.node, self.paused, self.last_change, self.failure = node, paused, change, ""

    def _set_name(self, seat: int, name: str) -> None:
        self.seats[seat] = self.seats[seat].model_copy(update={"name": name})

    def _check_node(self, node: int) -> None:
        """RequestError stale if a node is not the current one."""
        if node != self.node:
            raise RequestError("stale", "The game has moved on.")


def _check_host(participant: Participant) -> None:
    """RequestError only_host for all but the host."""
    if participant.role != "host":
        text = "Only the host can take back moves, pause the game and set its speed."
        raise RequestError("only_host", text)
