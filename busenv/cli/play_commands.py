"""Commands that play: in the browser, and by tools of the Model Context Protocol."""

from __future__ import annotations

import argparse
from pathlib import Path

from busenv.agents import make_agent
from busenv.cli.command import Command, add_board, add_rules, folder, seed

EXTRAS = ("play",)
FOLDER = Path("runs") / "play"
PORT = 8437


def _add_play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seat",
        action="append",
        dest="seats",
        metavar="me|friend|AGENT",
        help="player of the next seat: you, a person who joins by a link, or an agent; give 3 to "
        "5 to start a game at once (default: choose on the page)",
    )
    add_rules(parser)
    add_board(parser)
    parser.add_argument(
        "--first-player",
        type=int,
        choices=range(5),
        metavar="SEAT",
        help="with --seat: seat of the starting player, from 0 (default: drawn from the seed)",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        metavar="N",
        help="with --seat: random seed of the game (default: a new one)",
    )
    parser.add_argument(
        "--folder",
        type=folder,
        metavar="FOLDER",
        default=FOLDER,
        help=f"where games are stored and resumed (default: {FOLDER})",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 admits your network (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        default=PORT,
        help=f"port to listen on, 0 for any free one (default: {PORT})",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the link without opening a browser"
    )


def _play(args: argparse.Namespace) -> None:
    from busenv.play.launch import serve

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


def _add_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent",
        action="append",
        default=[],
        dest="agents",
        metavar="AGENT",
        help="another agent that the client may name, such as az:city-3:300; may be repeated",
    )


def _mcp(args: argparse.Namespace) -> None:
    from busenv.play.mcp_server import AGENTS, serve

    for spec in args.agents:
        make_agent(spec).close()  # an error now, not in the client
    serve((*AGENTS, *args.agents))


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
        "stored in a folder and resume when the command runs again.",
        EXTRAS,
    ),
    Command(
        "mcp",
        "serve games over MCP",
        ("busenv mcp", "busenv mcp --agent az:city-3:300"),
        _add_mcp,
        _mcp,
        "Serve the Model Context Protocol on standard input and output: tools to start a game, "
        "see it, take actions, undo, and ask an agent for a hint.",
        ("mcp",),
    ),
)
