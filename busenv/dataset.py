"""Datasets of recorded games for imitation and offline learning.

`busenv export` writes a dataset: the actions of many games in one `.npz` file. Observations and
masks are not stored; `GameDataset.transitions` recomputes them by replaying the games in compiled
code.

Arrays of the file, for G games with D decisions in all:

- `first_players`: uint8, (G,).
- `agents`: uint8, (G, num_players), the agent in each seat: an index into `agents` of `metadata`.
- `lengths`: uint16, (G,), decisions of each game; `actions`: uint16, (D,), of all games in order.
- `metadata`: a JSON object as text: `format`, `rules`, `board` (name, fingerprint, and the
  generator version of a generated board), `num_players`, `agents` (specs), `seed`.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from busenv.core import kernels
from busenv.core.relative_types import write_relative_actions
from busenv.core.state import GAME
from busenv.error_text import quote
from busenv.game.board import Board
from busenv.game.board_specs import as_board, recorded_board
from busenv.game.rules import Rules, check_players
from busenv.game.states import illegal_action
from busenv.io import read_bounded, write_whole
from busenv.observation import observe_games
from busenv.validation import check_seed

FORMAT = "busenv-dataset-1"
LARGEST_FILE = 2**32  # bytes; 20,000 games take 2 to 3 MB
LARGEST_RATIO = 100  # of the arrays to the compressed file, unless they are SMALL
SMALL = 2**28  # bytes of arrays
ARRAYS = {
    "first_players": (np.uint8, 1),
    "agents": (np.uint8, 2),
    "lengths": (np.uint16, 1),
    "actions": (np.uint16, 1),
}  # dtype and number of dimensions


class Replay(NamedTuple):
    """Replayed games.

    games: int64, (N,), their numbers in the dataset. owner: int64, (D,), the game of each decision,
    an index into `games`. actions: int64, (D,). states: GAME (`busenv.core.state`), (D,), before
    each decision. final: GAME, (N,), at the end.
    """

    games: np.ndarray
    owner: np.ndarray
    actions: np.ndarray
    states: np.ndarray
    final: np.ndarray


class Transitions(NamedTuple):
    """The decisions of some games, in order, each from the view of the seat that decides.

    observations: uint8, (N, size). masks: bool, (N, num_actions). actions: int64, (N,).
    games: int64, (N,), number of the game in the dataset. seats: int64, (N,).
    agents: int64, (N,), index of the agent that decided.
    ranks: int64, (N,), final rank of the seat, 0 for the winner (R20). points: int64, (N,), its
    final points.
    is_last: bool, (N,), whether this is the seat's last decision of the game. The reward "win" is
    given at this decision: 1 if `ranks` is 0, else -1/(n-1) with n players.
    """

    observations: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    games: np.ndarray
    seats: np.ndarray
    agents: np.ndarray
    ranks: np.ndarray
    points: np.ndarray
    is_last: np.ndarray


@dataclass(frozen=True, eq=False)
class GameDataset:
    """Games of one board, edition and number of players; arrays as in the file (see this module).

    agent_specs: the agents that `agents` refers to. seed: of `busenv export`.
    """

    board: Board
    rules: Rules
    agent_specs: tuple[str, ...]
    seed: int
    num_players: int
    first_players: np.ndarray
    agents: np.ndarray
    lengths: np.ndarray
    actions: np.ndarray

    def __post_init__(self) -> None:
        for name, (dtype, dimensions) in ARRAYS.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.ndim != dimensions:
                raise ValueError(
                    f"{name} has shape {array.shape} and dtype {array.dtype}; allowed: "
                    f"{np.dtype(dtype)} of {dimensions} dimensions"
                )
        check_players(self.num_players)
        if not (
            len(self.lengths) == len(self.first_players)
            and self.agents.shape == (len(self.lengths), self.num_players)
            and self.lengths.sum(dtype=np.int64) == len(self.actions)
        ):
            raise ValueError("its arrays have different numbers of games or decisions")
        if not (
            (self.first_players < self.num_players).all()
            and (self.agents < len(self.agent_specs)).all()
        ):
            raise ValueError("a first player or an agent is out of range")

    def __len__(self) -> int:
        """Return the number of games."""
        return len(self.lengths)

    @property
    def num_decisions(self) -> int:
        """Number of decisions of all games."""
        return len(self.actions)

    @property
    def digest(self) -> str:
        """SHA-256 of metadata and arrays: equal for equal datasets, however they are compressed."""
        digest = hashlib.sha256()
        for name, array in self._content().items():
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def replay(self, games: Sequence[int] | np.ndarray) -> Replay:
        """Replay games by the rules.

        games: indices, 0 to len - 1, else IndexError. Raises ValueError for a game that breaks the
        rules; the message names the game of an illegal action.
        """
        numbers = np.asarray(games).reshape(-1)
        are_indices = numbers.dtype.kind in "iu"  # a mask would be read as games 0 and 1
        if numbers.size and not (are_indices and numbers.min() >= 0 and numbers.max() < len(self)):
            raise IndexError(f"games are {quote(games)}; allowed: indices 0 to {len(self) - 1}")
        numbers = numbers.astype(np.int64)
        lengths = self.lengths[numbers].astype(np.int64)
        owner = np.repeat(np.arange(len(numbers)), lengths)
        starts = np.cumsum(self.lengths, dtype=np.int64)[numbers] - np.cumsum(lengths)
        actions = self.actions[starts[owner] + np.arange(len(owner))].astype(np.int64)
        final = np.zeros(len(numbers), GAME)
        first = self.first_players[numbers].astype(np.int64)
        kernels.new_games(final, self.board.array, self.rules.record(self.num_players), first)
        states = np.zeros(len(actions), GAME)
        illegal = kernels.replay_games(final, self.board.array, actions, lengths, states)
        if illegal == len(actions):
            raise ValueError("damaged dataset: a game is not over after its last action")
        if illegal >= 0:
            state, action = states[illegal : illegal + 1], int(actions[illegal])
            error = illegal_action(state, 0, self.board, action)
            raise ValueError(f"damaged dataset: game {numbers[owner[illegal]]}: {error}")
        return Replay(numbers, owner, actions, states, final)

    def transitions(
        self, games: Sequence[int] | np.ndarray, relative_types: bool = False
    ) -> Transitions:
        """Return all decisions of games, with observations, masks and results.

        games: as for `replay`, whose errors apply. relative_types: count building types from the
        clock in observations and actions (`busenv.observation`).
        """
        numbers, owner, actions, states, final = self.replay(games)
        ranks = kernels.rankings(final, self.num_players)
        points = final["deliveries"].astype(np.int64) - final["stones"]
        seats = states["seat"].astype(np.int64)
        is_last = np.zeros(len(actions), np.bool_)
        trajectories = owner * self.num_players + seats
        is_last[len(actions) - 1 - np.unique(trajectories[::-1], return_index=True)[1]] = True
        if relative_types:
            write_relative_actions(states, self.board.array, actions)
        observations, masks = observe_games(
            states, self.board, trusted=True, relative_types=relative_types
        )
        return Transitions(
            observations,
            masks,
            actions,
            numbers[owner],
            seats,
            self.agents[numbers[owner], seats].astype(np.int64),
            ranks[owner, seats],
            points[owner, seats],
            is_last,
        )

    def _content(self) -> dict[str, np.ndarray]:
        metadata = {
            "format": FORMAT,
            "rules": self.rules.to_dict(),
            "board": self.board.identity,
            "num_players": self.num_players,
            "agents": self.agent_specs,
            "seed": self.seed,
        }
        text = np.array(json.dumps(metadata, sort_keys=True))
        return {name: getattr(self, name) for name in ARRAYS} | {"metadata": text}

    def save(self, path: str | Path) -> None:
        """Write the dataset to an `.npz` file, whole or not at all."""
        file = io.BytesIO()
        np.savez_compressed(file, **self._content())  # type: ignore[arg-type]
        write_whole(path, file.getvalue())


def load_dataset(path: str | Path, board: str | Path | Board | None = None) -> GameDataset:
    """Read a dataset that `busenv export` wrote.

    board: the board of the games, unless it is the city or a generated board.

    Raises OSError for a file that cannot be read, ValueError for a damaged or too large file,
    another format or another board.
    """
    given = None if board is None else as_board(board)
    content = io.BytesIO(read_bounded(path, limit=LARGEST_FILE))
    try:
        return _read_dataset(content, given)
    except Exception as error:  # a damaged file raises errors of many kinds
        raise ValueError(f"{path} is not a dataset of games: {error}") from error


def _read_dataset(stream: io.BytesIO, board: Board | None) -> GameDataset:
    """Read a dataset; any error for a damaged one."""
    if not zipfile.is_zipfile(stream):
        raise ValueError("it is not an .npz file")
    size = sum(entry.file_size for entry in zipfile.ZipFile(stream).infolist())
    if size > max(LARGEST_RATIO * len(stream.getbuffer()), SMALL):
        raise ValueError(f"it would take {size:,} bytes in memory, too many for its size")
    stream.seek(0)
    with np.load(stream, allow_pickle=False) as file:
        arrays = {name: file[name] for name in ARRAYS}
        metadata = json.loads(str(file["metadata"]))
    if metadata["format"] != FORMAT:
        raise ValueError(f"format {quote(metadata['format'])}; this busenv reads {FORMAT}")
    loaded = recorded_board(metadata["board"], board)
    if loaded.fingerprint != metadata["board"]["fingerprint"]:
        raise ValueError(
            f"its games were played on another board than {loaded!r}; give that board (board=...)"
        )
    rules, specs = Rules.from_dict(metadata["rules"]), metadata["agents"]
    if not (isinstance(specs, list) and all(isinstance(spec, str) for spec in specs)):
        raise ValueError(f"agents are {quote(specs)}; allowed: a list of specs")
    seed, players = check_seed(metadata["seed"]), metadata["num_players"]
    return GameDataset(loaded, rules, tuple(specs), seed, players, **arrays)
