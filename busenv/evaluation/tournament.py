"""Play the games of a schedule, in this process or in worker processes.

A game depends only on the schedule and its number: each agent is reset with a seed derived from
the run's seed, the number and the seat. The number of workers changes only the order in which
games end.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np

from busenv import Game, IllegalActionError
from busenv.agents import Agent, AgentError, make_agent
from busenv.agents.base import call_agent
from busenv.common.cores import available_cores
from busenv.common.worker_pool import worker_pool
from busenv.error_text import printable, truncate
from busenv.errors import AgentUnavailableError
from busenv.evaluation.game_log import ranking
from busenv.evaluation.schedule import Schedule
from busenv.schema import LONGEST_SENTENCE

GAMES_PER_WORKER = 4  # in flight
SECONDS_ALONE = 2.0  # of play in this process before workers start, which takes as long
WARM_UP = 4  # first decisions of a spec in a process, which are not timed: they compile code

# Agents of this process, by thread, spec and number of earlier seats with the same spec.
_agents: dict[tuple[int, str, int], Agent] = {}
_decisions: Counter[str] = Counter()  # of each spec in this process


def play_games(
    schedule: Schedule,
    numbers: Iterable[int],
    workers: int | None = 1,
    replies: Path | None = None,
    build: Callable[[str], Agent] = make_agent,
) -> Generator[list[dict[str, Any]], None, None]:
    """Play the games with these numbers, and yield them in groups as they end.

    workers: number of processes, at most that of the games; 1 plays in this process. None starts as
    many as there are cores if the games take longer than SECONDS_ALONE.
    replies: folder for the logs of language models' replies (`Agent.log_replies`). build: makes an
    agent from its spec.
    BrokenProcessPool when a worker dies, AgentUnavailableError when an agent cannot be reached.
    """
    play, remaining = partial(play_game, schedule, build=build, replies=replies), deque(numbers)
    workers = workers or (None if available_cores() > 1 else 1)
    alone = {1: math.inf, None: SECONDS_ALONE}.get(workers, 0.0)
    yield from _play_here(play, remaining, time.monotonic() + alone)
    if not remaining:
        return
    workers = min(workers or available_cores(), len(remaining))
    running: set[Future[dict[str, Any]]] = set()
    with worker_pool(workers, close_agents) as pool:
        while remaining or running:
            free = min(GAMES_PER_WORKER * workers - len(running), len(remaining))
            running |= {pool.submit(play, remaining.popleft()) for _ in range(free)}
            done, running = wait(running, return_when=FIRST_COMPLETED)
            failed = {game for game in done if game.exception()}
            yield [game.result() for game in done - failed]
            for game in failed:
                game.result()  # raises


def _play_here(
    play: Callable[[int], dict[str, Any]], remaining: deque[int], end: float
) -> Generator[list[dict[str, Any]], None, None]:
    """Play games in this thread until a time (of `time.monotonic`), and yield them."""
    thread = get_ident()
    torch = sys.modules.get("torch")  # imported by now if an agent needs it
    threads = torch.get_num_threads() if torch else 0
    try:
        while remaining and time.monotonic() < end:
            yield [play(remaining.popleft())]
    finally:
        close_agents(thread)
        if torch:
            torch.set_num_threads(threads)


def play_game(
    schedule: Schedule,
    number: int,
    build: Callable[[str], Agent] = make_agent,
    replies: Path | None = None,
) -> dict[str, Any]:
    """Play one game of a schedule, and return it as an object of the games file.

    build: makes an agent from its spec. replies: see `play_games`.
    Keys: number, agents (label by seat), record (`busenv.Record.to_dict`), points and ranking by
    seat, forfeit (None, or seat, ply and why), and by seat decisions, timed (decisions with a
    measured time) and seconds (their sum). All but the last two are reproducible.

    An agent that fails or takes an illegal action forfeits: the game ends, the agent is ranked
    last, and the others are ranked by their standing at that moment. AgentUnavailableError when an
    agent cannot be reached; errors of this package's own agents and of the machine are raised.
    """
    entrants, first = schedule.seating(number)
    board = schedule.board_of(number)
    game = Game(schedule.players, schedule.loaded_rules, board, first, seed=number)
    seconds = [0.0] * schedule.players
    decisions, timed = [0] * schedule.players, [0] * schedule.players
    seated: list[Agent] = []
    forfeit = None
    specs = [schedule.specs[entrant] for entrant in entrants]
    keys = [(get_ident(), spec, specs[:seat].count(spec)) for seat, spec in enumerate(specs)]
    try:
        for seat, key in enumerate(keys):
            seated.append(_agent(key, build))
            call_agent(seated[seat], "reset", _seed_of(schedule.seed, number, seat))
            if replies:
                seated[seat].log_replies(replies / f"{number}.jsonl", seat)
        while not game.is_over:
            seat = game.current_player
            start = time.perf_counter()
            action = call_agent(seated[seat], "act", game)
            spent, spec = time.perf_counter() - start, keys[seat][1]
            decisions[seat] += 1
            _decisions[spec] += 1
            if _decisions[spec] > WARM_UP:
                seconds[seat] += spent
                timed[seat] += 1
            game.step(action)
    except AgentUnavailableError:
        raise
    except (AgentError, IllegalActionError) as error:
        forfeit = {"seat": seat, "ply": len(game.history), "why": _reason(error)}
        if keys[seat] in _agents:
            _agents.pop(keys[seat]).close()
    # An agent in several seats forfeits with all of them, so that it cannot win the game.
    forfeits = [forfeit is not None and entrant == entrants[seat] for entrant in entrants]
    return {
        "number": number,
        "agents": [schedule.labels[entrant] for entrant in entrants],
        "record": game.record().to_dict(),
        "points": game.points,
        "ranking": ranking(game.ranking(), forfeits),
        "forfeit": forfeit,
        "decisions": decisions,
        "timed": timed,
        "seconds": [round(spent, 6) for spent in seconds],
    }


def _reason(error: Exception) -> str:
    """The message of an error as one line of limited length, as a games file stores it."""
    return truncate(printable(error), LONGEST_SENTENCE)


def _seed_of(seed: int, number: int, seat: int) -> int:
    """Return the seed of an agent by the run's seed, the number of the game and the seat."""
    return int(np.random.SeedSequence((seed, number, seat)).generate_state(1, np.uint64)[0])


def _agent(key: tuple[int, str, int], build: Callable[[str], Agent]) -> Agent:
    """Return an agent of this thread, built for its first game."""
    if key not in _agents:
        _agents[key] = build(key[1])
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # each worker has one core
    return _agents[key]


def close_agents(thread: int | None = None) -> None:
    """Close the agents of a thread, by default of all threads of this process."""
    for key in [key for key in _agents if thread in (None, key[0])]:
        _agents.pop(key).close()
