"""Commands that measure: agents, and this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from busenv.experiments.cli import benchmark_command
from busenv.experiments.cli.command import (
    Command,
    add_board,
    add_games,
    add_part,
    add_rules,
    new_folder,
    positive,
)

EXTRAS = ("report",)
MEASUREMENTS = (
    "playouts", "vector", "vector-2", "vector-copy", "sb3", "aec", "learner", "learner-vec",
    "greedy", "planner", "search",
)  # fmt: skip


def _add_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="+", metavar="AGENT", help="such as random or greedy")
    parser.add_argument("--against", metavar="AGENT", help="fills all seats but one, if given")
    parser.add_argument(
        "--players", type=int, choices=(3, 4, 5), default=4, help="of each game (4)"
    )
    add_rules(parser)
    add_board(parser)
    add_games(parser, "in all, rounded up to whole balanced blocks (1000)")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="run folder (runs/rate-DATE-TIME); goes on there"
    )


def _rate(chosen: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.markup import escape

    from busenv.experiments.ratings.rating import run_rating
    from busenv.experiments.ratings.schedule import Schedule

    plan = Schedule(
        tuple(chosen.agents),
        chosen.players,
        chosen.games,
        chosen.seed,
        chosen.rules,
        chosen.against,
        chosen.board,
    )
    folder, console = chosen.out or new_folder("rate"), Console()
    report = run_rating(plan, folder, chosen.workers, console, chosen.ray)
    for sheet in report.sheets:
        sheet.show(console)
    if report.warning:
        console.print(f"[yellow]{report.warning}")
    console.print(f"Report: {escape(str(folder / 'report.md'))}")


def _add_ladder(parser: argparse.ArgumentParser) -> None:
    add_rules(parser)
    add_board(parser)
    add_games(parser, "for each number of the table (1000)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        default=Path("runs/ladder"),
        help="run folder (runs/ladder); goes on there",
    )
    parser.add_argument("--readme", type=Path, metavar="FILE", help="to put the table into")


def _ladder(chosen: argparse.Namespace) -> None:
    from rich.console import Console

    from busenv.experiments.ratings.ladder import run_ladder

    run_ladder(
        chosen.out,
        chosen.games,
        chosen.seed,
        chosen.workers,
        Console(),
        chosen.readme,
        chosen.rules,
        chosen.board,
        chosen.ray,
    )


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against", metavar="REV", help="commit, or folder with a checkout, to compare with"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help=f"some of {', '.join(MEASUREMENTS)}"
    )
    parser.add_argument(
        "--repeats", type=positive(int), metavar="N", default=15, help="of each measurement (15)"
    )
    parser.add_argument(
        "--tolerance",
        type=positive(float),
        metavar="PERCENT",
        default=3.0,
        help="by which nothing may be slower (3)",
    )
    add_part(
        parser,
        "agents",
        benchmark_command.ABOUT,
        benchmark_command.EXAMPLES,
        benchmark_command.add_agents,
    )


def _bench(chosen: argparse.Namespace) -> int:
    from rich.console import Console

    if chosen.part == "agents":
        benchmark_command.run_agents(chosen)
        return 0
    names = chosen.only or MEASUREMENTS
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        raise ValueError(f"no measurement {unknown[0]!r}; allowed: {', '.join(MEASUREMENTS)}")
    if chosen.against is None:
        from busenv.experiments.profiling.environment_speed import show_speeds

        show_speeds(Console(), chosen.repeats, names)
        return 0
    from busenv.experiments.profiling.compare_versions import run_against

    tolerance = chosen.tolerance / 100
    good = run_against(chosen.against, names, chosen.repeats, tolerance, Console())
    return 0 if good else 1


def _add_info(parser: argparse.ArgumentParser) -> None:
    """It has no arguments."""


def _info(chosen: argparse.Namespace) -> None:
    from busenv.experiments.common.system_info import show_info

    show_info()


COMMANDS = (
    Command(
        "rate",
        "play agents against each other",
        (
            "busenv rate greedy planner uct:300",
            "busenv rate net:city-2 --against planner --players 3 --games 2000",
            "busenv rate greedy planner --rules splotter-1999 --board map.json",
            "busenv rate uct:1500 planner --games 10000 --ray auto",
        ),
        _add_rate,
        _rate,
        "Play agents against each other, all seats and turns alike, and rate them with intervals.",
        EXTRAS,
    ),
    Command(
        "ladder",
        "play the table of known agents",
        ("busenv ladder", "busenv ladder --games 200 --out runs/short"),
        _add_ladder,
        _ladder,
        "Play the standing table of known agents, 3 to 5 players, and print it.",
        ("train", *EXTRAS),
    ),
    Command(
        "bench",
        "time the code, compare learners",
        (
            "busenv bench --against main",
            "busenv bench --against v0.1.0 --only vector search --repeats 41",
            "busenv bench                         (speeds of this machine alone)",
            "busenv bench agents                  (how much learners learn)",
        ),
        _add_bench,
        _bench,
        "Time core, environments and search on this machine. With --against the package that runs "
        "and another version take turns, run by run; the exit status is 1 where it is slower than "
        "that by more than the tolerance. `busenv bench agents` measures learners instead.",
        EXTRAS,
    ),
    Command(
        "info",
        "versions, board, speed here",
        ("busenv info",),
        _add_info,
        _info,
        "Print what is installed, the board and the editions, and how fast random play is here.",
    ),
)
