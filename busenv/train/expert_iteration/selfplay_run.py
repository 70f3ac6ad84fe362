"""Self-play of an agent to a folder of samples: the command `busenv selfplay`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
from rich.console import Console

from busenv import Board, Game, Rules
from busenv.agents import Agent, make_agent
from busenv.agents.az_agent import AzAgent
from busenv.agents.dependencies import file_hashes
from busenv.agents.specs import parse_spec
from busenv.batch.cuda_batch import find_device
from busenv.batch.saved_games import take_games
from busenv.cluster import connected, num_cpus
from busenv.common.console import progress_bar
from busenv.common.runs import lock_folder, store_settings
from busenv.core import kernels
from busenv.core.jit import kernel
from busenv.core.rules.step import step
from busenv.core.state import GAME, OVER
from busenv.game.board_specs import GeneratedBoards, board_at
from busenv.game.rules import as_rules
from busenv.game.states import illegal_action
from busenv.networks.compiled_network import read_weights
from busenv.networks.inference import draw_actions
from busenv.networks.logits import SEAT_VALUES
from busenv.search.tree_search import pass_forced
from busenv.train.config import training_boards
from busenv.train.expert_iteration.expert_config import SelfPlayConfig
from busenv.train.expert_iteration.expert_selfplay import (
    GAMES_PER_CALL,
    GameSpecs,
    SearchPlay,
    SelfPlayPayload,
    draw_board_index,
    draw_games,
    run_games,
)
from busenv.train.expert_iteration.lockstep_run import play_in_lockstep
from busenv.train.expert_iteration.replay_buffer import read_file, sample_files, write_file
from busenv.train.expert_iteration.samples import SAMPLE, write_decision, write_outcome

PART_GAMES = 64  # games of a file
LOCKSTEP_PARTS = 128  # files per batch on a GPU: all of their games run at once


def run_selfplay(
    config: SelfPlayConfig, folder: str | Path, console: Console | None = None, ray: str = ""
) -> int:
    """Play games and write their samples to a folder, PART_GAMES games a file.

    A folder that holds files of the same settings and the same agent, apart from `samples`,
    `threads` and `device`, is completed. ray: the cluster on which searches of a network play
    (`busenv.cluster.connected`); "" for none. Returns the number of samples.

    RunError when the folder is in use or holds samples of other settings; ValueError when the agent
    cannot play on the board, on a cluster or on a GPU; ModuleNotFoundError without numba-cuda.
    """
    folder, boards = Path(folder), training_boards(config.board)
    with (
        closing(make_agent(config.agent)) as agent,
        connected(ray),
        lock_folder(folder),
        progress_bar(console or Console(), "self-play") as bar,
    ):
        _check(agent, config, boards, ray)
        for k in range(1 if isinstance(boards, Board) else len(boards.sizes)):
            # Raises the error of an agent that does not play on the board.
            agent.act(Game(config.players[0], config.rules, board_at(boards, k), seed=0))
        settings = config.model_dump(mode="json", exclude={"samples", "threads", "device"})
        settings |= {"rules": as_rules(config.rules).to_dict(), "board": boards.fingerprint}
        store_settings(folder, settings | {"files": file_hashes((config.agent,))})
        files = sample_files(folder)
        count = sum(len(read_file(path, boards)) for path in files.values())
        task, number = bar.add_task("", total=config.samples, note=""), max(files, default=-1) + 1
        while count < config.samples:
            bar.update(task, completed=count, note=f"{count:,} samples")
            at_once = LOCKSTEP_PARTS if config.device == "cuda" else 1
            if ray:
                at_once = -(-num_cpus() * GAMES_PER_CALL // PART_GAMES)
            numbers = range(number, number + max(at_once, 1))
            rngs = [np.random.default_rng((config.seed, k)) for k in numbers]
            if isinstance(agent, AzAgent):
                parts = _search_games(agent, config, boards, rngs, bool(ray))
            else:
                parts = [_agent_games(agent, config, boards, rngs[0])]
            for k, samples in zip(numbers, parts, strict=True):
                if ray and count >= config.samples:
                    break  # one machine would stop here: both write the same files
                if len(samples):
                    write_file(folder, k, samples)
                count += len(samples)
            number = numbers.stop
        bar.update(task, completed=config.samples, note=f"{count:,} samples")
    return count


def _check(agent: Agent, config: SelfPlayConfig, boards: Board | GeneratedBoards, ray: str) -> None:
    """Raise ValueError if the agent cannot play with these settings."""
    if not isinstance(agent, AzAgent):
        if ray or config.device == "cuda":
            raise ValueError(
                f"{agent.name} plays on the CPU of one machine: remove --ray and device=cuda"
            )
    elif parse_spec(config.agent).simulations is None or agent.network.num_values != SEAT_VALUES:
        raise ValueError(
            f"{agent.name} cannot play; allowed: az with a number of simulations and a network of "
            "kind seats, features or board"
        )
    elif config.device == "cuda":
        if config.bot_share > 0:
            raise ValueError("device=cuda plays without bots: set bot_share=0")
        if agent.network.plays_any_board:
            raise ValueError("device=cuda requires a network of kind seats or features")
        if not isinstance(boards, Board):
            raise ValueError("device=cuda plays on one board: set board to a single board")
        if ray:
            raise ValueError("device=cuda cannot run on a cluster: remove --ray or device=cuda")
        find_device()


def _search_games(
    agent: AzAgent,
    config: SelfPlayConfig,
    boards: Board | GeneratedBoards,
    rngs: list[np.random.Generator],
    on_cluster: bool,
) -> list[np.ndarray]:
    """Play PART_GAMES games for each generator, by the agent's network and number of simulations.

    Returns the samples, SAMPLE, (N,), of each generator.
    """
    simulations = parse_spec(config.agent).simulations
    assert simulations is not None
    search = SearchPlay(
        simulations, config.fast_simulations, config.full_search_share, config.bot_simulations
    )
    drawn = [draw_games(config, PART_GAMES, as_rules(config.rules), boards, rng) for rng in rngs]
    games = GameSpecs(*map(np.concatenate, zip(*drawn, strict=True)))
    if config.device == "cuda":
        assert isinstance(boards, Board)
        samples = play_in_lockstep(
            games, agent.network, search, boards, slots=len(games.seeds), device=find_device()
        )
    else:
        payload = SelfPlayPayload(read_weights(agent.network), search, boards)
        samples = run_games(games, payload, config.threads, on_cluster)
    return [np.concatenate(samples[k : k + PART_GAMES]) for k in range(0, len(samples), PART_GAMES)]


def _agent_games(
    agent: Agent, config: SelfPlayConfig, boards: Board | GeneratedBoards, rng: np.random.Generator
) -> np.ndarray:
    """Play games of an agent against itself: SAMPLE, (N,). On a set, each is on its own board."""
    num_parts = 1 if isinstance(boards, Board) else PART_GAMES
    num_players = np.resize(config.players, (num_parts, PART_GAMES // num_parts)).astype(np.int64)
    parts = []
    for index, counts in zip(draw_board_index(boards, num_parts, rng), num_players, strict=True):
        samples = play_agent_games(
            agent, board_at(boards, index), as_rules(config.rules),
            num_players=counts, sample_share=config.full_search_share, rng=rng,
        )  # fmt: skip
        samples["board_index"] = index
        parts.append(samples)
    return np.concatenate(parts)


@kernel
def _write_decisions(games, policies, samples):
    for i in range(games.shape[0]):
        write_decision(samples[i], games[i], policies[i])


@kernel
def _write_outcomes(samples, game_numbers, games):
    for i in range(samples.shape[0]):
        write_outcome(samples[i : i + 1], games[game_numbers[i]])


@kernel
def _step_games(games, board, indices, actions, bits):
    """Take one action in some games and all forced ones after it. bits: uint64, (words,)."""
    for k, i in enumerate(indices):
        step(games[i], board[0], actions[k])
        pass_forced(games[i], board[0], bits)


def play_agent_games(
    agent: Agent,
    board: Board,
    rules: str | Rules,
    *,
    num_players: np.ndarray,
    sample_share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Play a batch of whole games and return samples of them: SAMPLE, (N,).

    The agent's actions are sampled from its probabilities, which are the policy target. The value
    target is the winner. num_players: int64, of each game. sample_share: probability that a
    decision becomes a sample.
    """
    games, first_players = np.zeros(len(num_players), GAME), rng.integers(0, num_players)
    for count in np.unique(num_players):
        indices = np.flatnonzero(num_players == count)
        started = np.zeros(len(indices), GAME)
        record = as_rules(rules).record(int(count))
        kernels.new_games(started, board.array, record, first_players[indices])
        games[indices] = started
    bits = np.zeros((board.num_actions + 63) // 64, np.uint64)
    rng_state = rng.integers(2**62, size=1, dtype=np.uint64)
    parts, game_numbers = [], []
    agent.reset(int(rng.integers(2**62)))
    while (running := np.flatnonzero(games["phase"] != OVER)).size:
        states = take_games(games, running)
        policies = agent.action_probabilities(states, board)
        actions = draw_actions(policies, rng_state)
        sampled = np.flatnonzero(rng.random(len(running)) < sample_share)
        part = np.zeros(len(sampled), SAMPLE)
        _write_decisions(states[sampled], policies[sampled], part)
        parts.append(part)
        game_numbers.append(running[sampled])
        if (wrong := kernels.first_illegal(states, board.array, actions)) >= 0:
            raise illegal_action(states, wrong, board, int(actions[wrong]))
        _step_games(games, board.array, running, actions, bits)
    samples = np.concatenate(parts)
    _write_outcomes(samples, np.concatenate(game_numbers), games)
    return samples
