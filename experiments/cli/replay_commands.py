"""Commands that show recorded games."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from busenv import Record
from busenv.error_text import printable
from busenv.experiments.cli.command import Command, add_board
from busenv.game.board import as_board

RECORD = "a JSON record, or FILE:NUMBER for a game of a games.jsonl"
PICTURES = (".svg", ".png")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help=f"{RECORD}; FILE alone lists its games")
    parser.add_argument(
        "--draw", metavar="FILE", type=Path, help="draw a position there instead, .svg or .png"
    )
    parser.add_argument(
        "--ply", type=int, metavar="N", help="draw the position after N decisions (the last)"
    )
    add_board(parser, "name or file of the board it was played on")


def _show(chosen: argparse.Namespace) -> None:
    from busenv.experiments.replays.narration import load_played, tell
    from busenv.experiments.replays.replay_files import draw_record

    if chosen.draw is None and chosen.ply is not None:
        raise ValueError("--ply goes with --draw: it says which position to draw")
    if chosen.draw is not None and chosen.draw.suffix not in PICTURES:
        raise ValueError(f"--draw is {str(chosen.draw)!r}; allowed: FILE.svg or FILE.png")
    source = chosen.record
    if Path(source).suffix == ".jsonl" and Path(source).is_file():
        games = _games(Path(source), chosen.board)
        if len(games) != 1:
            print(list_games(games, source), end="")
            return
        source = f"{source}:{games[0]['number']}"
    if chosen.draw is not None:
        draw_record(source, chosen.ply, chosen.draw, chosen.board)
    else:
        print(tell(load_played(source, chosen.board)), end="")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help=RECORD)
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE.html", required=True, help="the page"
    )
    parser.add_argument("--agent", metavar="SPEC", help="whose estimates to show at each ply")
    add_board(parser, "name or file of the board it was played on")


def _replay(chosen: argparse.Namespace) -> None:
    from busenv.agents import AgentError
    from busenv.experiments.replays.replay_files import write_replay

    try:
        write_replay(chosen.record, chosen.out, chosen.agent, chosen.board)
    except AgentError as error:
        raise ValueError(f"agent {chosen.agent!r}: {error}") from error


def _games(path: Path, name: str) -> list[dict[str, Any]]:
    """The games of a games file, checked on the board of a name, in order of number."""
    from busenv.experiments.ratings.rating_store import parse_games
    from busenv.experiments.replays.narration import check_here

    board = as_board(name)
    with path.open("rb") as file:
        games, _ = parse_games(file, path, lambda game: check_here(game, board))
    for game in games:
        Record.from_dict(game["record"]).begin(board)  # RecordError for another board
    return sorted(games, key=lambda game: game["number"])


def list_games(games: list[dict[str, Any]], source: str) -> str:
    """A line a game: its number, who won it, how many rounds it had, the agents by seat."""
    if not games:
        return f"{source} has no games\n"
    lines = ["game   rounds  winner  agents by seat"]
    for game in games:
        result, winner = game["record"]["result"], game["ranking"].index(0)
        rounds = result["rounds"] if result else "cut off"
        agents = printable(", ".join(game["agents"]))
        lines.append(f"{game['number']:4}  {rounds:>7}  seat {winner}  {agents}")
    number = games[0]["number"]
    command = shlex.join(["busenv", "show", f"{source}:{number}"])
    return "\n".join(lines) + f"\n\n{command} tells game {number} in words\n"


COMMANDS = (
    Command(
        "show",
        "tell a recorded game in words",
        (
            "busenv show game.json",
            "busenv show runs/mine/games.jsonl       (lists its games)",
            "busenv show runs/mine/games.jsonl:17",
            "busenv show game.json --draw end.svg",
            "busenv show game.json --ply 120 --draw middle.png",
        ),
        _add_show,
        _show,
        "Tell a recorded game in words, or draw a position of it.",
    ),
    Command(
        "replay",
        "make a page of a recorded game",
        (
            "busenv replay game.json -o game.html",
            "busenv replay runs/mine/games.jsonl:17 -o 17.html --agent uct:300",
        ),
        _add_replay,
        _replay,
        "Make one HTML page of a recorded game: slider, moves in words, points over time, and "
        "what an agent makes of each position, if one is given.",
    ),
)
