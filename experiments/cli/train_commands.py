"""Commands that train."""

from __future__ import annotations

import argparse
from pathlib import Path

from busenv.experiments.cli.command import Command, add_ray, new_folder, positive, seed

EXTRAS = ("train", "report")
PART = 32  # games that a core of a cluster plays side by side


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=positive(float), metavar="S", default=180.0, help="of training (180)"
    )
    parser.add_argument(
        "--games", type=positive(int), metavar="N", default=400, help="a line-up (400)"
    )
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="of the training and the rating (0)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="run folder (runs/demo-DATE-TIME)"
    )


def _demo(chosen: argparse.Namespace) -> None:
    from busenv.experiments.training.demo import run_demo

    run_demo(chosen.out or new_folder("demo"), chosen.seconds, chosen.games, chosen.seed)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", metavar="CONFIG", help="preset (quick, standard, full), FILE.json, or run folder"
    )
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="settings, such as seconds=600 or board=map.json",
    )
    parser.add_argument(
        "--games", type=positive(int), metavar="N", default=400, help="of the rating (400)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="run folder (runs/train-DATE-TIME); goes on there",
    )
    add_ray(parser)


def _train(chosen: argparse.Namespace) -> None:
    from busenv.experiments.training.demo import train_and_report
    from busenv.train.config import PPOConfig, parse_settings
    from busenv.train.config_files import peek, programs, read_config

    source = Path(chosen.config)
    folder = chosen.out or (source if source.is_dir() else new_folder("train"))
    if source.is_dir():
        source /= "run.json"
    given = parse_settings(chosen.set, peek(str(source)))
    config = read_config(str(source), programs(given)).changed(given)
    if chosen.ray and isinstance(config, PPOConfig) and not Path(chosen.config).is_dir():
        parts = max(config.games // PART, 1)  # of the rollout of a run that begins on a cluster
        config = config.changed({"num_workers": parts, **given})
    train_and_report(config, folder, chosen.games, chosen.ray)


COMMANDS = (
    Command(
        "demo",
        "train a small agent and rate it",
        ("busenv demo", "busenv demo --seconds 600 --out runs/mine"),
        _add_demo,
        _demo,
        "Train a small agent for three minutes, rate it against the bots, and show the result.",
        EXTRAS,
    ),
    Command(
        "train",
        "train an agent, or go on",
        (
            "busenv train quick --set seconds=600",
            "busenv train standard --set players=3,4 rules=splotter-1999 --out runs/three",
            "busenv train runs/three    (goes on there)",
            "busenv train full --ray auto --set games=4096 --out runs/cluster",
        ),
        _add_train,
        _train,
        "Train an agent by a preset or by settings of your own, or go on training it.",
        EXTRAS,
    ),
)
