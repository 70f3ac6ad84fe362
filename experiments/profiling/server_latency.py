"""Response times of the `busenv play` server with many simultaneous games.

`python -m busenv.experiments.profiling.server_latency` starts a server in its own process, games of
one person against three agents, and idle spectator connections. Simulated persons choose random
actions after a pause. The script reports the time from a decision to the updated view, and from
there to each agent's decision, next to the time that the agent takes on an idle server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from busenv import Game
from busenv.agents import make_agent
from busenv.experiments.common.keyboard_interrupt import run_command

AGENTS = ("greedy", "planner", "uct:100")


@dataclass
class Times:
    """Response times in seconds.

    own: from a person's decision to the updated view. agents: from there to the view after an
    agent's decision, by the agent's spec.
    """

    own: list[float] = field(default_factory=list)
    agents: dict[str, list[float]] = field(default_factory=dict)


async def measure(origin: str, links: list[str], idle: int, seconds: float, pause: float) -> Times:
    """Play games for some seconds, with `idle` spectator connections open."""
    times = Times()
    watchers = [asyncio.create_task(_look_on(origin, links[k % len(links)])) for k in range(idle)]
    end = time.monotonic() + seconds
    try:
        players = (_play(origin, link, times, end, pause, k) for k, link in enumerate(links))
        await asyncio.gather(*players)
    finally:
        for watcher in watchers:
            watcher.cancel()
    return times


def _open(origin: str, link: str) -> connect:
    address = f"ws{origin.removeprefix('http')}{link}/socket"
    return connect(address, origin=origin, max_size=None)  # type: ignore[arg-type]


async def _look_on(origin: str, link: str) -> None:
    async with _open(origin, link) as socket:
        async for _ in socket:
            pass


async def _play(origin: str, link: str, times: Times, end: float, pause: float, seed: int) -> None:
    """Play one game with a simulated person."""
    rng = random.Random(seed)
    async with _open(origin, link) as socket:
        await socket.send(json.dumps({"type": "delay", "seconds": 0}))
        state = await _next_state(socket)
        while time.monotonic() < end and not state["over"]:
            if not state["targets"]:
                state = await _step(socket, state, times)
                continue
            await asyncio.sleep(rng.expovariate(1 / pause))
            choice = rng.choice(rng.choice(state["targets"])["choices"])["action"]
            sent = time.perf_counter()
            asked = {"type": "decide", "node": state["node"], "action": choice}
            await socket.send(json.dumps(asked))
            while (found := await _next_state(socket))["node"] == state["node"]:
                pass
            times.own.append(time.perf_counter() - sent)
            state = found


async def _step(socket: ClientConnection, state: dict[str, Any], times: Times) -> dict[str, Any]:
    """Wait for the next state, and record the response time of an agent's decision."""
    begun, turn = time.perf_counter(), state["turn"]
    found = await _next_state(socket)
    if found["node"] != state["node"] and turn["kind"] == "agent" and not state["forced"]:
        spec = AGENTS[turn["seat"] - 1]
        times.agents.setdefault(spec, []).append(time.perf_counter() - begun)
    return found


async def _next_state(socket: ClientConnection) -> dict[str, Any]:
    while (found := json.loads(await socket.recv()))["type"] != "state":
        pass
    return found


def own_time(spec: str) -> float:
    """Return an agent's median seconds per decision without a server; forced ones do not count."""
    game, agent = Game(4, seed=1), make_agent(spec)
    spent: list[float] = []
    while not game.is_over and len(spent) < 60:
        begun, forced = time.perf_counter(), len(game.legal_actions()) == 1
        game.step(agent.act(game))
        if not forced:
            spent.append(time.perf_counter() - begun)
    return median(spent)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.server_latency", description=__doc__
    )
    parser.add_argument("--games", type=int, default=50, help="at once (50)")
    parser.add_argument("--idle", type=int, default=200, help="connections that look on (200)")
    parser.add_argument("--seconds", type=float, default=60, help="of play (60)")
    parser.add_argument("--pause", type=float, default=2, help="for thought, on average (2 s)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "busenv.experiments.cli", "play", "--no-browser"]
        server = subprocess.Popen(
            [*command, "--port", "0", "--folder", folder], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            start = server.stdout.readline().split()[-1]
            origin = start.partition("/start/")[0]
            links = [_begin(start, origin) for _ in range(chosen.games)]
            times = asyncio.run(measure(origin, links, chosen.idle, chosen.seconds, chosen.pause))
        finally:
            server.terminate()
            server.wait()
    _tell("your own decision", times.own, 0)
    for spec, found in times.agents.items():
        _tell(spec, found, own_time(spec))


def _begin(start: str, origin: str) -> str:
    seats = [{"kind": "me"}, *({"kind": "agent", "spec": spec} for spec in AGENTS)]
    headers = {"Content-Type": "application/json", "Origin": origin}
    body = json.dumps({"seats": seats}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{start}/games", body, headers)) as answer:
        return json.load(answer)["link"]


def _tell(name: str, times: list[float], alone: float) -> None:
    late = quantiles(times, n=20)[-1]
    print(
        f"{name:18} {len(times):6} decisions, median {1000 * median(times):6.1f} ms, "
        f"95% {1000 * late:6.1f} ms" + (f", alone {1000 * alone:6.1f} ms" if alone else "")
    )


if __name__ == "__main__":
    run_command(main)
