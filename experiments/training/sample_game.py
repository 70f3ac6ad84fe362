"""Sample game of a trained agent, and commands for next steps."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from busenv import Game
from busenv.agents import make_agent
from busenv.experiments.replays.replay_files import write_replay
from busenv.experiments.training.training_run import AnyRun
from busenv.train.config import PPOConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.run import MODEL

RECORD, PAGE, SEARCH_PAGE = "replay.json", "replay.html", "replay-uct.html"
OPPONENTS = ("planner", "greedy", "greedy", "planner")  # of the other seats, as many as needed
SEARCH = "uct:300"  # estimates the same game in one of the commands
HOUR = 3600.0


def play_sample(run: AnyRun) -> None:
    """Play one game of a run's agent against scripted ones; write its record and replay page.

    The game depends on the agent and the run's seed alone. The page shows the agent's estimates.
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
    while not game.is_over:
        game.step(agents[game.current_player].act(game))
    game.save(run.folder / RECORD)
    write_replay(run.folder / RECORD, run.folder / PAGE, spec, board=run.board, names=names)


def next_commands(run: AnyRun) -> list[str]:
    """Shell commands that train the agent for longer, rate it, and replay the sample game."""
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
    return [shlex.join([_program(), *arguments]) for arguments in commands]


def _program() -> str:
    """The command `busenv`: its name, or its path if only this Python's folder has it."""
    path = Path(sys.executable).with_name("busenv")
    if shutil.which("busenv") or not path.exists():
        return "busenv"
    return os.path.relpath(path)


def playing_spec(run: AnyRun) -> str:
    """Spec of a run's agent: its network, with the run's search in expert iteration."""
    model = run.folder / MODEL
    if isinstance(run.config, ExpertConfig):
        return f"az:{model}:{run.config.num_simulations}"
    return f"net:{model}"
