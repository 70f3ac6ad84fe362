"""What agents make of a game while people think: an analysis that grows, and a graph of chances."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any, Protocol

from busenv.experiments.play import agent_pool, serializers
from busenv.experiments.play.agent_pool import Opinion, ThinkError, Thinkers
from busenv.experiments.play.catalogue import for_analysis, short_spec
from busenv.experiments.play.game_session import Table
from busenv.render.chart import draw_chart

CHUNK = 0.4  # seconds between two messages about a position
LONGEST = 60.0  # seconds that an analysis of one position goes on
AT_ONCE = 6  # positions of a graph that are looked at before it is shown anew
LEAST_LOST, MOST_LOST = 0.03, 8  # chance that a decision lost to be named, and how many are


class Reader(Protocol):
    """A page that is told."""

    def send(self, message: dict[str, Any]) -> None: ...


class Thought:
    """Something that an agent thinks about for readers, and begins anew when the game moves on."""

    def __init__(self, table: Table, analysts: Thinkers, spec: str) -> None:
        self.table, self.analysts, self.spec = table, analysts, spec
        self.readers: set[Any] = set()
        self._about: Any = None
        self._task: asyncio.Task[None] | None = None
        self._latest: dict[str, Any] | None = None

    def join(self, reader: Reader) -> None:
        """Tell a reader from now on, and what is known at once."""
        self.readers.add(reader)
        if self._latest is not None:
            reader.send(self._latest)
        self.follow()

    def leave(self, reader: Reader) -> None:
        """Tell a reader no more; the last one ends it."""
        self.readers.discard(reader)
        if not self.readers:
            self._cancel()

    def follow(self) -> None:
        """Begin anew if the game stands elsewhere than what is thought about."""
        about = self.about()
        if about != self._about:
            self._cancel()
            self._about = about
            self._task = asyncio.create_task(self._run())

    def about(self) -> Any:
        """What is to be thought about, as a value to be compared."""
        raise NotImplementedError

    async def work(self) -> None:
        """Think, and `tell` now and then."""
        raise NotImplementedError

    def tell(self, message: dict[str, Any]) -> None:
        self._latest = message
        for reader in self.readers:
            reader.send(message)

    async def _run(self) -> None:
        try:
            await self.work()
        except ThinkError as error:
            for reader in self.readers:
                reader.send({"type": "error", "name": "no_estimate", "words": str(error)})

    def _cancel(self) -> None:
        self._latest, self._about = None, None
        if self._task is not None:
            self._task.cancel()
            self._task = None


class Analysis(Thought):
    """What an agent makes of where the game stands, better and better."""

    def about(self) -> int:
        return self.table.node

    async def work(self) -> None:
        tree, node = self.table.tree, self.table.node
        if tree.nodes[node].turn < 0:
            return
        game, spec = tree.game(node), for_analysis(self.spec, CHUNK)
        end, running = time.monotonic() + LONGEST, True
        while running:
            found: Opinion = await self.analysts.ask(
                agent_pool.estimate, spec, self.table.header.id, game
            )
            running = found[2] is not None and time.monotonic() < end
            self.tell(
                {
                    "type": "analysis",
                    "agent": self.spec,
                    **serializers.opinion(tree, node, found),
                    "simulations": found[2],
                    "running": running,
                }
            )


class Graph(Thought):
    """Chances to win along the line that is shown, and which decisions lost most of them."""

    def __init__(self, table: Table, analysts: Thinkers, spec: str) -> None:
        super().__init__(table, analysts, spec)
        self._known: dict[int, Opinion] = {}

    def about(self) -> list[int]:
        return self.table.tree.line(self.table.node)

    async def work(self) -> None:
        line, tree = self.about(), self.table.tree
        for node in line:
            if tree.nodes[node].turn < 0:
                ranking = tree.position_game(node).ranking()
                self._known[node] = [float(place == 0) for place in ranking], [], None
        unknown = [node for node in line if node not in self._known]
        self._show(line, running=bool(unknown))
        whose = f"{self.table.header.id} graph"
        for start in range(0, len(unknown), AT_ONCE):
            nodes = unknown[start : start + AT_ONCE]
            games = [tree.game(node) for node in nodes]
            found: list[Opinion] = await self.analysts.ask(
                agent_pool.estimate_all, self.spec, whose, games
            )
            self._known |= dict(zip(nodes, found, strict=True))
            if not found[0][0]:
                raise ThinkError(f"{short_spec(self.spec)} does not tell of chances to win")
            self._show(line, running=start + AT_ONCE < len(unknown))

    def _show(self, line: list[int], running: bool) -> None:
        chances = [self._known[node][0] if node in self._known else None for node in line]
        self.tell(
            {
                "type": "graph",
                "agent": self.spec,
                "line": line,
                "chances": [
                    None if known is None else [round(chance, 4) for chance in known]
                    for known in chances
                ],
                "lost": self._lost(line),
                "svg": self._chart(line, chances),
                "running": running,
            }
        )

    def _chart(self, line: list[int], chances: list[list[float] | None]) -> str | None:
        """The chances as the replay page draws them; None as long as nothing is known."""
        if not any(chances):
            return None
        nodes = self.table.tree.nodes
        rounds: dict[int, int] = {}
        for ply, node in enumerate(line):
            if nodes[node].round:
                rounds.setdefault(nodes[node].round, ply)
        players = self.table.tree.begin.players
        curves = [[known[seat] if known else None for known in chances] for seat in range(players)]
        last = next(known for known in chances[::-1] if known)
        order = sorted(range(players), key=lambda seat: -last[seat])
        ranking = [order.index(seat) for seat in range(players)]
        return draw_chart("Chance to win over time", curves, 0, 1, rounds, ranking, True)

    def _lost(self, line: list[int]) -> list[dict[str, Any]]:
        """The decisions that lost most, by how much the chance of who decided fell."""
        found: list[dict[str, Any]] = []
        tree = self.table.tree
        for before, after in itertools.pairwise(line):
            node = tree.nodes[after]
            if node.forced or before not in self._known or after not in self._known:
                continue
            lost = self._known[before][0][node.seat] - self._known[after][0][node.seat]
            if lost >= LEAST_LOST:
                best = next(iter(self._known[before][1]), (node.action, 0.0))[0]
                game = tree.position_game(before)
                found.append(
                    {
                        "node": after,
                        "seat": node.seat,
                        "lost": round(lost, 4),
                        "words": game.describe(node.action),
                        "better": game.describe(best) if best != node.action else None,
                    }
                )
        return sorted(found, key=lambda entry: -entry["lost"])[:MOST_LOST]
