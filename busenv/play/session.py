"""A game in progress: its agents, the pages connected to it, and the analyses they request.

Everything here runs in one event loop. Agents run in worker processes, and every page has a queue
of messages, so that neither a search nor a slow connection delays the others.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from busenv.agents.scripted import GreedyAgent, RandomAgent
from busenv.agents.specs import short_spec
from busenv.game.board import Board
from busenv.play import agent_pool, serializers
from busenv.play.agent_pool import AgentPool, AgentTaskError, PositionAnalysis
from busenv.play.analysis import Run, analyse_game, analyse_position, run_analysis
from busenv.play.catalogue import Catalogue
from busenv.play.game_session import GameSession
from busenv.play.game_store import GameHeader, Participant
from busenv.play.game_tree import GameTree
from busenv.play.messages import RequestError

MAX_QUEUE = 500  # unsent messages at which a page is disconnected
LOCAL_AGENTS = {  # take microseconds: no worker process is needed
    agent.name: agent for agent in (RandomAgent(secrets.randbits(63)), GreedyAgent())
}


@dataclass(eq=False)
class Connection:
    """A page that shows a game.

    queue: texts to send; None closes the connection. nodes_drawn: nodes whose drawing the page has.
    num_nodes: how many nodes of the tree the page knows. analyses: tasks by kind, "analysis" and
    "chart".
    """

    participant: Participant
    queue: asyncio.Queue[str | None] = field(default_factory=lambda: asyncio.Queue(MAX_QUEUE + 1))
    nodes_drawn: set[int] = field(default_factory=set)
    num_nodes: int = 0
    analyses: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def send(self, message: dict[str, Any] | str) -> None:
        """Queue a message; a page with too many unsent messages is disconnected."""
        if self.queue.qsize() < MAX_QUEUE:
            self.queue.put_nowait(message if isinstance(message, str) else to_json(message))
        else:
            self.close()

    def close(self) -> None:
        """Close the websocket after the messages before."""
        if not self.queue.full():
            self.queue.put_nowait(None)


class Session:
    """A game with its connections.

    movers, analysts: the worker processes for decisions, and for analyses.
    """

    def __init__(
        self,
        header: GameHeader,
        board: Board,
        save: Callable[[dict[str, Any]], None],
        catalogue: Catalogue,
        movers: AgentPool,
        analysts: AgentPool,
    ) -> None:
        self.game = GameSession(header, board, save)
        self.catalogue, self.movers, self.analysts = catalogue, movers, analysts
        self.connections: set[Connection] = set()
        self._estimates: dict[int, PositionAnalysis] = {}  # for charts, by node
        self._estimates_lock = asyncio.Lock()
        self._automatic_moves: asyncio.Task[None] | None = None

    # ------------------------------------------------------------ automatic moves

    def restart_agents(self) -> None:
        """Let the agents decide from the current node on."""
        self.stop_agents()
        if self.game.status in ("agent", "forced"):
            self._automatic_moves = asyncio.create_task(self._make_automatic_moves())

    def stop_agents(self) -> None:
        if self._automatic_moves is not None:
            self._automatic_moves.cancel()
            self._automatic_moves = None

    async def _make_automatic_moves(self) -> None:
        """Make forced moves and agents' decisions until a person has a choice."""
        game = self.game
        while game.status in ("agent", "forced"):
            try:
                if game.status == "forced":
                    action = game.tree.position_game(game.node).legal_actions()[0]
                else:
                    action = await self._agent_action()
                await asyncio.sleep(max(game.moved_at + game.delay - time.monotonic(), 0))
                game.advance(action)
            except (AgentTaskError, RequestError) as error:
                spec = game.seats[game.current.turn].spec or ""
                name = short_spec(spec)
                reason = str(error).replace(spec, name)  # all pages show it
                game.fail(f"Seat {game.current.turn} ({name}) cannot decide: {reason}")
            except OSError as error:
                game.fail(f"The decision could not be saved: {error.strerror or error}")
            self.publish()

    async def _agent_action(self) -> int:
        game = self.game
        spec = game.seats[game.current.turn].spec or ""
        self.catalogue.check_agent(spec, game.tree.board)
        if spec in LOCAL_AGENTS:
            return LOCAL_AGENTS[spec].act(game.tree.position_game(game.node))
        context = game.tree.board.fingerprint
        return await self.movers.call(agent_pool.act, spec, context, game.tree.game(game.node))

    # ------------------------------------------------------------ messages to the pages

    def publish(self) -> None:
        """Send the state to every page."""
        for connection in self.connections:
            self._send_tree(connection)
            self.send_view(connection, self.game.node)
            connection.send(serializers.state(self.game, connection.participant))

    def connect(self, connection: Connection, host_info: dict[str, Any]) -> None:
        """Add a page and send it the whole game."""
        connection.send(serializers.init(self.game, connection.participant, host_info))
        self._send_tree(connection)
        self.send_view(connection, self.game.node)
        self.connections.add(connection)
        self.publish_participants()
        connection.send(serializers.state(self.game, connection.participant))

    def disconnect(self, connection: Connection) -> None:
        """Remove a page, and end what only this page requested."""
        self.connections.discard(connection)
        for kind in ("analysis", "chart"):
            self._start(connection, kind, None)
        self.publish_participants()

    def publish_participants(self) -> None:
        """Send every page the players' names and the numbers of open pages."""
        holders = [connection.participant for connection in self.connections]
        for connection in self.connections:
            connection.send(serializers.participants(self.game, connection.participant, holders))

    def _send_tree(self, connection: Connection) -> None:
        tree = self.game.tree
        if connection.num_nodes < len(tree.nodes):
            new = range(connection.num_nodes, len(tree.nodes))
            nodes = [serializers.node_entry(tree, node) for node in new]
            connection.send({"type": "tree", "nodes": nodes})
            connection.num_nodes = len(tree.nodes)

    def send_view(self, connection: Connection, node: int) -> None:
        """Send the drawing at a node, unless the page has it."""
        if node in connection.nodes_drawn:
            return
        connection.send(_view_json(self.game.tree, node))
        connection.nodes_drawn.add(node)

    # ------------------------------------------------------------ analyses

    def analyse(self, connection: Connection, node: int | None) -> None:
        """Send a page the analysis of a node from now on; None ends it.

        RequestError: only_watching, no_such_node, game_over.
        """
        if node is None:
            return self._start(connection, "analysis", None)
        if connection.participant.role == "spectator":
            raise RequestError("only_watching", "Hints and analyses are for players only.")
        if self.game.get_node(node).turn < 0:
            raise RequestError("game_over", "The game is over at this move.")
        run = partial(analyse_position, self.game.tree, node, self.analysts)
        self._start(connection, "analysis", run)

    def chart(self, connection: Connection, enabled: bool) -> None:
        """Send a page the chart of the current variation from now on, or end it."""
        if not enabled:
            return self._start(connection, "chart", None)
        tree, variation = self.game.tree, self.game.tree.variation(self.game.node)
        known, lock = self._estimates, self._estimates_lock
        self._start(
            connection, "chart", partial(analyse_game, tree, variation, known, lock, self.analysts)
        )

    def _start(self, connection: Connection, kind: str, run: Run | None) -> None:
        """End a page's analysis of a kind, and start another one."""
        if earlier := connection.analyses.pop(kind, None):
            earlier.cancel()
        if run is not None:
            task = asyncio.create_task(run_analysis(run, connection.send))
            connection.analyses[kind] = task

    def disconnect_pages(self) -> None:
        """Close the websockets of all pages."""
        for connection in self.connections:
            connection.close()

    def close(self) -> None:
        """Stop the agents and the analyses."""
        self.stop_agents()
        for connection in [*self.connections]:
            self.disconnect(connection)


@lru_cache(maxsize=64)
def _view_json(tree: GameTree, node: int) -> str:
    """A drawing as JSON, cached for all pages of a game."""
    return to_json(serializers.view(tree, node))


def to_json(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))
