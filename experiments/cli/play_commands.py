"""Commands that play."""

from __future__ import annotations

import argparse
from pathlib import Path

from busenv.experiments.cli.command import Command, add_board, add_rules, seed

EXTRAS = ("play",)
FOLDER = Path("runs") / "play"
PORT = 8437


def _add_play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seat",
        action="append",
        dest="seats",
        metavar="me|friend|AGENT",
        help="who sits there, 3 to 5 times: you, somebody who gets a link, an agent by its spec; "
        "begins a game at once (without: a page to choose on)",
    )
    add_rules(parser)
    add_board(parser)
    parser.add_argument(
        "--first-player",
        type=int,
        choices=range(5),
        metavar="SEAT",
        help="who starts (by default drawn from the seed)",
    )
    parser.add_argument("--seed", type=seed, metavar="N", help="of the game (by default a new one)")
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="FOLDER",
        default=FOLDER,
        help=f"where games are kept and gone on with ({FOLDER})",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="to listen at; 0.0.0.0 lets others in your network join (127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=int, metavar="N", default=PORT, help=f"to listen at; 0: any ({PORT})"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="only print the link, open no browser"
    )


def _play(chosen: argparse.Namespace) -> None:
    from busenv.experiments.play.launch import serve

    serve(
        chosen.seats or [],
        chosen.rules,
        chosen.board,
        chosen.first_player,
        chosen.seed,
        chosen.folder,
        chosen.host,
        chosen.port,
        browser=not chosen.no_browser,
    )


COMMANDS = (
    Command(
        "play",
        "play in the browser",
        (
            "busenv play",
            "busenv play --seat me --seat uct:1000 --seat uct:1000 --seat uct:1000",
            "busenv play --seat me --seat friend --seat greedy --host 0.0.0.0",
        ),
        _add_play,
        _play,
        "Play against agents and friends in the browser: choose who sits where, then click on the "
        "picture. With takeback, hints and analysis. Games are kept in a folder, and go on when "
        "the command is run again.",
        EXTRAS,
    ),
)
