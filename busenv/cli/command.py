"""A command of `busenv`, and the options that several commands share."""

from __future__ import annotations

import argparse
import atexit
import itertools
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import busenv
from busenv.common.cores import available_cores

Formatter = argparse.RawDescriptionHelpFormatter
WIDTH = 78  # columns of a description


@dataclass(frozen=True)
class Command:
    """A command of `busenv`.

    summary: up to 32 characters, for `busenv --help`. examples: command lines, of which
    `busenv --help` shows the first. add_arguments: adds the command's arguments to its parser.
    run: executes the command and returns its exit status, None for 0. description: for
    `busenv COMMAND --help`. extras: extras of the package that every use of the command needs.
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    description: str
    extras: tuple[str, ...] = ()

    def add_to(self, commands: Any) -> None:
        """Add the command to the subparsers of a parser (`ArgumentParser.add_subparsers`)."""
        lines = "\n".join(f"  {example}" for example in self.examples)
        parser = commands.add_parser(
            self.name,
            help=self.summary,
            description=textwrap.fill(self.description, WIDTH),
            epilog=f"examples:\n{lines}",
            formatter_class=Formatter,
        )
        parser.set_defaults(run=self.run)
        self.add_arguments(parser)


def add_board(
    parser: argparse.ArgumentParser, generated_help: str = "or generated:SIZE:SEED"
) -> None:
    parser.add_argument(
        "--board",
        metavar="NAME|FILE",
        default="city",
        help=f"name or file of a board, {generated_help} (default: city)",
    )


def add_recorded_board(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--board",
        metavar="NAME|FILE",
        help="board of the game (default: city, or the generated board that the record names)",
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    default, *others = busenv.EDITIONS
    parser.add_argument(
        "--rules",
        metavar="EDITION|FILE",
        default=default,
        help=f"{default} (default), {', '.join(others)}, or a JSON file of rules",
    )


def add_count(parser: argparse.ArgumentParser, option: str, default: int, description: str) -> None:
    """Add an option that takes a whole number greater than 0."""
    parser.add_argument(
        option,
        type=positive(int),
        metavar="N",
        default=default,
        help=f"{description} (default: {default})",
    )


def add_seed(parser: argparse.ArgumentParser, description: str) -> None:
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help=f"{description} (default: 0)"
    )


def add_players(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--players", type=int, choices=(3, 4, 5), default=4, help="players per game (default: 4)"
    )


def add_out(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--out",
        type=folder,
        metavar="FOLDER",
        help=f"run folder; an existing run resumes (default: {default})",
    )


def add_rating_games(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--games", 200, "games against each opponent in the final rating")


def add_workers(parser: argparse.ArgumentParser, description: str) -> None:
    parser.add_argument(
        "--workers", type=positive(int), metavar="N", default=available_cores(), help=description
    )


def add_ray(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        default="",
        help="play on a Ray cluster: auto (the one this machine belongs to), local (one on this "
        "machine's cores), or HOST:PORT",
    )


def folder(text: str) -> Path:
    """Parse the path of a folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; give the path of a folder")
    return Path(text)


def new_folder(command: str) -> Path:
    """Create a run folder, named after the command and the time; it is removed if it stays empty.

    Commands that start in the same second get different folders.
    """
    name = time.strftime(f"{command}-%Y%m%d-%H%M%S")
    for number in itertools.count(1):
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            path.mkdir(parents=True)
            break
    atexit.register(_remove_if_empty, path.absolute())
    return path


def _remove_if_empty(path: Path) -> None:
    with suppress(OSError):
        path.rmdir()


def seed(text: str) -> int:
    """Parse a seed."""
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2**31 - 1")
    return int(text)


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Return a parser of numbers greater than 0."""

    def number(text: str) -> float:
        with suppress(ValueError):
            if 0 < (value := kind(text)) < float("inf"):
                return value
        name = "whole number" if kind is int else "number"
        raise argparse.ArgumentTypeError(f"{text!r} is not a {name} greater than 0")

    return number
