"""Games of the learner against itself and others, played to the end and made a rollout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from busenv.agents import Agent
from busenv.agents.neural.networks import action_probabilities
from busenv.train.games import Table
from busenv.train.rollout import Rollout
from torch import nn

LOWEST = 0.01  # temperature; below it hardly anything changes


def play_games(
    network: nn.Module,
    table: Table,
    sitting: np.ndarray,
    opponents: Sequence[Agent],
    rng: np.random.Generator,
    teacher: Agent | None = None,
    temperature: float = 1.0,
) -> Rollout:
    """Play the games of a table to the end, one decision of each in a step.

    sitting: int64, (N, 5), 0 where the network plays, k where opponents[k - 1] does. Only the
    network's decisions are in the rollout, which is not finished yet.
    teacher: then the rollout holds what the teacher would do. It also plays these seats in half of
    the games; in the others the network does, so that it is taught what to do where it gets to
    (DAgger, Ross et al. 2011), above all where it gets to at the `temperature` of its later play.
    PPO learns from what is played at temperature 1 only.
    """
    device = next(network.parameters()).device
    generator = torch.Generator(device)
    generator.manual_seed(int(rng.integers(2**62)))
    rollout = Rollout(rng)
    while (running := table.running()).size:
        sits = sitting[running, table.seats(running)]
        actions = np.zeros(len(running), np.int64)
        for k in np.unique(sits[sits > 0]):
            rows = sits == k
            actions[rows] = opponents[k - 1].choose(table.games[running[rows]], table.board)
        mine = running[sits == 0]
        if mine.size:
            seen, masks = (torch.from_numpy(array).to(device) for array in table.observe(mine))
            with torch.no_grad():
                logits, values = network(seen)
                chances = action_probabilities(logits, masks, max(temperature, LOWEST))
                chosen = torch.multinomial(chances, 1, generator=generator)
                log_probs = chances.log().gather(1, chosen)[:, 0]
            played, shares = chosen[:, 0].cpu().numpy(), None
            if teacher is not None:
                shares = torch.from_numpy(
                    teacher.action_probabilities(table.games[mine], table.board)
                )
                taught = shares.argmax(dim=1).numpy()
                played = np.where(mine < len(table.games) // 2, taught, played)
                shares = shares.to(device)
            actions[sits == 0] = played
            rollout.add(
                mine, table.seats(mine), table.totals,
                seen, masks, torch.from_numpy(played).to(device), values, log_probs, shares,
            )  # fmt: skip
        table.step(running, actions)
    return rollout
