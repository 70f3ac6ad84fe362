"""Write the games of a dataset as a Minari dataset: the decisions of one agent."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator

import gymnasium
import minari
import numpy as np
from gymnasium.envs.registration import EnvSpec
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id

from busenv import GameDataset
from busenv.core import kernels
from busenv.envs.observation_format import ObservationFormat
from busenv.game.board_specs import recorded_board

GAMES_PER_WRITE = 200  # replayed at a time


def check_name(name: str) -> None:
    """Raise ValueError for a malformed name, or one of a local Minari dataset."""
    try:
        parse_dataset_id(name)
    except (TypeError, ValueError):
        raise ValueError(
            f"--minari is {name!r}; allowed: NAMESPACE/NAME-vN, such as bus/greedy-v0"
        ) from None
    if name in minari.list_local_datasets():
        raise ValueError(f"Minari dataset {name!r} exists; choose another name or delete it")


def write_minari(dataset: GameDataset, name: str) -> minari.MinariDataset:
    """Write an episode for every seat that the dataset's first agent played; return the dataset.

    name: of the Minari dataset, such as "bus/greedy-v0". Observations, actions and the reward "win"
    are those of `busenv/Bus-v0`; `infos["action_mask"]` has the legal actions, all true at the end.
    `recover_environment` makes that environment, unless the board was read from a file.
    Raises ValueError when no seat belongs to that agent.
    """
    spaces = ObservationFormat(dataset.board)
    created = None
    for start in range(0, len(dataset), GAMES_PER_WRITE):
        games = np.arange(start, min(start + GAMES_PER_WRITE, len(dataset)))
        if not (episodes := [*_episodes(dataset, games)]):
            continue
        if created is not None:
            created.update_dataset_from_buffer(episodes)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of missing authors and links
            created = minari.create_dataset_from_buffers(
                name,
                episodes,
                env=_environment(dataset),
                observation_space=spaces.observation_space,
                action_space=spaces.action_space,
                algorithm_name=dataset.agent_specs[0],
                description=f"Bus, {dataset.num_players} players: {', '.join(dataset.agent_specs)}",
                data_format="hdf5",
            )
    if created is None:
        raise ValueError(f"agent {dataset.agent_specs[0]!r} holds no seat of these games")
    return created


def _environment(dataset: GameDataset) -> EnvSpec | None:
    """Return the spec of the environment of the games; None for the board of a file."""
    board, entry = dataset.board, dataset.board.identity
    if recorded_board(entry).fingerprint != board.fingerprint:
        return None
    settings = {"num_players": dataset.num_players, "rules": dataset.rules.to_dict()}
    spec = copy.deepcopy(gymnasium.spec("busenv/Bus-v0"))
    spec.kwargs |= {**settings, "board": entry["name"] if board.generator else "city"}
    return spec


def _episodes(dataset: GameDataset, games: np.ndarray) -> Iterator[EpisodeBuffer]:
    """Make the episodes of the first agent's seats in some games."""
    _, owner, _, _, final = dataset.replay(games)
    table = dataset.transitions(games)
    for index, seat in np.argwhere(dataset.agents[games] == 0):
        rows = np.flatnonzero((owner == index) & (table.seats == seat))
        end = np.empty((1, table.observations.shape[1]), np.uint8)
        kernels.observe_seats(final[index : index + 1], dataset.board.array, np.array([seat]), end)
        masks = np.ones((len(rows) + 1, table.masks.shape[1]), np.bool_)
        masks[:-1] = table.masks[rows]
        is_last = table.is_last[rows]
        returns = np.where(table.ranks[rows] == 0, 1.0, -1 / (dataset.num_players - 1))
        yield EpisodeBuffer(
            observations=np.concatenate([table.observations[rows], end]),
            actions=table.actions[rows],
            rewards=np.where(is_last, returns, 0.0),
            terminations=is_last,
            truncations=np.zeros(len(rows), np.bool_),
            infos={"action_mask": masks},
        )
