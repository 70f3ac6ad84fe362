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

import busenv
from busenv import (
    AgentError,
    Board,
    GameDataset,
    IllegalActionError,
    Rules,
    load_dataset,
    make_agent,
)
from busenv.agents.dependencies import file_hashes
from busenv.agents.match import play_games_to_end
from busenv.agents.specs import parse_spec
from busenv.common.console import print_path, progress_bar
from busenv.common.runs import RunError, lock_folder, store_settings
from busenv.common.worker_pool import worker_pool
from busenv.core import kernels
from busenv.core.state import GAME
from busenv.dataset import ARRAYS
from busenv.error_text import quote
from busenv.evaluation.rating import check_agent
from busenv.game.board_specs import as_board
from busenv.game.rules import as_rules

DATASET = "dataset.npz"  # in a run folder
GAMES_PER_PART = 250  # played as one batch and stored in one file until all games are played
MAX_AGENTS = 255  # their indices are bytes


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

    RunError when an agent cannot be built, is a language model, fails or takes an illegal action,
    or the folder is in use or holds another run. Raises the errors of `load_board` and `load_rules`
    for an invalid board or invalid rules.
    """
    loaded_board, loaded_rules = as_board(board), as_rules(rules)
    _check_agents(agents, rules, board, players)
    settings = {
        "busenv": busenv.__version__,
        "agents": [*agents],
        "players": players,
        "games": games,
        "seed": seed,
        "rules": loaded_rules.to_dict(),
        "board": loaded_board.fingerprint,
        "files": file_hashes(tuple(agents)),
    }
    play = partial(_play_part, tuple(agents), loaded_board, loaded_rules, players, seed)
    with lock_folder(folder):
        print_path(console, "Run folder", folder)
        store_settings(folder, settings)
        sizes = [min(GAMES_PER_PART, games - k) for k in range(0, games, GAMES_PER_PART)]
        paths = [folder / f"part-{part:05}.npz" for part in range(len(sizes))]
        if not (folder / DATASET).exists():
            try:
                _play_parts(play, sizes, paths, workers, console)
            except (AgentError, IllegalActionError, BrokenProcessPool) as error:
                resume = f"the same command with --out {folder} resumes"
                raise RunError(f"{error}; {resume}") from error
            _concatenate([load_dataset(path, board) for path in paths]).save(folder / DATASET)
        for path in paths:
            path.unlink(missing_ok=True)
    return load_dataset(folder / DATASET, board)


def _check_agents(agents: Sequence[str], rules: str, board: str, players: int) -> None:
    """Raise RunError for too many agents, a language model, or an agent that cannot play."""
    if len(agents) > MAX_AGENTS:
        raise RunError(f"{len(agents)} agents; allowed: 1 to {MAX_AGENTS}")
    for spec in agents:
        if parse_spec(spec).language_model:
            raise RunError(
                f"agent {quote(spec)} is a language model, which would be asked for every "
                "decision; choose another agent"
            )
        check_agent(spec, rules, board, players=players)


def _play_parts(
    play: Callable[[int, int, Path], None],
    sizes: Sequence[int],
    paths: Sequence[Path],
    workers: int,
    console: Console,
) -> None:
    """Play the parts without a file in worker processes, which write them."""
    missing = [part for part, path in enumerate(paths) if not path.exists()]
    bar, total, left = progress_bar(console, "games"), sum(sizes), sum(sizes[k] for k in missing)
    with bar, worker_pool(max(min(workers, len(missing)), 1)) as pool:
        task = bar.add_task("", total=total, completed=total - left, note="")
        columns = zip(*((part, sizes[part], paths[part]) for part in missing), strict=True)
        for part, _ in zip(missing, pool.map(play, *columns), strict=True):
            bar.update(task, advance=sizes[part])


def _play_part(
    agents: tuple[str, ...],
    board: Board,
    rules: Rules,
    players: int,
    seed: int,
    part: int,
    count: int,
    path: Path,
) -> None:
    """Play the games of part number `part`, `count` of them, and write them to a file."""
    rng = np.random.default_rng((seed, part))
    first = rng.integers(0, players, count)
    seat_owner = rng.integers(0, len(agents), (count, players))
    opened = [make_agent(spec, int(rng.integers(2**62))) for spec in agents]
    states = np.zeros(count, GAME)
    kernels.new_games(states, board.array, rules.record(players), first)
    decisions = [*play_games_to_end(opened, seat_owner, states, rules=rules, board=board)]
    for agent in opened:
        agent.close()
    owners, actions = (np.concatenate(column) for column in zip(*decisions, strict=True))
    dataset = GameDataset(
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
    dataset.save(path)


def _concatenate(parts: Sequence[GameDataset]) -> GameDataset:
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS
    }
    return dataclasses.replace(parts[0], **arrays)
