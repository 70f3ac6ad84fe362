"""Commands that show recorded games, and that record games as a dataset."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from busenv import Game, Record
from busenv.cli.command import (
    Command,
    add_board,
    add_count,
    add_out,
    add_players,
    add_recorded_board,
    add_rules,
    add_seed,
    add_workers,
    new_folder,
)
from busenv.error_text import printable

RECORD = "a JSON record, or FILE:NUMBER for a game of a games.jsonl"


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help=f"{RECORD}; FILE alone lists its games")
    parser.add_argument(
        "--draw", metavar="FILE", type=Path, help="draw a position to FILE.svg or FILE.png"
    )
    parser.add_argument(
        "--ply", type=int, metavar="N", help="draw the position after N decisions (default: last)"
    )
    add_recorded_board(parser)


def _show(args: argparse.Namespace) -> None:
    from busenv.evaluation.narration import load_recorded_game, narrate
    from busenv.evaluation.replay_files import draw_record

    path = Path(args.record)
    if args.draw is not None:
        draw_record(args.record, args.ply, args.draw, args.board)
        print(f"Picture: {printable(args.draw)}")
    elif args.ply is not None:
        raise ValueError("--ply needs --draw, whose position it selects")
    elif path.suffix == ".jsonl" and path.is_file() and len(games := _games(path, args.board)) != 1:
        print(list_games(games, args.record, args.board), end="")
    else:
        print(narrate(load_recorded_game(args.record, args.board)), end="")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help=RECORD)
    outputs = parser.add_mutually_exclusive_group(required=True)
    outputs.add_argument("-o", "--out", type=Path, metavar="FILE.html", help="page to write")
    outputs.add_argument(
        "--gif", type=Path, metavar="FILE.gif", help="animation to write (extra: render)"
    )
    parser.add_argument("--agent", metavar="AGENT", help="agent whose estimates the page shows")
    add_recorded_board(parser)


def _replay(args: argparse.Namespace) -> None:
    from busenv.evaluation.replay_files import write_animation, write_replay

    if args.gif is None:
        write_replay(args.record, args.out, args.agent, args.board)
    elif args.agent is not None:
        raise ValueError("an animation shows no estimates; remove --agent, or write a page by -o")
    else:
        write_animation(args.record, args.gif, args.board)
    print(f"Replay: {printable(args.gif or args.out)}")


def _games(path: Path, board: str | None) -> list[dict[str, Any]]:
    """Return the games of a games file by number; RecordError for games of another board."""
    from busenv.evaluation.game_log import read_games

    games = read_games(path)
    for game in games:
        Game.begin_record(Record.from_dict(game["record"]), board)
    return sorted(games, key=lambda game: game["number"])


def list_games(games: list[dict[str, Any]], source: str, board: str | None = None) -> str:
    """Return a line per game: number, rounds, winner, agents by seat.

    board: the argument `--board` for the command that shows a game.
    """
    if not games:
        return f"{source} has no games\n"
    lines = ["game   rounds  winner  agents by seat"]
    for game in games:
        result, winner = game["record"]["result"], game["ranking"].index(0)
        rounds = result["rounds"] if result else "cut off"
        agents = printable(", ".join(game["agents"]))
        lines.append(f"{game['number']:4}  {rounds:>7}  seat {winner}  {agents}")
    options = ["--board", board] if board else []
    command = shlex.join(["busenv", "show", f"{source}:{games[0]['number']}", *options])
    return "\n".join(lines) + f"\n\nShow one in words: {command}\n"


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agents", nargs="+", metavar="AGENT", help="spec; each seat draws one of the agents"
    )
    add_players(parser)
    add_rules(parser)
    add_board(parser)
    add_count(parser, "--games", 1000, "games")
    add_seed(parser, "random seed of all games")
    add_workers(parser, "worker processes (default: number of cores)")
    parser.add_argument(
        "--minari",
        metavar="ID",
        help="also write the decisions of the first agent as a Minari dataset, such as "
        "bus/greedy-v0",
    )
    add_out(parser, "runs/export-DATE-TIME")


def _export(args: argparse.Namespace) -> None:
    from rich.console import Console

    from busenv.evaluation.dataset_export import DATASET, export_games

    if args.minari is not None:
        from busenv.evaluation.minari_export import check_name, write_minari

        check_name(args.minari)
    folder = args.out or new_folder("export")
    dataset = export_games(
        args.agents,
        folder,
        players=args.players,
        games=args.games,
        seed=args.seed,
        rules=args.rules,
        board=args.board,
        workers=args.workers,
        console=Console(stderr=True),
    )
    print(f"{len(dataset):,} games, {dataset.num_decisions:,} decisions, SHA-256 {dataset.digest}")
    print(f"Dataset: {printable(folder / DATASET)}")
    if args.minari is not None:
        write_minari(dataset, args.minari)
        print(f"Minari dataset: {args.minari}")


COMMANDS = (
    Command(
        "show",
        "describe a game in words",
        (
            "busenv show game.json",
            "busenv show runs/mine/games.jsonl       (lists its games)",
            "busenv show runs/mine/games.jsonl:17",
            "busenv show game.json --draw end.svg",
            "busenv show game.json --ply 120 --draw middle.png",
        ),
        _add_show,
        _show,
        "Describe a recorded game in words, or draw one of its positions.",
    ),
    Command(
        "replay",
        "write a game as a page or GIF",
        (
            "busenv replay game.json -o game.html",
            "busenv replay game.json --gif game.gif",
            "busenv replay runs/mine/games.jsonl:17 -o 17.html --agent uct:300",
        ),
        _add_replay,
        _replay,
        "Write one HTML page of a recorded game: a slider, moves in words, points over time, and "
        "optionally an agent's estimates of each position. Or write an animated GIF with a frame "
        "for each decision.",
    ),
    Command(
        "export",
        "record games as a dataset",
        (
            "busenv export greedy --games 20000",
            "busenv export planner greedy random --players 3 --games 20000",
            "busenv export az:city-4:64 --games 20000 --minari bus/expert-v0",
        ),
        _add_export,
        _export,
        "Play games between agents and write them as a dataset for imitation and offline "
        "learning; busenv.load_dataset reads it. The same arguments give the same games.",
        ("report",),
    ),
)
