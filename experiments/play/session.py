"""A table with its agents at work, and everybody who looks on.

All of it runs in one event loop. Agents think elsewhere (`thinkers`); nothing here waits for a page
either: each connection has a queue, and one that does not keep up is closed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from busenv.agents.scripted import GreedyAgent, RandomAgent
from busenv.experiments.play import agent_pool, serializers
from busenv.experiments.play.agent_pool import ThinkError, Thinkers
from busenv.experiments.play.analysis import Analysis, Graph
from busenv.experiments.play.catalogue import ANALYSTS, Offers, short_spec
from busenv.experiments.play.game_session import Place, Table
from busenv.experiments.play.game_store import Header
from busenv.experiments.play.game_tree import GameTree
from busenv.experiments.play.messages import Refusal
from busenv.game.board import Board

LONGEST_QUEUE = 500  # messages that a page may be behind
QUICK = {  # agents that take microseconds, for which no process is asked
    agent.name: agent for agent in (RandomAgent(secrets.randbits(63)), GreedyAgent())
}


@dataclass(eq=False)
class Connection:
    """A page that looks on. queue: texts to be sent; None: close it.

    sent: nodes whose pictures it has. nodes: how many of the tree it knows.
    """

    place: Place
    queue: asyncio.Queue[str | None] = field(
        default_factory=lambda: asyncio.Queue(LONGEST_QUEUE + 1)
    )
    sent: set[int] = field(default_factory=set)
    nodes: int = 0
    last: int | None = None  # node of the view that was sent last
    hint: asyncio.Task[None] | None = None

    def send(self, message: dict[str, Any] | str) -> None:
        """Have a message sent; a page that is too far behind is given up."""
        if self.queue.qsize() >= LONGEST_QUEUE:
            if not self.queue.full():
                self.queue.put_nowait(None)
            return
        text = message if isinstance(message, str) else encode(message)
        self.queue.put_nowait(text)


class Room:
    """A table, its driver, its connections, and what agents make of its positions."""

    def __init__(
        self,
        header: Header,
        board: Board,
        keep: Callable[[dict[str, Any]], None],
        offers: Offers,
        movers: Thinkers,
        analysts: Thinkers,
    ) -> None:
        self.table = Table(header, board, keep)
        self.offers, self.movers, self.analysts = offers, movers, analysts
        self.connections: set[Connection] = set()
        self.analyses: dict[str, Analysis] = {}
        self.graphs: dict[str, Graph] = {}
        self._driver: asyncio.Task[None] | None = None

    # ------------------------------------------------------------ moves that go by themselves

    def drive(self) -> None:
        """Let the agents begin, or begin again where the game stands now."""
        self.stop()
        if self.table.waiting in ("agent", "forced"):
            self._driver = asyncio.create_task(self._move_on())

    def stop(self) -> None:
        """Let no agent decide any more."""
        if self._driver is not None:
            self._driver.cancel()
            self._driver = None

    async def _move_on(self) -> None:
        """Take decisions for as long as no person is asked."""
        table = self.table
        while table.waiting in ("agent", "forced"):
            try:
                if table.waiting == "forced":
                    game = table.tree.position_game(table.node)
                    action = game.legal_actions()[0]
                else:
                    action = await self._ask_agent()
                await asyncio.sleep(max(table.moved + table.pace - time.monotonic(), 0))
                table.advance(action)
            except (ThinkError, Refusal) as error:
                name = short_spec(table.seats[table.now.turn].spec or "")
                table.fail(f"Seat {table.now.turn} ({name}) cannot decide: {error}")
            except OSError as error:
                table.fail(f"The decision could not be written down: {error}")
            self.publish()

    async def _ask_agent(self) -> int:
        """What the agent whose turn it is decides."""
        table = self.table
        spec = table.seats[table.now.turn].spec or ""
        self.offers.check_agent(spec)
        if spec in QUICK:
            return QUICK[spec].act(table.tree.position_game(table.node))
        game, whose = table.tree.game(table.node), table.tree.board.fingerprint
        return await self.movers.ask(agent_pool.act, spec, whose, game)

    def changed(self) -> None:
        """Somebody has changed the game by hand: tell everybody and drive on."""
        self.publish()
        self.drive()

    # ------------------------------------------------------------ telling the pages

    def publish(self) -> None:
        """Tell every page where the game stands, and have thoughts follow it."""
        states: dict[str, str] = {}
        for connection in self.connections:
            self._send_tree(connection)
            self.send_view(connection, self.table.node)
            token = connection.place.token
            if token not in states:
                states[token] = encode(serializers.state(self.table, connection.place))
            connection.send(states[token])
        for thought in (*self.analyses.values(), *self.graphs.values()):
            thought.follow()

    def join(self, connection: Connection, for_host: dict[str, Any]) -> None:
        """Tell a page all that it needs, and from now on every change."""
        connection.send(serializers.hello(self.table, connection.place, for_host))
        self._send_tree(connection)
        self.send_view(connection, self.table.node)
        connection.send(serializers.state(self.table, connection.place))
        self.connections.add(connection)
        self.tell_who()

    def leave(self, connection: Connection) -> None:
        """A page is gone."""
        self.connections.discard(connection)
        if connection.hint is not None:
            connection.hint.cancel()
        self.follow_analysis(connection, None)
        self.follow_graph(connection, None)
        self.tell_who()

    def tell_who(self) -> None:
        here = Counter(connection.place.token for connection in self.connections)
        for connection in self.connections:
            connection.send(serializers.who(self.table, connection.place, here))

    def _send_tree(self, connection: Connection) -> None:
        tree = self.table.tree
        if connection.nodes < len(tree.nodes):
            new = range(connection.nodes, len(tree.nodes))
            connection.send(
                {"type": "tree", "nodes": [serializers.entry(tree, node) for node in new]}
            )
            connection.nodes = len(tree.nodes)

    def send_view(self, connection: Connection, node: int) -> None:
        """Send the picture at a node, if the page does not have it."""
        if node in connection.sent:
            return
        parent = self.table.tree.nodes[node].parent
        base = parent if parent in connection.sent else connection.last
        tree = self.table.tree
        connection.send(_view(tree, node, base, tree.nodes[node].state))
        connection.sent.add(node)
        connection.last = node

    # ------------------------------------------------------------ what agents make of it

    def ask_hint(self, connection: Connection, node: int, spec: str | None) -> None:
        """Have an agent asked, and its answer sent. Refusals as `Offers.check_agent`, no_such_node,
        game_over, only_watching."""
        check_helped(connection.place)
        spec = spec or ANALYSTS[0]
        self.offers.check_agent(spec)
        if self.table.find(node).turn < 0:
            raise Refusal("game_over", "The game is over there.")
        if connection.hint is not None:
            connection.hint.cancel()
        connection.hint = asyncio.create_task(self._hint(connection, node, spec))

    async def _hint(self, connection: Connection, node: int, spec: str) -> None:
        tree = self.table.tree
        game, whose = tree.game(node), f"{self.table.header.id} hint"
        try:
            found = await self.analysts.ask(agent_pool.suggest, spec, whose, game)
        except ThinkError as error:
            connection.send({"type": "error", "name": "agent_failed", "words": str(error)})
            return
        connection.send({"type": "hint", "agent": spec, **serializers.opinion(tree, node, found)})

    def follow_analysis(self, connection: Connection, spec: str | None) -> None:
        """Have a page told what an agent makes of the game, wherever it stands; None: no more."""
        if spec is not None:
            check_helped(connection.place)
            self.offers.check_agent(spec)
        self._follow(self.analyses, Analysis, connection, spec)

    def follow_graph(self, connection: Connection, spec: str | None) -> None:
        """Have a page told the chances along the line; None: no more."""
        if spec is not None:
            self.offers.check_agent(spec)
        self._follow(self.graphs, Graph, connection, spec)

    def _follow(
        self, thoughts: dict[str, Any], kind: Any, connection: Connection, spec: str | None
    ) -> None:
        for name, thought in [*thoughts.items()]:
            if connection in thought.readers and name != spec:
                thought.leave(connection)
                if not thought.readers:
                    del thoughts[name]
        if spec is not None:
            if spec not in thoughts:
                thoughts[spec] = kind(self.table, self.analysts, spec)
            thoughts[spec].join(connection)

    def close(self) -> None:
        """End everything that goes on here."""
        self.stop()
        for connection in [*self.connections]:
            self.leave(connection)


def check_helped(place: Place) -> None:
    """Refusal only_watching for spectators, who are not helped."""
    if place.role == "watch":
        raise Refusal("only_watching", "Hints and analyses are for those who play.")


@lru_cache(maxsize=64)
def _view(tree: GameTree, node: int, base: int | None, _: bytes) -> str:
    """A picture as text; remembered for all who look on. The state tells apart nodes that have the
    same number one after the other, where a decision could not be kept."""
    return encode(serializers.view(tree, node, base))


def encode(message: dict[str, Any]) -> str:
    """A message as text."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)
