"""Agents by spec string, found where they are installed.

The rules and environments know no agents; packages that bring some (ours is `busenv.agents`) name a
function `make_agent(spec, seed)` under the entry point group "busenv.agents".
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Protocol

from busenv.game import Game


class Player(Protocol):
    """Anything that chooses actions."""

    def act(self, game: Game) -> int:
        """A legal action for the seat to decide; the game must not be changed."""


def make_agent(spec: str, seed: int = 0) -> Any:
    """An agent by its spec, such as "greedy" or "uct:500", from whichever package builds it.

    busenv's own are `busenv.agents.Agent`s and know these specs: random, greedy, planner,
    uct:SIMULATIONS, net:NAME, exec:COMMAND (`busenv.agents`). seed: what its chances are drawn
    from. ValueError when no installed package builds such an agent.
    """
    reasons = []
    for found in sorted(entry_points(group="busenv.agents"), key=lambda entry: entry.name):
        try:
            return found.load()(spec, seed)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError("; ".join(reasons) or f"no package that builds agents such as {spec!r}")


def as_player(agent: str | Player, seed: int) -> Player:
    """An agent given by its spec, or the agent itself.

    ValueError as `make_agent`, TypeError when it cannot act.
    """
    if isinstance(agent, str):
        return make_agent(agent, seed)
    if not callable(getattr(agent, "act", None)):
        raise TypeError(f"{agent!r} is no agent: it has no method act(game)")
    return agent
