"""The `busenv` command."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from busenv.experiments.ratings.schedule import Plan

import busenv


def main(arguments: list[str] | None = None) -> None:
    """Run a command; `busenv --help` lists them."""
    # Threads of torch that wait should sleep, not spin: where another process wants a core, two
    # that spin were found to learn a twelfth as fast. Read once, when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    parser = argparse.ArgumentParser(prog="busenv", description=busenv.__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"busenv {busenv.__version__}")
    commands = parser.add_subparsers(required=True)

    demo = commands.add_parser("demo", help="train a small agent, rate it, show the result")
    demo.add_argument("--seconds", type=_positive(float), default=180.0, help="of training (180)")
    demo.add_argument("--games", type=_positive(int), default=400, help="a line-up (400)")
    demo.add_argument("--seed", type=_seed, default=0, help="of the training and the rating (0)")
    demo.add_argument("--out", type=Path, help="run folder (runs/demo-DATE-TIME)")
    demo.set_defaults(run=_demo)

    train = commands.add_parser("train", help="train an agent, or go on training it")
    train.add_argument(
        "config", metavar="CONFIG", help="preset (quick, standard, full), FILE.json, or run folder"
    )
    train.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="settings"
    )
    train.add_argument("--games", type=_positive(int), default=400, help="of the rating (400)")
    train.add_argument("--out", type=Path, help="run folder (runs/train-DATE-TIME); goes on there")
    train.set_defaults(run=_train)

    rate = commands.add_parser("rate", help="play agents against each other and rate them")
    rate.add_argument("agents", nargs="+", metavar="AGENT", help="such as random or greedy")
    rate.add_argument("--against", metavar="AGENT", help="fills all seats but one, if given")
    rate.add_argument("--players", type=int, choices=(3, 4, 5), default=4, help="at a table (4)")
    rate.add_argument("--rules", choices=[*busenv.EDITIONS], default="capstone-2024")
    _add_run(rate, "in all, rounded up to whole balanced blocks (1000)")
    rate.add_argument("--out", type=Path, help="run folder (runs/rate-DATE-TIME); goes on there")
    rate.set_defaults(run=_rate)

    ladder = commands.add_parser("ladder", help="play the standing reference table")
    _add_run(ladder, "for each number of the table (1000)")
    ladder.add_argument(
        "--out", type=Path, default=Path("runs/ladder"), help="run folder (runs/ladder)"
    )
    ladder.add_argument("--readme", type=Path, help="file to put the table into")
    ladder.set_defaults(run=_ladder)

    show = commands.add_parser("show", help="tell a recorded game in words")
    show.add_argument("record", help="a JSON record, or FILE:NUMBER for a game of a games.jsonl")
    show.add_argument("--svg", metavar="FILE", type=Path, help="draw a position there instead")
    show.add_argument("--ply", type=int, help="after so many decisions (the last position)")
    show.set_defaults(run=_show)

    replay = commands.add_parser("replay", help="a recorded game as one HTML page")
    replay.add_argument("record", help="a JSON record, or FILE:NUMBER for a game of a games.jsonl")
    replay.add_argument("-o", "--out", type=Path, required=True, help="the page")
    replay.add_argument("--agent", metavar="SPEC", help="whose estimates to show at each ply")
    replay.add_argument("--board", default="city", help="name or file of the board (city)")
    replay.set_defaults(run=_replay)

    info = commands.add_parser("info", help="versions, board, speed of this machine")
    info.set_defaults(run=_info)

    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except ModuleNotFoundError as error:
        parser.exit(2, f'busenv: {error.name} is missing; pip install "busenv[train,report]"\n')
    except (OSError, ValueError) as error:
        parser.exit(2, f"busenv: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, "busenv: stopped\n")


def _add_run(command: argparse.ArgumentParser, games: str) -> None:
    command.add_argument("--games", type=_positive(int), default=1000, help=games)
    command.add_argument("--seed", type=_seed, default=0, help="of all games (0)")
    command.add_argument(
        "--workers", type=_positive(int), default=os.cpu_count() or 1, help="processes (all cores)"
    )


def _demo(chosen: argparse.Namespace) -> None:
    from busenv.experiments.training.demo import run_demo

    run_demo(chosen.out or _new_folder("demo"), chosen.seconds, chosen.games, chosen.seed)


def _train(chosen: argparse.Namespace) -> None:
    from busenv.experiments.training.demo import train_and_report
    from busenv.train.config import parse_settings, read_config

    source = Path(chosen.config)
    folder = chosen.out or (source if source.is_dir() else _new_folder("train"))
    if source.is_dir():
        source /= "run.json"
    config = read_config(str(source)).changed(parse_settings(chosen.set))
    train_and_report(config, folder, chosen.games)


def _rate(chosen: argparse.Namespace) -> None:
    from busenv.experiments.ratings.rating import run_rating
    from rich.console import Console
    from rich.markup import escape

    plan = Plan(
        tuple(chosen.agents),
        chosen.players,
        chosen.games,
        chosen.seed,
        chosen.rules,
        chosen.against,
    )
    folder, console = chosen.out or _new_folder("rate"), Console()
    report = run_rating(plan, folder, chosen.workers, console)
    for sheet in report.sheets:
        sheet.show(console)
    if report.warning:
        console.print(f"[yellow]{report.warning}")
    console.print(f"Report: {escape(str(folder / 'report.md'))}")


def _ladder(chosen: argparse.Namespace) -> None:
    from busenv.experiments.ratings.ladder import run_ladder
    from rich.console import Console

    run_ladder(chosen.out, chosen.games, chosen.seed, chosen.workers, Console(), chosen.readme)


def _show(chosen: argparse.Namespace) -> None:
    from busenv.experiments.replays.pages import draw_record
    from busenv.experiments.replays.words import load_played, tell

    if chosen.svg:
        draw_record(chosen.record, chosen.ply, chosen.svg)
    elif chosen.ply is not None:
        raise ValueError("--ply goes with --svg: it says which position to draw")
    else:
        print(tell(load_played(chosen.record)), end="")


def _replay(chosen: argparse.Namespace) -> None:
    from busenv.experiments.replays.pages import write_replay

    write_replay(chosen.record, chosen.out, chosen.agent, chosen.board)


def _info(chosen: argparse.Namespace) -> None:
    from busenv.experiments.info import show_info

    show_info()


def _new_folder(command: str) -> Path:
    return Path("runs") / time.strftime(f"{command}-%Y%m%d-%H%M%S")


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 2**31 - 1")
    return value


def _positive(kind: type[int] | type[float]):  # type: ignore[no-untyped-def]
    def number(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not greater than 0")
        return value

    number.__name__ = "number"
    return number


if __name__ == "__main__":
    main()
