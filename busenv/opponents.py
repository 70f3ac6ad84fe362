"""Agents by spec string, found where they are installed.

busenv itself plays no games for anybody; packages that bring agents (ours is `agents`) name a
function `make_agent(spec, seed)` under the entry point group "busenv.agents".
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Protocol

from busenv.game import Game


class Player(Protocol):
    """Anything that chooses actions."""

    def act(self, game: Game) -> int:
        """A legal action for the seat to decide; the game must not be changed."""


def as_player(agent: str | Player, seed: int) -> Player:
    """An agent given by its spec, or the agent itself.

    ValueError when no installed package builds such an agent, TypeError when it cannot act.
    """
    if not isinstance(agent, str):
        if not callable(getattr(agent, "act", None)):
            raise TypeError(f"{agent!r} is no agent: it has no method act(game)")
        return agent
    reasons = []
    for found in sorted(entry_points(group="busenv.agents"), key=lambda entry: entry.name):
        try:
            return found.load()(agent, seed)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError("; ".join(reasons) or f"no package that builds agents such as {agent!r}")
