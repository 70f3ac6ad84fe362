"""A game of a trained agent to watch, and what to do with the agent next."""

from __future__ import annotations

import shlex

from busenv import Game
from busenv.agents import Agent, make_agent
from busenv.board import board_names
from busenv.experiments.replays.pages import write_replay
from busenv.train.trainer import MODEL, Run

RECORD, PAGE, SEARCH_PAGE = "replay.json", "replay.html", "replay-uct.html"
OPPONENTS = ("planner", "greedy", "greedy", "planner")  # as many as there are other seats
SEARCH = "uct:300"  # whose estimates of the same game one of the commands shows
HOUR = 3600.0


def play_sample(run: Run) -> None:
    """Play one game of a run's agent against scripted ones; leave its record and replay page.

    The game depends on the agent and the run's seed alone. The page shows the agent's own estimates
    where its spec can name it, which is on the boards of the package.
    """
    config, players = run.config, run.config.rating_players
    seat = config.seed % players
    names = [*OPPONENTS[:seat], "ppo", *OPPONENTS[seat : players - 1]]
    agents = [run.agent if name == "ppo" else make_agent(name) for name in names]
    game = Game(players, run.rules, run.board, seed=config.seed)
    for number, agent in enumerate(agents):
        agent.reset(config.seed + number)
    _play(game, agents)
    game.save(run.folder / RECORD)
    spec = _spec(run) if config.board in board_names() else None
    write_replay(run.folder / RECORD, run.folder / PAGE, spec, board=run.board, names=names)


def _play(game: Game, agents: list[Agent]) -> None:
    while not game.is_over:
        game.step(agents[game.current_player].act(game))


def next_commands(run: Run) -> list[str]:
    """What to do with the agent next, as a shell takes it: train it, rate it, watch it.

    Three commands, or those two that need no spec of an agent of another board.
    """
    config, folder = run.config, run.folder
    if config.decisions is not None:
        longer = f"decisions={2 * config.decisions}"
    else:
        assert config.seconds is not None
        longer = f"seconds={max(HOUR, 2 * config.seconds):.0f}"
    commands = [["train", str(folder), "--set", longer]]
    page = ["--agent", SEARCH, "-o", str(folder / SEARCH_PAGE)]
    if config.board in board_names():
        players = ["--players", str(config.rating_players)] * (config.rating_players != 4)
        rules = ["--rules", config.rules] * (config.rules != "capstone-2024")
        commands.append(["rate", _spec(run), "planner", *players, *rules])
    else:
        page += ["--board", config.board]
    commands.append(["replay", str(folder / RECORD), *page])
    return [shlex.join(["busenv", *words]) for words in commands]


def _spec(run: Run) -> str:
    return f"ppo:{run.folder / MODEL}"
