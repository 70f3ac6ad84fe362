"""Plays the games of a schedule, in processes of their own.

A game depends on the schedule and its number alone: every agent is reset before it with a seed drawn
from the run's seed, the number and the seat. So the games are the same for any number of workers,
only the order in which they end differs.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from typing import Any

import numpy as np

from busenv import Game, IllegalActionError
from busenv.agents import Agent, AgentError, make_agent
from busenv.experiments.common.worker_pool import end_workers, worker_pool
from busenv.experiments.ratings.game_log import ranking
from busenv.experiments.ratings.schedule import Schedule
from busenv.interrupts import interrupts_deferred

AHEAD = 4  # games handed out to each worker at a time
LOOK = 0.1  # seconds between looks whether Ctrl-C has come
WARM_UP = 4  # decisions of a spec in a process that are not timed

# This process's agents by spec and by how often the spec has a seat before.
_agents: dict[tuple[str, int], Agent] = {}
_decided: Counter[str] = Counter()  # decisions of each spec in this process


def play_games(
    schedule: Schedule, numbers: Iterable[int], workers: int
) -> Generator[list[dict[str, Any]], None, None]:
    """Play the games of these numbers, and hand them over as they end, some at a time.

    Raises BrokenProcessPool when a worker dies. Ctrl-C is held back until the end: then games that
    have not ended are given up, those that have are handed over.
    """
    left = iter(numbers)
    running: set[Future[dict[str, Any]]] = set()
    with interrupts_deferred() as interrupted, worker_pool(workers, close_agents) as pool:
        while not interrupted:
            free = AHEAD * workers - len(running)
            running |= {pool.submit(play_game, schedule, n) for n in islice(left, free)}
            if not running:
                return
            done, running = wait(running, LOOK, FIRST_COMPLETED)
            yield [game.result() for game in done]
        yield [game.result() for game in running if game.done() and not game.exception()]
        end_workers(pool)


def play_game(
    schedule: Schedule, number: int, build: Callable[[str], Agent] = make_agent
) -> dict[str, Any]:
    """One game of a schedule, as a line of the games file. build: of an agent from its spec.

    number, agents (label by seat), record (`busenv.Record.to_dict`), points and ranking by seat,
    forfeit (None or seat, ply and why), and by seat its decisions, how many of them were timed, and
    their seconds. But for the last two, all is the same in every run of the schedule. A spec's first
    decisions in a process are not timed: code may be compiled or loaded for them, which takes
    longer than a thousand others.

    An agent that fails or chooses what is illegal forfeits: the game ends there, it is placed
    last, and the others are ranked by the standing at that moment.
    """
    entrants, first = schedule.seating(number)
    game = Game(schedule.players, schedule.loaded_rules, schedule.loaded_board, first, seed=number)
    seconds = [0.0] * schedule.players
    decisions, timed = [0] * schedule.players, [0] * schedule.players
    agents: list[Agent] = []
    forfeit = None
    keys = _keys([schedule.specs[entrant] for entrant in entrants])
    try:
        for seat, key in enumerate(keys):
            agents.append(_agent(key, build))
            agents[seat].reset(seed_of(schedule.seed, number, seat))
        while not game.is_over:
            seat = game.current_player
            began = time.perf_counter()
            action = agents[seat].act(game)
            spent, spec = time.perf_counter() - began, keys[seat][0]
            decisions[seat] += 1
            _decided[spec] += 1
            if _decided[spec] > WARM_UP:
                seconds[seat] += spent
                timed[seat] += 1
            game.step(action)
    except (AgentError, IllegalActionError) as error:
        forfeit = {"seat": seat, "ply": len(game.history), "why": str(error)}
        if keys[seat] in _agents:
            _agents.pop(keys[seat]).close()
    return {
        "number": number,
        "agents": [schedule.labels[entrant] for entrant in entrants],
        "record": game.record().to_dict(),
        "points": game.points,
        "ranking": ranking(game.ranking(), seat if forfeit else None),
        "forfeit": forfeit,
        "decisions": decisions,
        "timed": timed,
        "seconds": [round(spent, 6) for spent in seconds],
    }


def seed_of(seed: int, number: int, seat: int) -> int:
    """The seed of the agent of a seat in a game of a run."""
    return int(np.random.SeedSequence((seed, number, seat)).generate_state(1, np.uint64)[0])


def _keys(specs: list[str]) -> list[tuple[str, int]]:
    return [(spec, specs[:seat].count(spec)) for seat, spec in enumerate(specs)]


def _agent(key: tuple[str, int], build: Callable[[str], Agent]) -> Agent:
    """An agent of this process, built at its first game and kept."""
    if key not in _agents:
        _agents[key] = build(key[0])
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # the workers share the cores already
    return _agents[key]


def close_agents() -> None:
    """Close and forget the agents of this process."""
    for agent in list(_agents.values()):  # one that fails for it is dropped by the game meanwhile
        agent.close()
    _agents.clear()
