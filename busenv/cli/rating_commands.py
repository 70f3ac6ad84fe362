"""Commands that measure agents and the speed of this machine."""

from __future__ import annotations

import argparse
import platform
import statistics
from importlib import metadata

import busenv
from busenv.cli.command import (
    Command,
    add_board,
    add_count,
    add_out,
    add_players,
    add_ray,
    add_rules,
    add_seed,
    new_folder,
    positive,
)
from busenv.common.cores import available_cores
from busenv.observation import ObservationLayout
from busenv.profiling.measurements import MEASUREMENTS, measure

EXTRAS = ("report",)
PACKAGES = (
    "numpy numba gymnasium pettingzoo torch stable-baselines3 sb3-contrib rich matplotlib "
    "pandas scipy resvg-py pygame-ce"
).split()


def _add_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agents", nargs="+", metavar="AGENT", help="spec, such as random or uct:300"
    )
    parser.add_argument(
        "--against",
        metavar="AGENT",
        help="agent in all seats but one (default: the agents play each other)",
    )
    add_players(parser)
    add_rules(parser)
    add_board(parser, "generated:SIZE:SEED, or a set such as generated:small:test:100")
    add_count(parser, "--games", 1000, "number of games, rounded up to balanced blocks")
    add_seed(parser, "random seed of all games")
    parser.add_argument(
        "--workers",
        type=positive(int),
        metavar="N",
        help="processes, or cores of --ray local (default: one, and all cores after two seconds)",
    )
    add_ray(parser)
    add_out(parser, "runs/rate-DATE-TIME")


def _rate(args: argparse.Namespace) -> None:
    from rich.console import Console

    from busenv.common.console import print_path
    from busenv.evaluation.rating import run_rating
    from busenv.evaluation.schedule import Schedule

    schedule = Schedule(
        tuple(args.agents),
        args.players,
        args.games,
        args.seed,
        args.rules,
        args.against,
        args.board,
    )
    folder, console = args.out or new_folder("rate"), Console()
    report = run_rating(schedule, folder, args.workers, console, args.ray)
    for table in report.tables:
        table.show(console)
    if report.warning:
        console.print(f"[yellow]{report.warning}")
    print_path(console, "Report", folder / "report.md")


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against", metavar="REV", help="commit, or folder with a checkout, to compare with"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        default=[*MEASUREMENTS],
        help=f"measurements to run, of: {', '.join(MEASUREMENTS)} (default: all)",
    )
    add_count(parser, "--repeats", 5, "runs of each measurement; with --against, in each round")


def _bench(args: argparse.Namespace) -> int:
    from rich.console import Console

    from busenv.profiling.speed import compare, show_speeds

    if unknown := [name for name in args.only if name not in MEASUREMENTS]:
        raise ValueError(f"no measurement {unknown[0]!r}; allowed: {', '.join(MEASUREMENTS)}")
    if args.against is None:
        show_speeds(args.only, args.repeats, Console())
        return 0
    return 0 if compare(args.against, args.only, args.repeats, Console()) else 1


def _info(args: argparse.Namespace) -> None:
    board = busenv.load_board("city")
    speed = statistics.median(measure("playouts", 5)) / 1e6
    facts = {
        "busenv": busenv.__version__,
        "Python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "machine": f"{platform.machine()}, {available_cores()} cores",
        "board": f"{board.name}, {len(board.intersections)} intersections, "
        f"{len(board.streets)} streets, {len(board.sites)} sites",
        "fingerprint": board.fingerprint,
        "actions": str(board.num_actions),
        "observation": f"{ObservationLayout(board).size} bytes",
        "editions": ", ".join(busenv.EDITIONS),
        "speed": f"{speed:.1f} million decisions per second (random play, 4 players, one core)",
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {value}")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


COMMANDS = (
    Command(
        "rate",
        "rate agents by playing games",
        (
            "busenv rate greedy planner uct:300",
            "busenv rate net:city-2 --against planner --players 3 --games 2000",
            "busenv rate greedy planner --rules splotter-1999 --board map.json",
            "busenv rate uct:1500 planner --games 10000 --ray auto",
        ),
        _add_rate,
        _rate,
        "Play agents against each other with balanced seats and turn order, and report win rates "
        "and ratings with 95% intervals.",
        EXTRAS,
    ),
    Command(
        "bench",
        "measure speed",
        (
            "busenv bench --against main",
            "busenv bench --against v0.1.0 --only vector search --repeats 20",
            "busenv bench                         (speeds of this version)",
        ),
        _add_bench,
        _bench,
        "Measure the speed of core, environments and agents. With --against, this version and "
        "another one run in turns, and the exit status is 1 when the median ratio of a "
        "measurement is below 0.97.",
        EXTRAS,
    ),
    Command(
        "info",
        "print versions, board, speed",
        ("busenv info",),
        lambda parser: None,
        _info,
        "Print installed versions, the board, the editions, and the speed of random play.",
    ),
)
