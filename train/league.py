"""The league: frozen opponents of the learner, sampled by how hard they are to beat.

Members are scripted bots and past selves. Members that beat the learner are sampled more often:
prioritised fictitious self-play (Vinyals et al. 2019, AlphaStar).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from busenv import Board
from busenv.agents.networks.model_files import load_model, save_model
from busenv.agents.networks.network import Network
from busenv.game.board_specs import GeneratedBoards

ALL_OPPONENTS_SHARE = 0.4  # of games with one learner's seat among copies of one opponent
LOWEST_WEIGHT = 0.05  # sampling weight of an opponent that always loses; one that always wins has 1
SCORE_DECAY = 0.8  # weight of the old score when the result of a rollout arrives


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
    """

    def __init__(
        self, bots: tuple[str, ...], folder: Path, boards: Board | GeneratedBoards, limit: int
    ) -> None:
        self.bots = [LeagueMember(spec) for spec in bots]
        self.past_selves: list[LeagueMember] = []
        self._folder, self._boards, self._limit = folder, boards, limit

    @property
    def members(self) -> list[LeagueMember]:
        """The bots, then the past selves, the oldest first."""
        return self.bots + self.past_selves

    def draw(self, rng: np.random.Generator) -> list[LeagueMember]:
        """Sample at most two members: a bot and a past self if there are both."""
        if self.bots and self.past_selves:
            return _draw_hard(self.bots, 1, rng) + _draw_hard(self.past_selves, 1, rng)
        return _draw_hard(self.members, min(2, len(self.members)), rng)

    def add(self, network: Network, card: dict[str, Any], name: str) -> None:
        """Add a frozen copy of the learner.

        When the pool is full, remove the past self with the highest score of the learner.
        """
        save_model(network, self._boards, self._path(name), card)
        self._load(name)
        if len(self.past_selves) > self._limit:
            earlier = self.past_selves[:-1]
            self.past_selves.remove(max(earlier, key=lambda member: member.score))

    def state(self) -> list[tuple[str, float]]:
        """Return names and scores in order: all that is not in the folder."""
        return [(member.name, member.score) for member in self.members]

    def restore(self, state: list[tuple[str, float]]) -> None:
        """Restore a state.

        FileNotFoundError or ValueError when a model is missing or damaged; ValueError for other
        bots, and for names of past selves that could lead out of the folder.
        """
        stored, bots = [name for name, _ in state], [bot.name for bot in self.bots]
        if stored[: len(bots)] != bots:
            raise ValueError(
                f"the checkpoint has the bots {stored[: len(bots)]}, the settings {bots}"
            )
        for name in stored[len(bots) :]:
            if not re.fullmatch("past-[0-9]{1,18}", name):
                raise ValueError(f"{name!r} is no past self; allowed: past-NUMBER")
            self._load(name)
        for member, (_, score) in zip(self.members, state, strict=True):
            member.score = score

    def delete_unused_files(self) -> None:
        """Delete the models of past selves that are no longer members."""
        names = {member.name for member in self.members}
        for path in self._folder.glob("past-*"):
            if path.stem not in names:
                path.unlink()

    def _load(self, name: str) -> None:
        network, _ = load_model(self._path(name), self._boards)
        self.past_selves.append(LeagueMember(name, network))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"


def _draw_hard(
    members: list[LeagueMember], count: int, rng: np.random.Generator
) -> list[LeagueMember]:
    """Sample distinct members; those that beat the learner are more likely."""
    losses = np.array([1 - member.score for member in members])
    weights = LOWEST_WEIGHT + (1 - LOWEST_WEIGHT) * losses**2
    indices = rng.choice(len(weights), count, replace=False, p=weights / weights.sum())
    return [members[i] for i in indices]


def update_scores(
    drawn: list[LeagueMember], seat_owner: np.ndarray, ranks: np.ndarray, num_players: np.ndarray
) -> None:
    """Update the members' scores by the results of a rollout.

    seat_owner: int64, (N, 5), 0 at a learner's seat, k at that of drawn[k - 1]. ranks: int64,
    (N, 5), 0 is the winner. num_players: int64, (N,).
    """
    in_play = np.arange(ranks.shape[1]) < num_players[:, None]
    learner = in_play & (seat_owner == 0)
    for k, member in enumerate(drawn, 1):
        opponent = in_play & (seat_owner == k)
        pairs = learner[:, :, None] & opponent[:, None, :]
        if pairs.any():
            better = (ranks[:, :, None] < ranks[:, None, :]) & pairs
            share = float(better.sum() / pairs.sum())
            member.score = SCORE_DECAY * member.score + (1 - SCORE_DECAY) * share


def draw_seat_owners(
    num_players: np.ndarray, opponents: int, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Sample each seat's owner: int64, (N, 5), 0 for the learner, 1 to `opponents` for an opponent.

    In a share ALL_OPPONENTS_SHARE of the games, copies of one opponent hold all seats but one, as
    in ratings, since several copies of an opponent play differently from one among others. In the
    other games each seat is an opponent's with probability `share`. One seat of each game is always
    the learner's.
    """
    shape = (len(num_players), 5)
    if not opponents or not share:
        return np.zeros(shape, np.int64)
    opponent = rng.integers(1, opponents + 1, shape)
    single = rng.random(len(num_players)) < ALL_OPPONENTS_SHARE
    opponent[single] = opponent[single, :1]
    seat_owner = np.where((rng.random(shape) < share) | single[:, None], opponent, 0)
    seat_owner[np.arange(len(num_players)), rng.integers(0, num_players)] = 0
    return seat_owner
