"""A network that knows the board: its weights are shared over all entities of a kind."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.core.state import FIRST_BUILD, MAX_SPLIT
from busenv.observation import ObservationLayout

MESSAGES = 2  # times that intersections tell their neighbours
CLOCK_ACTIONS = 2  # to let it advance, to stop it


class BoardNetwork(nn.Module):
    """Knows the board: weights are shared over intersections, streets, sites and players.

    Intersections tell their neighbours along the streets what they are, a few times over, in view
    of the table and the players. The logit of an action is read off what it names: a site, a street
    with the end that it is entered from, an intersection; those of the rest are read off a summary
    of the whole.

    Every step is a linear layer on each entity by itself, then a sum over what lies at it.
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
        others = FIRST_BUILD + MAX_SPLIT + CLOCK_ACTIONS  # actions that name no part of the board
        self.at_table = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, others))
        self.site = _Head((features["sites"], width, wide), width, 3)
        self.growth = _Head((width, width, width, wide), width, 1)
        self.vrrooomm = _Head((width, wide), width, 2)
        self.value = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 1))

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # Entities come first, (entries, N, width): so both a layer on each entity and a sum along
        # the streets is one product of two large matrices.
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
        """The blocks of observations, (entries, N, width) each."""
        found = {}
        for name, (start, entries, width, planes) in self.layout.blocks.items():
            part = rows[:, start : start + entries * width]
            if planes:
                found[name] = part.unflatten(1, (width, entries)).permute(2, 0, 1).contiguous()
            else:
                found[name] = part.unflatten(1, (entries, width)).transpose(0, 1).contiguous()
        return found


def _flat(logits: torch.Tensor) -> torch.Tensor:
    """Logits (entries, N, k) as (N, entries * k)."""
    return logits.transpose(0, 1).flatten(1)


class _Messages(nn.Module):
    """Each intersection hears from its neighbours, by way of the streets between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.told = nn.Linear(width, width)
        self.heard = nn.Linear(width, width)
        self.kept = nn.Linear(width, width)

    def forward(
        self, nodes: torch.Tensor, streets: torch.Tensor, incidence: torch.Tensor
    ) -> torch.Tensor:
        # A street's message depends on both of its ends alike, and goes to both.
        message = (_sums(incidence.T, self.told(nodes)) + streets).relu()
        return nodes + (self.kept(nodes) + self.heard(_sums(incidence, message))).relu()


def _sums(which: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """For each row of `which` the sum of the entities (first axis of `values`) that it marks."""
    return (which @ values.flatten(1)).unflatten(1, values.shape[1:])


class _Head(nn.Module):
    """Logits of entities from several inputs: a linear layer each, added, then one more."""

    def __init__(self, inputs: tuple[int, ...], width: int, outputs: int) -> None:
        super().__init__()
        self.inputs = nn.ModuleList(nn.Linear(size, width) for size in inputs)
        self.last = nn.Sequential(nn.ReLU(), nn.Linear(width, outputs))

    def forward(
        self,
        inputs: tuple[torch.Tensor, ...],
        picked: tuple[torch.Tensor | None, ...],
    ) -> torch.Tensor:
        """Logits, float32 (entities, N, outputs).

        inputs: (entries, N, size) each, or (N, size) for all entities alike. picked: which entry of
        an input belongs to each entity; None: its entries are the entities.
        """
        parts = [layer(value) for layer, value in zip(self.inputs, inputs, strict=True)]
        total = sum(
            part if index is None else part.index_select(0, index)
            for part, index in zip(parts, picked, strict=True)
        )
        return self.last(total)
