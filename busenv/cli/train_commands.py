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
    folder,
    new_folder,
    positive,
)

EXTRAS = ("train", "report")
WIDTH = 128  # of the demo's network: in three minutes it learns more than a wider, slower one


def _add_settings(parser: argparse.ArgumentParser, example: str) -> None:
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help=f"override settings, such as {example}",
    )


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
    from busenv.cli.train_report import MAX_THREADS, train_and_report
    from busenv.common.cores import available_cores
    from busenv.train.config import PRESETS

    threads = min(available_cores(), MAX_THREADS)
    changes = {"width": WIDTH, "threads": threads, "seconds": args.seconds, "seed": args.seed}
    config = PRESETS["quick"].changed(changes)
    train_and_report(config, args.out or new_folder("demo"), args.games)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config",
        metavar="CONFIG",
        help="preset: quick (PPO, three minutes), standard (PPO, an hour), full (PPO, 70 million "
        "decisions) or expert (expert iteration, an hour); or a settings file FILE.json; or a run "
        "folder to resume",
    )
    _add_settings(parser, "seconds=600 or board=map.json")
    add_rating_games(parser)
    add_out(parser, "runs/train-DATE-TIME")
    add_ray(parser)


def _train(args: argparse.Namespace) -> None:
    from busenv.cli.train_report import train_and_report
    from busenv.train.config_files import ALL_PRESETS, read_config

    source = Path(args.config)
    resumes = args.config not in ALL_PRESETS and source.is_dir()
    folder = args.out or (source if resumes else new_folder("train"))
    if resumes:
        source /= "run.json"
        if not source.exists():
            raise ValueError(f"{args.config} is not a run folder: it has no {source.name}")
    train_and_report(read_config(str(source), args.set), folder, args.games, args.ray)


def _add_selfplay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agent", metavar="AGENT", help="agent that plays, such as az:city-4:96 or uct:50"
    )
    _add_settings(parser, "samples=1000000 or players=3,4,5")
    parser.add_argument(
        "--out", type=folder, metavar="FOLDER", required=True, help="folder of the samples"
    )
    add_ray(parser)


def _selfplay(args: argparse.Namespace) -> None:
    from busenv.train.config_files import parse_settings
    from busenv.train.expert_iteration.expert_config import SelfPlayConfig
    from busenv.train.expert_iteration.selfplay_run import run_selfplay

    settings = {**parse_settings(args.set, SelfPlayConfig), "agent": args.agent}
    run_selfplay(SelfPlayConfig().changed(settings), args.out, ray=args.ray)


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", metavar="FOLDER", help="folders of samples")
    _add_settings(parser, "network=seats or epochs=2")
    add_rating_games(parser)
    add_out(parser, "runs/fit-DATE-TIME")


def _fit(args: argparse.Namespace) -> None:
    from busenv.cli.train_report import train_and_report
    from busenv.train.config_files import parse_settings
    from busenv.train.expert_iteration.expert_config import FitConfig

    settings = {**parse_settings(args.set, FitConfig), "data": tuple(args.data)}
    train_and_report(FitConfig().changed(settings), args.out or new_folder("fit"), args.games)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="run folders of busenv train"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("curves.png"),
        metavar="FILE.png",
        help="picture to write (default: curves.png)",
    )


def _plot(args: argparse.Namespace) -> None:
    from rich.console import Console

    from busenv.common.console import print_path
    from busenv.evaluation.curves import draw_curves, read_runs

    draw_curves(args.out, *read_runs(args.folders))
    print_path(Console(), "Picture", args.out)


COMMANDS = (
    Command(
        "demo",
        "train and rate a small agent",
        ("busenv demo", "busenv demo --seconds 600 --out runs/mine"),
        _add_demo,
        _demo,
        "Train a small agent for three minutes by PPO, rate it with and without search, "
        "and write a report and a page that replays one of its games.",
        EXTRAS,
    ),
    Command(
        "train",
        "train an agent, resume a run",
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
    Command(
        "plot",
        "draw learning curves of runs",
        ("busenv plot runs/lr-*", "busenv plot runs/a-0 runs/a-1 runs/b-0 --out curves.png"),
        _add_plot,
        _plot,
        "Draw the learning curves of training runs. Runs that differ in their seed only share a "
        "line: their mean, with a 95% t interval over the runs.",
        EXTRAS,
    ),
    Command(
        "selfplay",
        "play games to learn from",
        (
            "busenv selfplay uct:50 --out games",
            "busenv selfplay az:city-4:96 --set samples=1000000 --out games",
        ),
        _add_selfplay,
        _selfplay,
        "Let an agent play against itself, and write the positions, its policy and the results "
        "to a folder. The same command continues after a stop, or with more samples.",
        EXTRAS,
    ),
    Command(
        "fit",
        "fit a network to such games",
        (
            "busenv fit games --set epochs=2",
            "busenv fit runs/games runs/more-games --set network=seats --out runs/fit",
        ),
        _add_fit,
        _fit,
        "Fit a network to the samples of `busenv selfplay`, and rate it. `busenv train FOLDER` "
        "resumes.",
        EXTRAS,
    ),
)
