"""The command `play`."""

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
        help="a player, 3 to 5 times: you, a friend with a link, or an agent's spec; starts a game "
        "at once (by default the start page opens)",
    )
    add_rules(parser)
    add_board(parser)
    parser.add_argument(
        "--first-player",
        type=int,
        choices=range(5),
        metavar="SEAT",
        help="the first player (by default drawn from the seed)",
    )
    parser.add_argument("--seed", type=seed, metavar="N", help="seed of the game (by default random)")
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="FOLDER",
        default=FOLDER,
        help=f"folder of the saved games, which are restored ({FOLDER})",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address of the server; 0.0.0.0 lets others in your network join (127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=int, metavar="N", default=PORT, help=f"port of the server; 0: any free one ({PORT})"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the link without opening a browser"
    )


def _play(args: argparse.Namespace) -> None:
    from busenv.experiments.play.launch import serve

    serve(
        args.seats or [],
        rules=args.rules,
        board=args.board,
        first_player=args.first_player,
        seed=args.seed,
        folder=args.folder,
        host=args.host,
        port=args.port,
        browser=not args.no_browser,
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
        "Play against agents and friends in the browser, with undo, hints and analysis. Games are "
        "saved in a folder and restored when the command runs again.",
        EXTRAS,
    ),
)
