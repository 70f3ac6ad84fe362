"""The league: opponents that are not learned from, drawn by how hard they are to beat.

They are scripted bots and frozen past selves of the learner. Those that it loses to are drawn more
often: prioritised fictitious self-play (Vinyals et al. 2019, AlphaStar).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from busenv import Board
from busenv.agents import Agent, make_agent
from busenv.agents.networks.model_files import load_model, save_model
from busenv.agents.networks.policy_agent import PolicyAgent

SINGLE_LEARNER = 0.4  # share of games with one learner's seat among copies of one opponent
LOWEST_WEIGHT = 0.05  # in the draw, of an opponent that always loses; one that always wins has 1
MEMORY = 0.8  # weight of the old score when the result of a rollout comes in


@dataclass
class Opponent:
    """score: how often a learner's seat is placed before it, lately."""

    name: str
    agent: Agent
    score: float = 0.5


class Pool:
    """Opponents to draw from: bots, and past selves up to a limit.

    folder: where past selves are kept, one model each. limit: how many past selves.
    """

    def __init__(self, bots: tuple[str, ...], folder: Path, board: Board, limit: int) -> None:
        self.members = [Opponent(spec, make_agent(spec)) for spec in bots]
        self._bots = len(bots)
        self._folder, self._board, self._limit = folder, board, limit

    def draw(self, rng: np.random.Generator) -> list[Opponent]:
        """At most two different opponents: a bot and a past self if there are both."""
        bots, past = self.members[: self._bots], self.members[self._bots :]
        if bots and past:
            return _draw_hard(bots, 1, rng) + _draw_hard(past, 1, rng)
        return _draw_hard(self.members, min(2, len(self.members)), rng)

    def keep(self, network: nn.Module, card: dict[str, Any], name: str) -> None:
        """Freeze the learner as it is; when full, drop the past self that loses most."""
        save_model(network, self._board, self._path(name), card)
        self._add(name)
        past = self.members[self._bots :]
        if len(past) > self._limit:
            self.members.remove(max(past[:-1], key=lambda member: member.score))

    def state(self) -> dict[str, float]:
        """Scores by name, in order: all that is not in the folder."""
        return {member.name: member.score for member in self.members}

    def restore(self, state: dict[str, float]) -> None:
        """Back to a state.

        FileNotFoundError or ValueError when a file is not as it was, ValueError for other bots and
        for names of past selves that could lead out of the folder.
        """
        bots, kept = [*self.state()], [*state][: self._bots]
        if bots != kept:
            raise ValueError(f"the run has the bots {kept}; the settings say {bots}")
        for name in list(state)[self._bots :]:
            if not re.fullmatch("past-[0-9]{1,18}", name):
                raise ValueError(f"{name!r} is no past self; allowed: past-NUMBER")
            self._add(name)
        for member in self.members:
            member.score = state[member.name]

    def tidy(self) -> None:
        """Delete the files of past selves that are no longer members."""
        names = self.state()
        for path in self._folder.glob("past-*"):
            if path.stem not in names:
                path.unlink()

    def _add(self, name: str) -> None:
        network, _ = load_model(self._path(name), self._board)
        self.members.append(Opponent(name, PolicyAgent(network, self._board, name)))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"


def _draw_hard(members: list[Opponent], count: int, rng: np.random.Generator) -> list[Opponent]:
    """Some different opponents; those that the learner loses to come up more often."""
    losses = np.array([1 - member.score for member in members])
    weights = LOWEST_WEIGHT + (1 - LOWEST_WEIGHT) * losses**2
    chosen = rng.choice(len(weights), count, replace=False, p=weights / weights.sum())
    return [members[i] for i in chosen]


def update_scores(
    drawn: list[Opponent], seat_owner: np.ndarray, places: np.ndarray, players: np.ndarray
) -> None:
    """Take in the results of a rollout.

    seat_owner: int64, (N, 5), 0 at a learner's seat, k at that of drawn[k - 1]. places: int64,
    (N, 5), 0 is the winner. players: int64, (N,).
    """
    in_play = np.arange(places.shape[1]) < players[:, None]
    learner = in_play & (seat_owner == 0)
    for k, member in enumerate(drawn, 1):
        other = in_play & (seat_owner == k)
        # Of all pairs of a learner's seat and one of this opponent in the same game.
        pairs = learner[:, :, None] & other[:, None, :]
        if pairs.any():
            ahead = (places[:, :, None] < places[:, None, :]) & pairs
            share = float(ahead.sum() / pairs.sum())
            member.score = MEMORY * member.score + (1 - MEMORY) * share


def draw_seat_owners(
    players: np.ndarray, opponents: int, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Whose each seat is: int64, (N, 5), 0 for the learner, 1 to `opponents` for an opponent.

    In a share SINGLE_LEARNER of the games all seats but one are taken by copies of one opponent, as
    in a rating: several of a kind play another game than one does among others. In the other games
    each seat is an opponent's with probability `share`. One of each game is always the learner's.
    """
    shape = (len(players), 5)
    if not opponents or not share:
        return np.zeros(shape, np.int64)
    opponent = rng.integers(1, opponents + 1, shape)
    single = rng.random(len(players)) < SINGLE_LEARNER
    opponent[single] = opponent[single, :1]
    seat_owner = np.where((rng.random(shape) < share) | single[:, None], opponent, 0)
    seat_owner[np.arange(len(players)), rng.integers(0, players)] = 0
    return seat_owner
