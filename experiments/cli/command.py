"""What a command is, and the arguments that several commands have."""

from __future__ import annotations

import argparse
import os
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import busenv

Formatter = argparse.RawDescriptionHelpFormatter
WIDTH = 78  # of paragraphs


@dataclass(frozen=True)
class Command:
    """A command of `busenv`.

    summary: for the table of contents, up to 32 letters. examples: lines to type, the one for the
    table of contents first. about: what else its help says. extras: those of the project that
    all of it needs. add: adds its arguments. run: does it; returns the exit status, None for 0.
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    about: str = ""
    extras: tuple[str, ...] = ()

    def add_to(self, commands: Any) -> None:
        """Add the command to a parser's commands (`ArgumentParser.add_subparsers`)."""
        about = self.about or f"{self.summary[0].upper()}{self.summary[1:]}."
        self.add(_add_parser(commands, self.name, about, self.examples))


def add_part(
    parser: argparse.ArgumentParser,
    name: str,
    about: str,
    examples: tuple[str, ...],
    add: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Give a command a part with arguments of its own: `busenv COMMAND NAME ...`, which is told
    by `part` of what is chosen. Without it the command does what it does."""
    parts = parser.add_subparsers(dest="part", metavar=f"[{name} ...]", help=argparse.SUPPRESS)
    add(_add_parser(parts, name, about, examples))


def _add_parser(
    commands: Any, name: str, about: str, examples: tuple[str, ...]
) -> argparse.ArgumentParser:
    lines = "\n".join(f"  {example}" for example in examples)
    found: argparse.ArgumentParser = commands.add_parser(
        name,
        description=textwrap.fill(about, WIDTH),
        epilog=f"examples:\n{lines}",
        formatter_class=Formatter,
    )
    return found


def add_board(parser: argparse.ArgumentParser, what: str = "name or file of the board") -> None:
    parser.add_argument("--board", metavar="NAME|FILE", default="city", help=f"{what} (city)")


def add_rules(parser: argparse.ArgumentParser) -> None:
    first, *others = busenv.EDITIONS
    parser.add_argument(
        "--rules",
        metavar="EDITION|FILE",
        default=first,
        help=f"{', '.join(others)}, or a JSON file of rules ({first})",
    )


def add_games(parser: argparse.ArgumentParser, games: str) -> None:
    """What every rating is told: how many games, by which seed, in how many processes."""
    parser.add_argument("--games", type=positive(int), metavar="N", default=1000, help=games)
    parser.add_argument("--seed", type=seed, metavar="N", default=0, help="of all games (0)")
    parser.add_argument(
        "--workers",
        type=positive(int),
        metavar="N",
        default=os.cpu_count() or 1,
        help="processes (all cores); a cluster that runs has its own",
    )
    add_ray(parser)


def add_ray(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        default="",
        help="play on Ray's cluster: auto for the one that this machine is in, local for the cores "
        "of this one, or HOST:PORT",
    )


def new_folder(command: str) -> Path:
    """A run folder named after the command and the time."""
    return Path("runs") / time.strftime(f"{command}-%Y%m%d-%H%M%S")


def seed(text: str) -> int:
    """A seed from the command line."""
    value = int(text)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 2**31 - 1")
    return value


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """What reads a number greater than 0 from the command line."""

    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not a number greater than 0")
        return value

    return number
