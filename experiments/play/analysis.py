"""Analyses that run while people think: of the current position, and of the whole game."""

from __future__ import annotations

import asyncio
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from busenv.experiments.play import agent_pool, serializers
from busenv.experiments.play.agent_pool import AgentPool, AgentTaskError, Estimate
from busenv.experiments.play.catalogue import short_spec, with_seconds
from busenv.experiments.play.game_session import GameSession
from busenv.render.chart import draw_chart

UPDATE_SECONDS = 0.4  # between two messages about a position
MAX_SECONDS = 60.0  # of the analysis of one position
GRAPH_BATCH = 6  # positions of a graph between two messages
MIN_LOSS, MAX_MISTAKES = 0.03, 8  # loss of the chance to win that is listed; length of the list


Subscriber = Callable[[dict[str, Any]], None]  # sends a message to a page


class LiveAnalysis(ABC):
    """An analysis that sends messages to subscribers and restarts when the game changes."""

    def __init__(self, game: GameSession, analysts: AgentPool, spec: str) -> None:
        self.game, self.analysts, self.spec = game, analysts, spec
        self.subscribers: set[Subscriber] = set()
        self._subject: Any = None
        self._task: asyncio.Task[None] | None = None
        self._latest: dict[str, Any] | None = None

    def subscribe(self, subscriber: Subscriber) -> None:
        """Send a page the latest message, and all later ones."""
        self.subscribers.add(subscriber)
        if self._latest is not None:
            subscriber(self._latest)
        self.update()

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a page; without pages the analysis stops."""
        self.subscribers.discard(subscriber)
        if not self.subscribers:
            self._cancel()

    def update(self) -> None:
        """Restart the analysis if the game has changed."""
        if (subject := self.subject()) != self._subject:
            self._cancel()
            self._subject = subject
            self._task = asyncio.create_task(self._run())

    @abstractmethod
    def subject(self) -> Any:
        """The node or nodes to analyse."""

    @abstractmethod
    async def analyse(self) -> None:
        """Analyse the subject and `publish` messages."""

    def publish(self, message: dict[str, Any]) -> None:
        self._latest = message
        for subscriber in self.subscribers:
            subscriber(message)

    async def _run(self) -> None:
        try:
            await self.analyse()
        except AgentTaskError as error:
            for subscriber in self.subscribers:
                subscriber({"type": "error", "code": "no_estimate", "message": str(error)})

    def _cancel(self) -> None:
        self._latest, self._subject = None, None
        if self._task is not None:
            self._task.cancel()
            self._task = None


class PositionAnalysis(LiveAnalysis):
    """The chances to win and favourite moves at the current node, refined for a minute."""

    def subject(self) -> int:
        return self.game.node

    async def analyse(self) -> None:
        tree, node = self.game.tree, self.game.node
        if tree.nodes[node].turn < 0:
            return
        game, spec = tree.game(node), with_seconds(self.spec, UPDATE_SECONDS)
        end, running = 0.0, True
        while running:
            estimate: Estimate = await self.analysts.call(
                agent_pool.estimate, spec, self.game.header.id, game
            )
            end = end or time.monotonic() + MAX_SECONDS  # without the time to build the agent
            running = estimate.simulations is not None and time.monotonic() < end
            self.publish(
                {
                    "type": "analysis",
                    "agent": self.spec,
                    **serializers.estimate(tree, node, estimate),
                    "simulations": estimate.simulations,
                    "running": running,
                }
            )


class GameGraph(LiveAnalysis):
    """The chances to win along the variation, and the decisions that lost most of them."""

    def __init__(self, game: GameSession, analysts: AgentPool, spec: str) -> None:
        super().__init__(game, analysts, spec)
        self._estimates: dict[int, Estimate] = {}

    def subject(self) -> list[int]:
        return self.game.tree.variation(self.game.node)

    async def analyse(self) -> None:
        variation, tree = self.subject(), self.game.tree
        for node in variation:
            if tree.nodes[node].turn < 0:
                ranking = tree.position_game(node).ranking()
                self._estimates[node] = Estimate([float(rank == 0) for rank in ranking], [])
        missing = [node for node in variation if node not in self._estimates]
        self._publish(variation, running=bool(missing))
        for start in range(0, len(missing), GRAPH_BATCH):
            nodes = missing[start : start + GRAPH_BATCH]
            estimates: list[Estimate] = await self.analysts.call(
                agent_pool.estimate_all,
                self.spec,
                f"{self.game.header.id} graph",
                [tree.game(node) for node in nodes],
            )
            self._estimates |= dict(zip(nodes, estimates, strict=True))
            if not estimates[0].chances:
                raise AgentTaskError(f"{short_spec(self.spec)} does not estimate chances to win.")
            self._publish(variation, running=start + GRAPH_BATCH < len(missing))

    def _publish(self, variation: list[int], running: bool) -> None:
        known = self._estimates
        chances = [known[node].chances if node in known else None for node in variation]
        self.publish(
            {
                "type": "graph",
                "agent": self.spec,
                "variation": variation,
                "chances": [values and [round(value, 4) for value in values] for values in chances],
                "mistakes": self._mistakes(variation),
                "svg": self._chart(variation, chances),
                "running": running,
            }
        )

    def _chart(self, variation: list[int], chances: list[list[float] | None]) -> str | None:
        """The chances as a chart in SVG; None while nothing is known."""
        if not any(chances):
            return None
        nodes, players = self.game.tree.nodes, range(self.game.tree.start.players)
        rounds: dict[int, int] = {}
        for ply, node in enumerate(variation):
            if nodes[node].round:
                rounds.setdefault(nodes[node].round, ply)
        curves = [[values[seat] if values else None for values in chances] for seat in players]
        last = next(values for values in chances[::-1] if values)
        order = sorted(players, key=lambda seat: -last[seat])
        ranking = [order.index(seat) for seat in players]
        return draw_chart(
            "Chance to win over time", curves, 0, 1, rounds=rounds, ranking=ranking, percent=True
        )

    def _mistakes(self, variation: list[int]) -> list[dict[str, Any]]:
        """The decisions that lowered the deciding seat's chance to win most."""
        mistakes: list[dict[str, Any]] = []
        tree, known = self.game.tree, self._estimates
        for before, after in itertools.pairwise(variation):
            node = tree.nodes[after]
            if node.forced or before not in known or after not in known:
                continue
            loss = known[before].chances[node.seat] - known[after].chances[node.seat]
            if loss >= MIN_LOSS:
                best = next(iter(known[before].favourites), (node.action, 0.0))[0]
                game = tree.position_game(before)
                mistakes.append(
                    {
                        "node": after,
                        "seat": node.seat,
                        "loss": round(loss, 4),
                        "text": game.describe(node.action),
                        "better": game.describe(best) if best != node.action else None,
                    }
                )
        return sorted(mistakes, key=lambda mistake: -mistake["loss"])[:MAX_MISTAKES]
