"""A check that an agent's building types follow the clock."""

from __future__ import annotations

import numpy as np

from busenv import Batch, Board, Phase
from busenv.agents.base import Agent
from busenv.core.relative_types import rotate_types
from busenv.core.state import GAME


def check_building_types(agent: Agent, board: Board, *, seed: int = 0) -> None:
    """Check that an agent does not confuse absolute with relative building types.

    The check renames the building types of 256 random positions and turns the clock with them,
    which changes nothing else. An agent that observes relative types, but returns its actions
    without a conversion (`busenv.observation.absolute_actions`), erects a building of the old name
    in all of them. The check cannot recognise the opposite error: a policy that was trained on
    relative types and observes absolute ones.

    agent: is reset, and plays batches. board: as for `choose`. seed: of positions and agent.

    Raises ValueError when no action depends on the names of the types, which is also true of agents
    that ignore the clock, such as `random`.
    """
    batch = Batch(256, board=board)
    batch.reset(seed=seed)
    rng = np.random.default_rng(seed)
    games = np.zeros(0, GAME)
    while len(games) < 256:
        batch.step((rng.random(batch.masks.shape) * batch.masks).argmax(axis=1))
        games = np.concatenate([games, batch.games[batch.games["phase"] == Phase.BUILDINGS]])
    games = games[:256]
    twins = games.copy()
    for twin in twins:
        rotate_types(twin, 1)
    agent.reset(seed)
    actions = agent.choose(games, board)
    agent.reset(seed)  # the same draws
    if (actions == agent.choose(twins, board)).all():
        raise ValueError(
            f"{agent.name} erects the same types whatever the clock shows; if it observes relative "
            "types, convert its actions by busenv.observation.absolute_actions, or make it by "
            "from_policy(..., relative_types=True)"
        )
