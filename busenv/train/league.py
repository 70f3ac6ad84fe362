"""The league: frozen opponents of the learner, sampled by how hard they are to beat.

Members are scripted bots and past selves. Members that beat the learner are sampled more often:
prioritised fictitious self-play (Vinyals et al. 2019, AlphaStar).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from busenv import Board
from busenv.batch.opponents import COMPILED
from busenv.game.board_specs import GeneratedBoards
from busenv.networks.model_files import load_model, save_model
from busenv.networks.network import Network

LOWEST_WEIGHT = 0.05  # sampling weight of an opponent that always loses; one that always wins has 1
SCORE_DECAY = 0.8  # weight of the old score when the results of a rollout arrive
ACTIVE_PAST_SELVES = 2  # at a time; each takes a call of its own for few decisions


@dataclass
class LeagueMember:
    """An opponent of the learner.

    name: the spec of a bot, or past-NUMBER. network: of a past self. score: the share of pairs of
    seats, a learner's and its, in which the learner ranks higher; a running mean.
    """

    name: str
    network: Network | None = None
    score: float = 0.5


class League:
    """Bots, and past selves up to a limit.

    folder: of the past selves' models. boards: the board, or the set of boards, of the run. limit:
    number of past selves.

    bots, past_selves: lists of `LeagueMember`. num_owners: largest number of an opponent in
    `seat_owners` of `busenv.Batch`.
    """

    def __init__(
        self, bots: Sequence[str], folder: Path, boards: Board | GeneratedBoards, limit: int
    ) -> None:
        self.bots = [LeagueMember(spec) for spec in dict.fromkeys(bots)]
        self.past_selves: list[LeagueMember] = []
        self._bot_owners: dict[int, LeagueMember] = {}
        last = max(COMPILED.values())
        for bot in self.bots:
            last += bot.name not in COMPILED
            self._bot_owners[COMPILED.get(bot.name, last)] = bot
        self._last_bot, self.num_owners = last, last + ACTIVE_PAST_SELVES
        self._folder, self._boards, self._limit = folder, boards, limit

    @property
    def members(self) -> list[LeagueMember]:
        """The bots, then the past selves."""
        return self.bots + self.past_selves

    def draw(self, rng: np.random.Generator) -> tuple[dict[int, LeagueMember], np.ndarray]:
        """Draw the opponents of an iteration: all bots, and at most ACTIVE_PAST_SELVES past selves.

        Returns the opponents by their number in `seat_owners`, and the weights with which the
        numbers 1 to `num_owners` are drawn for a seat, float32. Bots together have the same weight
        as past selves together.
        """
        opponents, weights = dict(self._bot_owners), np.zeros(self.num_owners, np.float32)
        for owner, weight in zip(opponents, _hardness([*opponents.values()]), strict=True):
            weights[owner - 1] = weight
        if count := min(ACTIVE_PAST_SELVES, len(self.past_selves)):
            hardness = _hardness(self.past_selves)
            drawn = rng.choice(len(hardness), count, replace=False, p=hardness)
            for owner, index in enumerate(drawn, self._last_bot + 1):
                opponents[owner] = self.past_selves[index]
                weights[owner - 1] = 1 / count
        return opponents, weights

    def add(self, network: Network, card: dict[str, Any], name: str) -> None:
        """Add a frozen copy of the learner.

        When the pool is full, it replaces the past self with the highest score of the learner.
        """
        save_model(network, self._boards, self._path(name), card)
        if len(self.past_selves) < self._limit:
            self._load(name, len(self.past_selves))
        else:
            scores = [member.score for member in self.past_selves]
            self._load(name, scores.index(max(scores)))

    def state(self) -> list[tuple[str, float]]:
        """Return names and scores in order: all that is not in the folder."""
        return [(member.name, member.score) for member in self.members]

    def restore(self, state: list[tuple[str, float]]) -> None:
        """Restore a state.

        FileNotFoundError or ValueError when a model is missing or damaged; ValueError for other
        bots, for too many past selves, and for names that could lead out of the folder.
        """
        stored, bots = [name for name, _ in state], [bot.name for bot in self.bots]
        past_selves = stored[len(bots) :]
        if stored[: len(bots)] != bots or len(past_selves) > self._limit:
            raise ValueError(
                f"the checkpoint has the opponents {stored}; the settings have the bots {bots} and "
                f"at most {self._limit} past selves"
            )
        for index, name in enumerate(past_selves):
            if not re.fullmatch("past-[0-9]{1,18}", name):
                raise ValueError(f"not a past self: {name!r} (expected past-NUMBER)")
            self._load(name, index)
        for member, (_, score) in zip(self.members, state, strict=True):
            member.score = score

    def delete_unused_files(self) -> None:
        """Delete the models of past selves that are no longer members."""
        names = {member.name for member in self.members}
        for path in self._folder.glob("past-*"):
            if path.stem not in names:
                path.unlink()

    def _load(self, name: str, index: int) -> None:
        """Load a past self to an index of the pool."""
        network, *_ = load_model(self._path(name), self._boards)
        self.past_selves[index : index + 1] = [LeagueMember(name, network)]

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"


def _hardness(members: list[LeagueMember]) -> np.ndarray:
    """Return sampling weights with sum 1; members that beat the learner have higher ones."""
    losses = np.array([1 - member.score for member in members])
    weights = LOWEST_WEIGHT + (1 - LOWEST_WEIGHT) * losses**2
    hardness: np.ndarray = weights / max(weights.sum(), LOWEST_WEIGHT)
    return hardness


def update_scores(
    opponents: dict[int, LeagueMember],
    seat_owners: np.ndarray,
    ranks: np.ndarray,
    num_players: np.ndarray,
) -> None:
    """Update the scores of opponents by the results of games.

    opponents: by their number in `seat_owners`. seat_owners: uint8, (N, 5), 0 at a learner's seat.
    ranks: int64, (N, 5), 0 is the winner. num_players: (N,).
    """
    in_play = np.arange(ranks.shape[1]) < num_players[:, None]
    learner = in_play & (seat_owners == 0)
    for owner, member in opponents.items():
        opponent = in_play & (seat_owners == owner)
        pairs = learner[:, :, None] & opponent[:, None, :]
        if pairs.any():
            better = (ranks[:, :, None] < ranks[:, None, :]) & pairs
            share = float(better.sum() / pairs.sum())
            member.score = SCORE_DECAY * member.score + (1 - SCORE_DECAY) * share
