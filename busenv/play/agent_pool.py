"""Worker processes that run agents, so that the server's event loop never waits for a search.

Each worker caches the agents that it has built. Cancelling the asyncio task that waits for an
answer frees the worker; a worker that does not finish soon after is replaced.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from busenv import Game
from busenv.agents import Agent, AgentError, make_agent
from busenv.agents.search_agent import SearchAgent
from busenv.common.worker_pool import end_workers, worker_pool
from busenv.error_text import truncate

MAX_AGENTS = 4  # cached in each worker; the trees of a search take up to 400 MB
GRACE_SECONDS = 1.0  # for a cancelled call to finish before its worker is replaced
MESSAGE = 1000  # characters of an agent's error that pages show
COLD_GRACE_SECONDS = 60.0  # of a worker's first call, which imports and compiles
NICENESS = 5

Result = TypeVar("Result")


class PositionAnalysis(NamedTuple):
    """A search's estimate of a position.

    chances: each seat's chance to win. best_actions: (action, share), best first.
    """

    chances: list[float]
    best_actions: list[tuple[int, float]]
    simulations: int = 0


# ---------------------------------------------------------------- in the worker processes

_agents: OrderedDict[tuple[str, str], Agent] = OrderedDict()


def act(spec: str, context: str, game: Game) -> int:
    """The action that an agent chooses."""
    return _get_agent(spec, context).act(game)


def estimate(spec: str, context: str, games: list[Game]) -> list[PositionAnalysis]:
    """A search's estimate of games that are not over; it reuses the tree of the last call."""
    agent = _get_agent(spec, context)
    assert isinstance(agent, SearchAgent)
    analyses = []
    for game in games:
        chances, best_actions = agent.estimate(game)
        analyses.append(PositionAnalysis(chances, best_actions, agent.simulated))
    return analyses


def _get_agent(spec: str, context: str) -> Agent:
    """Return the cached agent of a spec and context, or build it."""
    agent = _agents.pop((spec, context), None) or make_agent(spec, secrets.randbits(56))
    _agents[spec, context] = agent
    while len(_agents) > MAX_AGENTS:
        _agents.popitem(last=False)[1].close()
    return agent


def prepare(spec: str, context: str) -> None:
    """Let an agent begin a game, so that the code of both is compiled and cached."""
    game, agent = Game(3, seed=1), _get_agent(spec, context)
    while game.round < 2:
        game.step(agent.act(game))


def _close_agents() -> None:
    while _agents:
        _agents.popitem()[1].close()


# ---------------------------------------------------------------- in the server's process


class AgentTaskError(Exception):
    """An agent could not be built or could not answer."""


class _AgentWorker:
    """A process that serves one call at a time.

    context: of the last call. waiting: number of calls. is_cold: whether no call has ended yet.
    """

    def __init__(self) -> None:
        self.context, self.waiting, self.lock = "", 0, asyncio.Lock()
        self._stack = ExitStack()
        self._start()

    def _start(self) -> None:
        self.is_cold = True
        self.executor = self._stack.enter_context(worker_pool(1, _close_agents))
        if hasattr(os, "nice"):
            self.executor.submit(os.nice, NICENESS)

    async def restart(self) -> None:
        await asyncio.to_thread(self.end)
        self._start()

    def end(self) -> None:
        end_workers(self.executor)
        self._stack.close()


class AgentPool:
    """A fixed number of worker processes."""

    def __init__(self, size: int) -> None:
        self._workers = [_AgentWorker() for _ in range(size)]

    async def call(
        self, function: Callable[..., Result], spec: str, context: str, *arguments: Any
    ) -> Result:
        """Call a function of this module in a worker. AgentTaskError if it fails.

        context: a key; calls with the same spec and context share an agent, if possible, and
        thereby the agent's search tree.
        """
        worker = min(self._workers, key=lambda one: (one.waiting, one.context != context))
        worker.context = context
        worker.waiting += 1
        try:
            async with worker.lock:
                return await self._call(worker, function, spec, context, *arguments)
        finally:
            worker.waiting -= 1

    async def _call(
        self, worker: _AgentWorker, function: Callable[..., Result], *arguments: Any
    ) -> Result:
        try:
            future = worker.executor.submit(function, *arguments)
            result = await asyncio.wrap_future(future)
            worker.is_cold = False
            return result
        except asyncio.CancelledError:
            grace = COLD_GRACE_SECONDS if worker.is_cold else GRACE_SECONDS
            await asyncio.to_thread(wait, [future], grace)
            if future.done():
                worker.is_cold = False
            else:
                await worker.restart()
            raise
        except BrokenProcessPool:
            await worker.restart()
            raise AgentTaskError("the agent's process has ended") from None
        except (AgentError, ValueError, OSError, ModuleNotFoundError) as error:
            worker.is_cold = False
            raise AgentTaskError(truncate(str(error), MESSAGE)) from error
        except Exception as error:  # raised by an agent from outside this package
            worker.is_cold = False
            raise AgentTaskError(truncate(f"{type(error).__name__}: {error}", MESSAGE)) from error

    async def close(self) -> None:
        """End all worker processes."""
        await asyncio.gather(*(asyncio.to_thread(worker.end) for worker in self._workers))
