"""Commands that train agents."""

from __future__ import annotations

import argparse
from pathlib import Path

from busenv.cli.command import (
    Command,
    add_out,
    add_rating_games,
    add_ray,
    add_seed,
    new_folder,
    positive,
)

EXTRAS = ("train", "report")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=positive(float),
        metavar="S",
        default=180.0,
        help="training time in seconds (default: 180)",
    )
    add_rating_games(parser)
    add_seed(parser, "random seed of training and rating")
    add_out(parser, "runs/demo-DATE-TIME")


def _demo(args: argparse.Namespace) -> None:
    from busenv.cli.demo import run_demo

    run_demo(args.out or new_folder("demo"), args.seconds, args.games, args.seed)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config",
        metavar="CONFIG",
        help="preset: quick (PPO, three minutes), standard (PPO, an hour), full (PPO, 12 million "
        "decisions) or expert (expert iteration, an hour); or a settings file FILE.json; or a run "
        "folder to resume",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="override settings, such as seconds=600 or board=map.json",
    )
    add_rating_games(parser)
    add_out(parser, "runs/train-DATE-TIME")
    add_ray(parser)


def _train(args: argparse.Namespace) -> None:
    from busenv.cli.demo import train_and_report
    from busenv.train.config import parse_settings
    from busenv.train.config_files import ALL_PRESETS, config_class_of, programs, read_config

    source = Path(args.config)
    resumes = args.config not in ALL_PRESETS and source.is_dir()
    folder = args.out or (source if resumes else new_folder("train"))
    if resumes:
        source /= "run.json"
        if not source.exists():
            raise ValueError(f"{args.config} is not a run folder: it has no {source.name}")
    given = parse_settings(args.set, config_class_of(str(source)))
    config = read_config(str(source), programs(given)).changed(given)
    train_and_report(config, folder, args.games, args.ray)


COMMANDS = (
    Command(
        "demo",
        "train a small agent and rate it",
        ("busenv demo", "busenv demo --seconds 600 --out runs/mine"),
        _add_demo,
        _demo,
        "Train a small agent for three minutes by PPO, rate it with and without search, "
        "and write a report and a page that replays one of its games.",
        EXTRAS,
    ),
    Command(
        "train",
        "train an agent or resume a run",
        (
            "busenv train quick --set seconds=600",
            "busenv train standard --set players=3,4 rules=splotter-1999 --out runs/three",
            "busenv train runs/three    (resumes)",
            "busenv train expert --ray auto --set games=4096 --out runs/cluster",
        ),
        _add_train,
        _train,
        "Train an agent with a preset or a settings file, or resume a run.",
        EXTRAS,
    ),
)
