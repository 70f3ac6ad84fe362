"""The `busenv` command: a table of contents, and a module for each group of commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import busenv
from busenv.error_text import did_you_mean, install, printable
from busenv.experiments.cli import play_commands, rating_commands, replay_commands, train_commands
from busenv.experiments.cli.command import Command, Formatter
from busenv.experiments.cli.extras import missing_extras
from busenv.experiments.common.keyboard_interrupt import run_command

GROUPS: dict[str, tuple[Command, ...]] = {
    "Play": play_commands.COMMANDS,
    "Watch": replay_commands.COMMANDS,
    "Train": train_commands.COMMANDS,
    "Measure": rating_commands.COMMANDS,
}
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; `busenv --help` lists them.

    Exits with 2 when it cannot be done as asked, and with what the command itself says. Without
    arguments those of the process are taken, and Ctrl-C ends it (`run_command`).
    """
    if arguments is None:
        run_command(lambda: _run(sys.argv[1:]))
    else:
        _run([*arguments])


def _run(words: list[str]) -> None:
    # Threads of torch that wait should sleep, not spin: where another process wants a core, two
    # that spin were found to learn a twelfth as fast. Read once, when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    reader = parser()
    if not words:
        words = ["--help"]
    _check_command(reader, words)
    chosen = reader.parse_args(words)
    command = COMMANDS[chosen.command]
    try:
        status = command.run(chosen)
    except ModuleNotFoundError as error:
        extras = missing_extras(error.name, command.extras)
        if not extras:
            raise
        reader.exit(
            2,
            f"busenv {command.name}: {error.name} is not installed. {install(*extras)}\n",
        )
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        reader.exit(2, f"busenv: {printable(what)}\n")
    except ValueError as error:
        reader.exit(2, f"busenv: {printable(error)}\n")
    if status:
        sys.exit(status)


def parser() -> argparse.ArgumentParser:
    """What reads the command line."""
    reader = argparse.ArgumentParser(
        prog="busenv",
        usage="busenv COMMAND ...",
        description=f"{(busenv.__doc__ or '').splitlines()[0]}\n\n{contents()}",
        epilog="busenv COMMAND --help tells all about a command.",
        formatter_class=Formatter,
    )
    reader.add_argument("--version", action="version", version=f"busenv {busenv.__version__}")
    commands = reader.add_subparsers(
        dest="command", metavar="COMMAND", prog="busenv", required=True, help=argparse.SUPPRESS
    )
    for command in COMMANDS.values():
        command.add_to(commands)
    return reader


def contents() -> str:
    """The commands by group, a line each: name, what it does, an example."""
    names = max(map(len, COMMANDS))
    words = max(len(command.summary) for command in COMMANDS.values())
    lines = []
    for title, group in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {c.name:{names}}  {c.summary:{words}}  {c.examples[0]}" for c in group]
        lines.append("")
    return "\n".join(lines[:-1])


def _check_command(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Name the command that was probably meant, where there is no such command."""
    word = next((word for word in words if not word.startswith("-")), None)
    if word is None or word in COMMANDS:
        return
    hint = did_you_mean(word, COMMANDS) or f"; there are {', '.join(COMMANDS)}"
    parser.error(f"no command {word!r}{hint}")
