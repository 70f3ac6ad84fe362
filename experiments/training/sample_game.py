"""A game of a trained agent to watch, and what to do with the agent next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from busenv import Game
from busenv.agents import Agent, make_agent
from busenv.experiments.replays.replay_files import write_replay
from busenv.experiments.training.training_run import AnyRun
from busenv.train.config import PPOConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.run import MODEL

RECORD, PAGE, SEARCH_PAGE = "replay.json", "replay.html", "replay-uct.html"
OPPONENTS = ("planner", "greedy", "greedy", "planner")  # as many as there are other seats
SEARCH = "uct:300"  # whose estimates of the same game one of the commands shows
HOUR = 3600.0


def play_sample(run: AnyRun) -> None:
    """Play one game of a run's agent against scripted ones; leave its record and replay page.

    The game depends on the agent and the run's seed alone. The page shows the agent's own
    estimates.
    """
    config, players = run.config, run.config.rating_players
    seat = config.seed % players
    spec = playing_spec(run)
    own = spec.partition(":")[0]
    names = [*OPPONENTS[:seat], own, *OPPONENTS[seat : players - 1]]
    agents = [make_agent(spec if name == own else name) for name in names]
    game = Game(players, run.rules, run.board, seed=config.seed)
    for number, agent in enumerate(agents):
        agent.reset(config.seed + number)
    _play(game, agents)
    game.save(run.folder / RECORD)
    write_replay(run.folder / RECORD, run.folder / PAGE, spec, board=run.board, names=names)


def _play(game: Game, agents: list[Agent]) -> None:
    while not game.is_over:
        game.step(agents[game.current_player].act(game))


def next_commands(run: AnyRun) -> list[str]:
    """Three commands for a shell: train the agent for longer, rate it, see what a search thinks."""
    config, folder = run.config, run.folder
    if config.decisions is not None:
        longer = f"decisions={2 * config.decisions}"
    else:
        assert config.seconds is not None
        longer = f"seconds={max(HOUR, 2 * config.seconds):.0f}"
    players = ["--players", str(config.rating_players)] * (config.rating_players != 4)
    rules = ["--rules", config.rules] * (config.rules != PPOConfig().rules)
    board = ["--board", config.board] * (config.board != PPOConfig().board)
    page = ["--agent", SEARCH, "-o", str(folder / SEARCH_PAGE)]
    commands = (
        ["train", str(folder), "--set", longer],
        ["rate", playing_spec(run), "planner", *players, *rules, *board],
        ["replay", str(folder / RECORD), *page, *board],
    )
    return [shlex.join([_program(), *words]) for words in commands]


def _program() -> str:
    """The command line as it can be called here: by its name, or beside this Python."""
    beside = Path(sys.executable).with_name("busenv")
    if shutil.which("busenv") or not beside.exists():
        return "busenv"
    return os.path.relpath(beside)


def playing_spec(run: AnyRun) -> str:
    """The agent that a run has made: its network, with the search that it learned by, if any."""
    model = run.folder / MODEL
    if isinstance(run.config, ExpertConfig):
        return f"az:{model}:{run.config.num_simulations}"
    return f"net:{model}"
