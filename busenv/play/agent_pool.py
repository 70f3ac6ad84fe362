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
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from typing import Any, NamedTuple, TypeVar

from busenv import Game
from busenv.agents import Agent, AgentError, make_agent
from busenv.agents.search_agent import SearchAgent
from busenv.agents.specs import parse_spec
from busenv.common.worker_pool import end_workers, worker_pool

MAX_AGENTS = 8  # cached in each worker
MAX_BEST_ACTIONS = 5
GRACE_SECONDS = 1.0  # for a cancelled call to finish before its worker is replaced
NICENESS = 5

Result = TypeVar("Result")


class PositionAnalysis(NamedTuple):
    """An agent's estimate of a position.

    chances: each seat's chance to win. best_actions: (action, share), best first. Either is empty
    if the agent has no estimate of that kind. simulations: of a search, else None.
    """

    chances: list[float]
    best_actions: list[tuple[int, float]]
    simulations: int | None = None


# ---------------------------------------------------------------- in the worker processes

_agents: OrderedDict[tuple[str, str], Agent] = OrderedDict()


def act(spec: str, context: str, game: Game) -> int:
    """The action that an agent chooses."""
    return _get_agent(spec, context).act(game)


def estimate(spec: str, context: str, game: Game) -> PositionAnalysis:
    """An agent's estimate of a game that is not over; searches reuse the tree of the last call.

    ValueError if the agent gives no estimates.
    """
    agent = _get_agent(spec, context)
    chances, best_actions = agent.estimate(game)
    simulations = agent.simulated if isinstance(agent, SearchAgent) else None
    return PositionAnalysis(chances, best_actions[:MAX_BEST_ACTIONS], simulations)


def estimate_all(spec: str, context: str, games: list[Game]) -> list[PositionAnalysis]:
    """An agent's estimate of each of several games."""
    return [estimate(spec, context, game) for game in games]


def _get_agent(spec: str, context: str) -> Agent:
    """Return the cached agent of a spec and context, or build it."""
    agent = _agents.pop((spec, context), None) or make_agent(spec, secrets.randbits(56))
    _agents[spec, context] = agent
    while len(_agents) > MAX_AGENTS:
        _agents.popitem(last=False)[1].close()
    return agent


def check(spec: str, context: str, game: Game) -> None:
    """Build an agent; if it has a network, let that decide in a game, without search."""
    _get_agent(spec, context)
    if model := parse_spec(spec).model:
        with closing(make_agent(f"net:{model}")) as agent:
            agent.act(game)


def prepare(spec: str, context: str) -> None:
    """Let an agent begin a game, so that the code of both is compiled and cached."""
    game, agent = Game(3, seed=1), _get_agent(spec, context)
    while game.round < 2:
        game.step(agent.act(game))


def _close_agents() -> None:
    while _agents:
        _agents.popitem()[1].close()


def _lower_priority() -> None:
    if hasattr(os, "nice"):
        os.nice(NICENESS)


# ---------------------------------------------------------------- in the server's process


class AgentTaskError(Exception):
    """An agent could not be built or could not answer."""


class _AgentWorker:
    """A worker process. context: of the last call."""

    def __init__(self) -> None:
        self.context, self._stack = "", ExitStack()
        self.executor = self._stack.enter_context(worker_pool(1, _close_agents))
        self.executor.submit(_lower_priority)

    def end(self) -> None:
        end_workers(self.executor)
        self._stack.close()


class AgentPool:
    """A fixed number of worker processes that serve calls in order of arrival."""

    def __init__(self, size: int) -> None:
        self._workers = {_AgentWorker() for _ in range(size)}
        self._idle = [*self._workers]
        self._available = asyncio.Semaphore(size)
        self._replacements: set[asyncio.Task[None]] = set()

    async def call(
        self, function: Callable[..., Result], spec: str, context: str, *arguments: Any
    ) -> Result:
        """Call a function of this module in a worker. AgentTaskError if it fails.

        context: a key; calls with the same spec and context share an agent, if possible, and
        thereby the agent's search tree.
        """
        await self._available.acquire()
        idle = self._idle[::-1]
        worker = next((worker for worker in idle if worker.context == context), idle[0])
        self._idle.remove(worker)
        worker.context = context
        future: Future[Result] | None = None
        try:
            future = worker.executor.submit(function, spec, context, *arguments)
            return await asyncio.wrap_future(future)
        except BrokenProcessPool:
            future = None
            raise AgentTaskError("the agent's process has ended") from None
        except (AgentError, ValueError, OSError, ModuleNotFoundError) as error:
            raise AgentTaskError(str(error)) from error
        except Exception as error:  # raised by an agent from outside this package
            raise AgentTaskError(f"{type(error).__name__}: {error}") from error
        finally:
            if future is not None and future.done():
                self._release(worker)
            else:
                task = asyncio.create_task(self._finish_or_replace(worker, future))
                self._replacements.add(task)
                task.add_done_callback(self._replacements.discard)

    def _release(self, worker: _AgentWorker) -> None:
        self._idle.append(worker)
        self._available.release()

    async def _finish_or_replace(self, worker: _AgentWorker, future: Future[Any] | None) -> None:
        """Replace a worker, unless its current call finishes within the grace period."""
        if future is not None:
            await asyncio.to_thread(wait, [future], GRACE_SECONDS)
        if future is None or not future.done():
            self._workers.remove(worker)
            await asyncio.to_thread(worker.end)
            worker = _AgentWorker()
            self._workers.add(worker)
        self._release(worker)

    async def close(self) -> None:
        """End all worker processes."""
        for task in self._replacements:
            task.cancel()
        await asyncio.gather(*(asyncio.to_thread(worker.end) for worker in self._workers))
