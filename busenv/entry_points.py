"""Agents, looked up through the entry points of installed packages.

This layer does not import the agents. A package registers `make_agent(spec, seed)` under the
entry-point group "busenv.agents"; busenv's own is in `busenv.agents`.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any


def make_agent(spec: str, seed: int = 0) -> Any:
    """Build the agent that a spec names.

    spec: "random", "greedy", "planner", "uct:SIMULATIONS", "net:NAME", "az:NAME:SIMULATIONS",
        "exec:COMMAND", "llm:MODEL" or a variant (`busenv.agents` lists all), or the spec of an
        agent of another installed package.
    seed: 0 to 2**64 - 1, seeds the agent's random choices.

    Returns an object with `act(game)` and `reset(seed)`; busenv's own are `busenv.agents.Agent`s.
    Raises ValueError if no installed package builds such an agent.
    """
    reasons = []
    for entry_point in sorted(entry_points(group="busenv.agents"), key=lambda entry: entry.name):
        try:
            return entry_point.load()(spec, seed)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError("; ".join(reasons) or f"no installed package builds agents such as {spec!r}")
