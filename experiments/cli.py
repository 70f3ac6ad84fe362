"""The `busenv` command."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import busenv


def main(arguments: list[str] | None = None) -> None:
    """Run a command; `busenv --help` lists them."""
    parser = argparse.ArgumentParser(prog="busenv", description=busenv.__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"busenv {busenv.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

    demo = commands.add_parser("demo", help="train a small agent, rate it, show the result")
    demo.add_argument("--seconds", type=_positive(float), default=180.0, help="of training (180)")
    demo.add_argument("--games", type=_positive(int), default=400, help="a line-up (400)")
    demo.add_argument("--seed", type=_seed, default=0, help="of the training and the rating (0)")
    demo.add_argument("--out", type=Path, help="run folder (runs/demo-DATE-TIME)")
    commands.add_parser("info", help="versions, board, speed of this machine")
    replay = commands.add_parser("replay", help="a recorded game as one HTML page")
    replay.add_argument("record", type=Path, help="the game, as Game.save writes it")
    replay.add_argument("-o", "--out", type=Path, required=True, help="the page")
    replay.add_argument("--agent", metavar="SPEC", help="whose estimates to show at each ply")
    replay.add_argument("--board", default="city", help="name or file of the board (city)")

    chosen = parser.parse_args(arguments)
    try:
        _run(chosen)
    except ModuleNotFoundError as error:
        parser.exit(2, f'busenv: {error.name} is missing; pip install "busenv[train,report]"\n')
    except (OSError, ValueError) as error:
        parser.exit(2, f"busenv: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, "busenv: stopped\n")


def _run(chosen: argparse.Namespace) -> None:
    if chosen.command == "info":
        from experiments.info import show_info

        show_info()
    elif chosen.command == "replay":
        from experiments.replay import write_replay

        write_replay(chosen.record, chosen.out, chosen.agent, chosen.board)
    else:
        from experiments.demo import run_demo

        folder = chosen.out or Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")
        run_demo(folder, chosen.seconds, chosen.games, chosen.seed)


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
