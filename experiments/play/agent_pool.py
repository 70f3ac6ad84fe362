"""Processes in which agents think, so that no page has to wait for them.

Each process keeps the agents that it has built. Who no longer wants an answer cancels the task that
waits for it; a process that does not come to its end soon after is ended, and another begun.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from busenv import Game
from busenv.agents import Agent, AgentError, make_agent
from busenv.agents.search.search_agent import SearchAgent
from busenv.experiments.common.worker_pool import end_workers, worker_pool

KEPT = 8  # agents in each process
FAVOURITES = 5
GRACE = 1.0  # seconds in which what nobody waits for may come to its end
NICE = 5  # by how much a process lets others go first

Opinion = tuple[list[float], list[tuple[int, float]], "int | None"]
"""Each seat's chance to win, favourite actions with their shares, and the simulations behind them;
either list may be empty."""
Kind = TypeVar("Kind")
_agents: OrderedDict[tuple[str, str], Agent] = OrderedDict()


# ---------------------------------------------------------------- in the processes that think


def act(spec: str, whose: str, game: Game) -> int:
    """What an agent decides."""
    return _agent(spec, whose).act(game)


def estimate(spec: str, whose: str, game: Game) -> Opinion:
    """What an agent makes of a game that is not over; a search goes on with what it knows of it.
    ValueError when the agent has no view."""
    agent = _agent(spec, whose)
    chances, favourites = agent.estimate(game)
    simulations = agent.simulated if isinstance(agent, SearchAgent) else None
    return chances, favourites[:FAVOURITES], simulations


def estimate_all(spec: str, whose: str, games: list[Game]) -> list[Opinion]:
    """What an agent makes of each of several games."""
    return [estimate(spec, whose, game) for game in games]


def suggest(spec: str, whose: str, game: Game) -> Opinion:
    """What an agent would do: its estimate, or where it has none its decision."""
    with suppress(ValueError):
        return estimate(spec, whose, game)
    return [], [(act(spec, whose, game), 1.0)], None


def check(spec: str) -> None:
    """Build an agent; ValueError, OSError or ModuleNotFoundError when that cannot be done."""
    _agent(spec, "")


def _agent(spec: str, whose: str) -> Agent:
    """An agent that this process keeps, by whom it works for."""
    agent = _agents.pop((spec, whose), None) or make_agent(
        spec, int.from_bytes(os.urandom(7), "little")
    )
    _agents[spec, whose] = agent
    while len(_agents) > KEPT:
        _agents.popitem(last=False)[1].close()
    return agent


def _close_agents() -> None:
    while _agents:
        _agents.popitem()[1].close()


def _make_way() -> None:
    if hasattr(os, "nice"):
        os.nice(NICE)


# ---------------------------------------------------------------- in the process of the server


class ThinkError(Exception):
    """An agent could not do what was asked; in words."""


class _Thinker:
    """A process, and what it worked for last."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.whose, self._stack = "", ExitStack()
        self.pool: ProcessPoolExecutor = self._stack.enter_context(worker_pool(1, _close_agents))
        self.pool.submit(_make_way)

    def end(self) -> None:
        end_workers(self.pool)
        self._stack.close()


class Thinkers:
    """Some processes that think for whoever asks, first come first served."""

    def __init__(self, count: int) -> None:
        self._idle = [_Thinker() for _ in range(count)]
        self._all = [*self._idle]
        self._free = asyncio.Semaphore(count)
        self._late: set[asyncio.Task[None]] = set()

    async def ask(
        self, work: Callable[..., Kind], spec: str, whose: str, game: Game | list[Game]
    ) -> Kind:
        """Have a function of this module called with these arguments; ThinkError when it fails.

        The process that worked for `whose` last is preferred: it may know the game.
        """
        return await self._run(whose, work, spec, whose, game)

    async def check(self, spec: str) -> None:
        """ThinkError unless an agent can be built."""
        await self._run("", check, spec)

    async def _run(self, whose: str, work: Callable[..., Kind], *arguments: Any) -> Kind:
        for again in (True, False):
            await self._free.acquire()
            ready = self._idle[::-1]  # the one that was at work last knows most
            thinker = next((t for t in ready if t.whose == whose), ready[0])
            self._idle.remove(thinker)
            thinker.whose = whose
            try:
                future = thinker.pool.submit(work, *arguments)
                answer = await asyncio.wrap_future(future)
            except asyncio.CancelledError:
                self._keep(self._recover(thinker, future))
                raise
            except BrokenProcessPool:  # it was ended from outside
                await asyncio.shield(self._keep(self._replace(thinker)))
                if not again:
                    raise ThinkError("the process in which it thinks has ended") from None
                continue
            except (AgentError, ValueError, OSError, ModuleNotFoundError) as error:
                self._give_back(thinker)
                raise ThinkError(str(error)) from error
            except Exception as error:  # of an agent of somebody else's
                self._give_back(thinker)
                raise ThinkError(f"{type(error).__name__}: {error}") from error
            self._give_back(thinker)
            return answer
        raise AssertionError("not reached")

    def _give_back(self, thinker: _Thinker) -> None:
        self._idle.append(thinker)
        self._free.release()

    def _keep(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        return task

    async def _recover(self, thinker: _Thinker, future: Future[Any]) -> None:
        """Wait a moment for what nobody wants any more; then end it."""
        end = asyncio.get_running_loop().time() + GRACE
        while not future.done() and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        if future.done():
            self._give_back(thinker)
        else:
            await self._replace(thinker)

    async def _replace(self, thinker: _Thinker) -> None:
        await asyncio.to_thread(thinker.end)
        thinker.begin()
        self._give_back(thinker)

    async def close(self) -> None:
        """End all processes."""
        for task in self._late:
            task.cancel()
        for thinker in self._all:
            await asyncio.to_thread(thinker.end)
