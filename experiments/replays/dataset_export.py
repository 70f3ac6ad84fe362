"""Play games between agents and write them as a dataset (`busenv.dataset`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from busenv import Board, GameDataset, Rules, load_dataset, make_agent
from busenv.core import kernels
from busenv.core.state import GAME
from busenv.dataset import ARRAYS
from busenv.experiments.common.console import progress_bar
from busenv.experiments.common.runs import RunError, lock_folder, store_settings
from busenv.experiments.common.worker_pool import worker_pool
from busenv.experiments.ratings.dependencies import file_hashes
from busenv.experiments.ratings.match import play_games_to_end
from busenv.experiments.ratings.rating import check_agent
from busenv.game.board_specs import as_board
from busenv.game.rules import as_rules

DATASET = "dataset.npz"  # in a run folder
GAMES_PER_PART = 250  # played as one batch and stored in one file until all games are played


def export_games(
    agents: Sequence[str],
    folder: Path,
    *,
    players: int,
    games: int,
    seed: int,
    rules: str,
    board: str,
    workers: int,
    console: Console,
) -> GameDataset:
    """Play games, write them to `dataset.npz` in a run folder, and return the dataset.

    agents: specs; every seat of every game draws one of them uniformly at random. The games depend
    on the arguments only, not on `workers`, the number of processes. A stopped run resumes after
    its last complete part.

    RunError when an agent cannot be built or fails, or the folder is in use or holds another run.
    As `load_board` and `load_rules` raise for board and rules.
    """
    loaded_board, loaded_rules = as_board(board), as_rules(rules)
    for spec in agents:
        check_agent(spec, rules, board)
    settings = {
        "agents": [*agents],
        "players": players,
        "games": games,
        "seed": seed,
        "rules": loaded_rules.to_dict(),
        "board": loaded_board.fingerprint,
        "files": file_hashes(tuple(agents)),
    }
    play = partial(_play_part, tuple(agents), loaded_board, loaded_rules, players, games, seed)
    with lock_folder(folder):
        store_settings(folder, settings)
        paths = [folder / f"part-{k:05}.npz" for k in range(-(-games // GAMES_PER_PART))]
        if not (folder / DATASET).exists():
            _play_parts(play, paths, workers, console)
            _concatenate([load_dataset(path, board) for path in paths]).save(folder / DATASET)
        for path in paths:
            path.unlink(missing_ok=True)
    return load_dataset(folder / DATASET, board)


def _play_parts(
    play: Callable[[int], GameDataset], paths: Sequence[Path], workers: int, console: Console
) -> None:
    """Play the parts without a file, and write each as soon as it is played."""
    missing = [k for k, path in enumerate(paths) if not path.exists()]
    bar = progress_bar(console, "parts")
    with bar, worker_pool(max(min(workers, len(missing)), 1)) as pool:
        task = bar.add_task("", total=len(paths), completed=len(paths) - len(missing), note="")
        try:
            for k, part in zip(missing, pool.map(play, missing), strict=True):
                part.save(paths[k])
                bar.update(task, advance=1)
        except BrokenProcessPool as error:
            raise RunError(f"a worker process died; the same command resumes: {error}") from error


def _play_part(
    agents: tuple[str, ...],
    board: Board,
    rules: Rules,
    players: int,
    games: int,
    seed: int,
    part: int,
) -> GameDataset:
    """Play the games of part number `part`."""
    count = min(GAMES_PER_PART, games - part * GAMES_PER_PART)
    rng = np.random.default_rng((seed, part))
    first = rng.integers(0, players, count)
    seat_owner = rng.integers(0, len(agents), (count, players))
    opened = [make_agent(spec, int(rng.integers(2**62))) for spec in agents]
    states = np.zeros(count, GAME)
    kernels.new_games(states, board.array, rules.record(players), first)
    decisions = [*play_games_to_end(opened, seat_owner, states, board)]
    for agent in opened:
        agent.close()
    owners, actions = (np.concatenate(column) for column in zip(*decisions, strict=True))
    return GameDataset(
        board,
        rules,
        agents,
        seed,
        players,
        first_players=first.astype(np.uint8),
        agents=seat_owner.astype(np.uint8),
        lengths=np.bincount(owners, minlength=count).astype(np.uint16),
        actions=actions[np.argsort(owners, kind="stable")].astype(np.uint16),
    )


def _concatenate(parts: Sequence[GameDataset]) -> GameDataset:
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS
    }
    return dataclasses.replace(parts[0], **arrays)
