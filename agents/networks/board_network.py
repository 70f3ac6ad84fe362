"""The `board` network: message passing on the board's graph."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.core.state import FIRST_BUILD, MAX_SPLIT
from busenv.observation import ObservationLayout

MESSAGES = 2  # rounds of message passing
CLOCK_ACTIONS = 2  # advance, stop


class BoardNetwork(nn.Module):
    """A graph network whose weights are shared over intersections, streets, sites and players.

    Intersections exchange messages along the streets. The logit of an action is computed from the
    entity that it names (a site, a street with the end that it is entered from, an intersection),
    other logits and the value from a summary of the whole board. Every step is a linear layer on
    each entity, then a sum over the adjacent entities.
    """

    scale: torch.Tensor
    ends: torch.Tensor
    homes: torch.Tensor
    incidence: torch.Tensor

    def __init__(self, board: Board, width: int = 48) -> None:
        super().__init__()
        self.layout = layout = ObservationLayout(board)
        record = board.array[0]
        streets, sites = len(board.streets), len(board.sites)
        ends = torch.tensor(record["street_ends"][:streets].astype(np.int64)).T.contiguous()
        incidence = torch.zeros(len(board.intersections), streets)
        incidence[ends, torch.arange(streets)] = 1
        homes = torch.tensor(record["site_intersection"][:sites].astype(np.int64))
        for name, fixed in (
            ("scale", torch.tensor(layout.scale)),
            ("ends", ends),
            ("homes", homes),
            ("incidence", incidence),
        ):
            self.register_buffer(name, fixed, persistent=False)
        wide = 2 * width
        features = {name: block.width for name, block in layout.blocks.items()}
        self.table = nn.Linear(features["table"], wide)
        self.players = nn.Linear(features["players"], wide)
        self.context = nn.Linear(4 * wide, wide)
        self.nodes = nn.Linear(features["intersections"], width)
        self.nodes_context = nn.Linear(wide, width)
        self.streets = nn.Linear(features["streets"], width)
        self.rounds = nn.ModuleList(_Messages(width) for _ in range(MESSAGES))
        self.whole = nn.Linear(2 * width + wide, wide)
        others = FIRST_BUILD + MAX_SPLIT + CLOCK_ACTIONS  # actions that name no entity
        self.at_table = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, others))
        self.site = _Head((features["sites"], width, wide), width, 3)
        self.growth = _Head((width, width, width, wide), width, 1)
        self.vrrooomm = _Head((width, wide), width, 2)
        self.value = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 1))

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # With entities first, (entries, N, width), a layer on each entity and a sum along the
        # streets are one product of two large matrices each.
        seen = self._blocks(observations * self.scale)
        players = self.players(seen["players"]).relu()
        table = self.table(seen["table"][0]).relu()
        company = (table, players[0], players[1:].mean(dim=0), players[1:].amax(dim=0))
        context = self.context(torch.cat(company, dim=1)).relu()
        nodes = (self.nodes(seen["intersections"]) + self.nodes_context(context)).relu()
        streets = self.streets(seen["streets"])
        for messages in self.rounds:
            nodes = messages(nodes, streets, self.incidence)
        whole = self.whole(torch.cat((nodes.mean(dim=0), nodes.amax(dim=0), context), dim=1)).relu()

        sites = self.site((seen["sites"], nodes, whole), (None, self.homes, None))
        growth = torch.cat(
            [
                self.growth((nodes, nodes, streets, whole), (start, end, None, None))
                for start, end in (self.ends, self.ends.flip(0))
            ],
            dim=2,
        )
        drives = self.vrrooomm((nodes, whole), (None, None))
        rest = self.at_table(whole)
        logits = (
            rest[:, :FIRST_BUILD], _flat(sites), _flat(growth), rest[:, FIRST_BUILD:],
            _flat(drives[:, :, :1]), _flat(drives[:, :, 1:]),
        )  # fmt: skip
        return torch.cat(logits, dim=1), self.value(whole)

    def _blocks(self, rows: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the blocks of observations, (entries, N, width) each."""
        blocks = {}
        for name, (start, entries, width, planes) in self.layout.blocks.items():
            part = rows[:, start : start + entries * width]
            if planes:
                blocks[name] = part.unflatten(1, (width, entries)).permute(2, 0, 1).contiguous()
            else:
                blocks[name] = part.unflatten(1, (entries, width)).transpose(0, 1).contiguous()
        return blocks


def _flat(logits: torch.Tensor) -> torch.Tensor:
    """Reshape logits (entries, N, k) to (N, entries * k)."""
    return logits.transpose(0, 1).flatten(1)


class _Messages(nn.Module):
    """One round of message passing: each intersection receives its streets' messages."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.send = nn.Linear(width, width)
        self.receive = nn.Linear(width, width)
        self.update = nn.Linear(width, width)

    def forward(
        self, nodes: torch.Tensor, streets: torch.Tensor, incidence: torch.Tensor
    ) -> torch.Tensor:
        # A street's message is symmetric in its two ends, and both receive it.
        message = (_sums(incidence.T, self.send(nodes)) + streets).relu()
        return nodes + (self.update(nodes) + self.receive(_sums(incidence, message))).relu()


def _sums(which: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return for each row of `which` the sum of the entities (first axis) that it marks."""
    return (which @ values.flatten(1)).unflatten(1, values.shape[1:])


class _Head(nn.Module):
    """Logits of entities: a linear layer for each input, their sum, and one more layer."""

    def __init__(self, inputs: tuple[int, ...], width: int, outputs: int) -> None:
        super().__init__()
        self.inputs = nn.ModuleList(nn.Linear(size, width) for size in inputs)
        self.last = nn.Sequential(nn.ReLU(), nn.Linear(width, outputs))

    def forward(
        self,
        inputs: tuple[torch.Tensor, ...],
        indices: tuple[torch.Tensor | None, ...],
    ) -> torch.Tensor:
        """Return logits, float32 (entities, N, outputs).

        inputs: (entries, N, size) each, or (N, size) shared by all entities. indices: the entry of
        each input that belongs to each entity; None where the entries are the entities.
        """
        parts = [layer(value) for layer, value in zip(self.inputs, inputs, strict=True)]
        total = sum(
            part if index is None else part.index_select(0, index)
            for part, index in zip(parts, indices, strict=True)
        )
        return self.last(total)
