"""Train an agent, rate it against the bots, and write a report with a sample game."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import busenv
from busenv import Board, Game
from busenv.agents import Agent, make_agent
from busenv.agents.match import Score
from busenv.common.console import TextTable, print_path, progress_bar
from busenv.common.cores import available_cores
from busenv.evaluation.replay_files import write_replay
from busenv.game.board_specs import board_at
from busenv.io import write_whole
from busenv.train.config import PPOConfig
from busenv.train.config_files import AnyConfig, resume_command
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.learning_curve import CURVE
from busenv.train.run_training import (
    PICTURE,
    AnyRun,
    describe_training,
    evaluate,
    rating_boards,
    run_training,
)
from busenv.train.training_run import MODEL

REPORT, RECORD, PAGE, SEARCH_PAGE = "report.md", "replay.json", "replay.html", "replay-uct.html"
COLUMNS = ["line-up", "wins", "95% interval", "rank", "points"]  # of the first agent
OPPONENTS = ("planner", "uct:50", "planner", "uct:50")  # of the sample game, as many as needed
SEARCH = "uct:300"  # estimates the sample game in one of the suggested commands
HOUR = 3600.0
MAX_THREADS = 4
SIMULATIONS = 64  # of the search in the report that the network guides


def train_and_report(config: AnyConfig, folder: Path, games: int, ray: str = "") -> None:
    """Train in a folder, rate the agent, write a report and a replay, and print the results.

    games: of each rating. ray: the cluster to play on, as for `run_training`.
    """
    console = Console()
    run, _ = run_training(config, folder, console, ray)
    match_ups = _match_ups(run)
    with progress_bar(console, "rating") as bar:
        task = bar.add_task("", total=len(match_ups) + 1, note="")
        rows = []
        for agent, bot in match_ups:
            bar.update(task, note=f"{agent.name} against {bot}")
            rows.append(_row(run, bot, evaluate(run, agent, bot, games)))
            bar.advance(task)
        bar.update(task, note="sample game")
        _play_sample(run)
        bar.update(task, advance=1, note="")
    table = TextTable(_caption(run, games), COLUMNS, rows)
    table.show(console)
    commands = _next_commands(run)
    write_whole(folder / REPORT, _report(table, run, commands))
    for title, name in (("Report", REPORT), ("Learning curve", PICTURE), ("Replay", PAGE)):
        print_path(console, title, folder / name)
    console.print("Next steps:")
    for command in commands:
        console.print(f"  {escape(command)}", soft_wrap=True, highlight=False)


def _spec(run: AnyRun, threads: int = 1) -> str:
    """Spec of the search that a run's network guides."""
    return f"az@{threads}:{run.folder / MODEL}:{SIMULATIONS}".replace("az@1:", "az:")


def _match_ups(run: AnyRun) -> list[tuple[Agent, str]]:
    """Return the search with each bot but `random`, which it always beats, and the network."""
    search = make_agent(_spec(run, min(available_cores(), MAX_THREADS)))
    search.name = f"az:{SIMULATIONS}"
    bots = run.config.rated
    return [
        *((search, bot) for bot in bots if bot != "random"),
        *((run.agent, bot) for bot in bots),
    ]


def _caption(run: AnyRun, games: int) -> str:
    players = run.config.rating_players
    caption = (
        f"{games} games each of {players} players, seats and starting player rotated; "
        f"par is {1 / players:.0%} of wins"
    )
    if not isinstance(run.boards, Board):
        caption += f"; boards {rating_boards(run, games).name}"
    return caption


def _row(run: AnyRun, bot: str, score: Score) -> list[str]:
    low, high = score.interval()
    return [
        f"{score.name}, {run.config.rating_players - 1} {bot}",
        f"{score.wins / score.games:.1%}",
        f"{low:.1%} to {high:.1%}",
        f"{score.rank + 1:.2f}",
        f"{score.points:.2f}",
    ]


def _report(table: TextTable, run: AnyRun, commands: list[str]) -> str:
    """The report in Markdown."""
    shell, seconds = "\n".join(commands), run.card()["training"]["seconds"]
    return f"""# An agent, trained and rated

busenv {busenv.__version__}, board {run.boards.name}, rules {run.rules.name}. Trained by
{describe_training(run.config)}; {run.decisions:,} training decisions in {seconds:.0f} s; seed
{run.config.seed}.

{table.title}. Wins, rank and points are those of a line-up's first agent; rank and points are
means; rank 1 is the winner's.

{table.markdown().rstrip()}

![learning curve]({PICTURE})

[{PAGE}]({PAGE}) replays a game of the agent with its estimates. `{CURVE}` holds the curve,
`{MODEL}` and its card the agent, `run.json` the settings, and the folder `tensorboard` the
statistics.

Next steps:

```sh
{shell}
```
"""


def _play_sample(run: AnyRun) -> None:
    """Play a game of a run's agent against bots; write its record and its replay page.

    The game depends on the agent and the run's seed alone. The page shows the agent's estimates.
    """
    config, players = run.config, run.config.rating_players
    seat, spec = config.seed % players, _spec(run)
    own = spec.partition(":")[0]
    names = [*OPPONENTS[:seat], own, *OPPONENTS[seat : players - 1]]
    agents = [make_agent(spec if name == own else name) for name in names]
    board = board_at(rating_boards(run, 1), 0)
    game = Game(players, run.rules, board, seed=config.seed)
    for number, agent in enumerate(agents):
        agent.reset(config.seed + number)
    while not game.is_over:
        game.step(agents[game.current_player].act(game))
    game.save(run.folder / RECORD)
    write_replay(run.folder / RECORD, run.folder / PAGE, spec, board=board, names=names)


def _next_commands(run: AnyRun) -> list[str]:
    """Shell commands that train the agent for longer, rate it, and replay the sample game."""
    config, folder, commands = run.config, run.folder, []
    if isinstance(config, PPOConfig | ExpertConfig):
        longer = {"decisions": f"{2 * (config.decisions or 0)}"}
        if config.seconds is not None:
            longer = {"seconds": f"{max(HOUR, 2 * config.seconds):.0f}"}
        commands.append(resume_command(config, folder, **longer))
    players = ["--players", str(config.rating_players)] * (config.rating_players != 4)
    rules = ["--rules", config.rules] * (config.rules != PPOConfig().rules)
    is_board = isinstance(run.boards, Board)
    name = config.board if is_board else board_at(rating_boards(run, 1), 0).name
    board = ["--board", name] * (name != PPOConfig().board)
    page = ["--agent", SEARCH, "-o", str(folder / SEARCH_PAGE)]
    commands.append(["rate", _spec(run), "planner", *players, *rules, *board])
    commands.append(["replay", str(folder / RECORD), *page, *board])
    path = Path(sys.executable).with_name("busenv")
    on_path = shutil.which("busenv") or not path.exists()
    program = "busenv" if on_path else os.path.relpath(path)
    return [shlex.join([program, *arguments]) for arguments in commands]
