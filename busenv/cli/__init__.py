"""The `busenv` command: its overview, with a module for each group of commands."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

import busenv
from busenv.cli import (
    benchmark_command,
    play_commands,
    rating_commands,
    replay_commands,
    train_commands,
)
from busenv.cli.command import Command, Formatter
from busenv.cli.extras import missing_extras
from busenv.error_text import install, printable
from busenv.errors import AgentError

SUMMARY = "busenv: the board game Bus as a reinforcement-learning environment."
# Exit statuses that shells report for programs ended by SIGINT and by SIGPIPE.
INTERRUPTED, CLOSED_PIPE = 130, 141

GROUPS: dict[str, tuple[Command, ...]] = {
    "Play": play_commands.COMMANDS,
    "Recorded games": replay_commands.COMMANDS,
    "Train": train_commands.COMMANDS,
    "Measure": rating_commands.COMMANDS + benchmark_command.COMMANDS,
}
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command.

    arguments: by default those of the process; then Ctrl-C prints one line and exits with status
    130. Exits with status 2 when the arguments are invalid, else with the status that the command
    returns.
    """
    if arguments is not None:
        _run([*arguments])
        return
    try:
        _run_process()
    except KeyboardInterrupt:
        print("busenv: stopped", file=sys.stderr)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the process at once
        sys.exit(INTERRUPTED)


def _run_process() -> None:
    """Run the command of the process, whose streams accept every character and may be closed."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        try:
            _run(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the exit
        sys.exit(CLOSED_PIPE)


def _run(arguments: list[str]) -> None:
    # Idle torch threads sleep instead of spinning: next to another busy process, two spinning
    # threads trained at a twelfth of the speed. Torch reads the variable once, when imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    top = parser()
    args = top.parse_args(arguments or ["--help"])
    command = COMMANDS[args.command]
    try:
        status = args.run(args)
    except ModuleNotFoundError as error:
        extras = missing_extras(error.name, command.extras)
        if not extras:
            raise
        top.exit(2, f"busenv {args.command}: {error.name} is not installed. {install(*extras)}\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        top.exit(2, f"busenv: {printable(message)}\n")
    except (ValueError, AgentError) as error:
        top.exit(2, f"busenv: {printable(error)}\n")
    if status:
        sys.exit(status)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="busenv",
        usage="busenv COMMAND [OPTIONS]",
        description=f"{SUMMARY}\n\n{overview()}",
        epilog="Run 'busenv COMMAND --help' for the options of a command.",
        formatter_class=Formatter,
    )
    top.add_argument("--version", action="version", version=f"busenv {busenv.__version__}")
    commands = top.add_subparsers(
        dest="command", metavar="COMMAND", prog="busenv", required=True, help=argparse.SUPPRESS
    )
    for command in COMMANDS.values():
        command.add_to(commands)
    return top


def overview() -> str:
    """List the commands by group, one per line: name, summary, example."""
    name_width = max(map(len, COMMANDS))
    width = max(len(command.summary) for command in COMMANDS.values())
    lines = []
    for title, group in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {c.name:{name_width}}  {c.summary:{width}}  {c.examples[0]}" for c in group]
        lines.append("")
    return "\n".join(lines[:-1])
