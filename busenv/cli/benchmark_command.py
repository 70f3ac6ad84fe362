"""`busenv benchmark` and `busenv exploit`: learners and exploiters."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from busenv.cli.command import (
    Command,
    add_count,
    add_out,
    add_players,
    add_workers,
    new_folder,
    seed,
)
from busenv.error_text import did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

EXTRAS = ("train", "report")


def _add_benchmark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "learners",
        nargs="*",
        metavar="LEARNER|AGENT",
        help="learner to train and measure: ppo, ppo-self-play, one-seat, imitation or "
        "expert-iteration; or trained agents to measure as runs of one learner, such as net:PATH "
        "or exec:COMMAND",
    )
    _add_seeds(parser, "0-4")
    add_players(parser)
    parser.add_argument(
        "--decisions",
        type=int,
        metavar="N",
        help="training budget in decisions (default: 1000000; required for trained agents)",
    )
    parser.add_argument("--name", metavar="NAME", help="name of trained agents in the tables")
    parser.add_argument("--about", metavar="TEXT", help="one-line description of trained agents")
    add_workers(
        parser, "processes that train and measure runs in parallel (default: number of cores)"
    )
    add_out(parser, "runs/benchmark-DATE-TIME")
    for option, files in (
        ("--add", "result files to add to those of this package"),
        ("--page", "Markdown pages to write the tables into"),
    ):
        parser.add_argument(option, type=Path, nargs="+", default=[], metavar="FILE", help=files)
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE.png",
        help="write a picture of the learning curves of this budget",
    )


def _benchmark(args: argparse.Namespace) -> None:
    from rich.console import Console

    from busenv.common.console import print_path
    from busenv.evaluation.benchmark.benchmark_report import (
        challenge_tables,
        draw_results,
        put_tables,
        tables,
    )
    from busenv.evaluation.benchmark.results import add_results, all_results

    if not args.learners and (args.name or args.about or args.out):
        raise ValueError("--name, --about and --out need a learner or agents to measure")
    console = Console()
    if args.add:
        for make_tables in (tables, challenge_tables):
            make_tables(all_results(args.add))  # ValueError for results that cannot be compared
    for path in add_results(args.add):
        print_path(console, "Added", path)
    own = [_measure(args, console)] if args.learners else []
    results = all_results(own)
    for table in [*tables(results), *challenge_tables(results)]:
        table.show(console)
    for page in args.page:
        put_tables(page, results)
    if args.picture:
        setting = args.players, _budget(args)
        same_setting = [one for one in results if (one.players, one.decisions) == setting]
        draw_results(args.picture, same_setting)


def _measure(args: argparse.Namespace, console: Console) -> Path:
    """Train and measure a learner, or measure agents, and return the path of the result."""
    from busenv.agents.specs import GRAMMAR, is_spec
    from busenv.common.console import print_path
    from busenv.evaluation.benchmark.learners import LEARNERS
    from busenv.evaluation.benchmark.measure import RESULT, bench_agents, bench_learner
    from busenv.evaluation.benchmark.results import make_entry

    first, *others = args.learners
    folder = args.out or new_folder("benchmark")
    if first in LEARNERS:
        if others or args.name or args.about:
            raise ValueError(f"{first} is a learner: it takes no other agents, --name or --about")
        entry = make_entry(first, LEARNERS[first].about, args.players, _budget(args))
        bench_learner(entry, args.seeds, folder, console, args.workers)
    else:
        if ":" in first and not args.name:
            raise ValueError("trained agents need a name in the tables: add --name NAME")
        if ":" not in first and not is_spec(first):
            hint = did_you_mean(first, [*LEARNERS, *GRAMMAR])
            hint = hint or f"; allowed: {', '.join(LEARNERS)}, or specs such as net:PATH"
            raise ValueError(f"unknown learner {first!r}{hint}")
        if args.decisions is None:
            raise ValueError(
                "trained agents need their training budget: add --decisions N (0 for none)"
            )
        about = args.about or ", ".join(args.learners)
        entry = make_entry(args.name or first, about, args.players, args.decisions)
        bench_agents(entry, args.learners, folder, console, args.workers)
    print_path(console, "Result", folder / RESULT)
    return folder / RESULT


def _budget(args: argparse.Namespace) -> int:
    """Return the training budget in decisions of a learner."""
    return 1_000_000 if args.decisions is None else args.decisions


def _add_exploit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="spec, such as planner or net:city-4")
    _add_seeds(parser, "0-2")
    add_players(parser)
    add_count(parser, "--decisions", 1_000_000, "training budget of an exploiter in decisions")
    parser.add_argument(
        "--init-from",
        metavar="MODEL",
        default="",
        help="model of kind mlp to start from, such as the agent's own (default: random weights)",
    )
    add_count(parser, "--games", 400, "games of each exploiter after its training")
    add_out(parser, "runs/exploit-DATE-TIME")


def _exploit(args: argparse.Namespace) -> None:
    from rich.console import Console

    from busenv.evaluation.benchmark.exploit import exploit

    console = Console()
    table = exploit(
        args.agent, args.out or new_folder("exploit"), console,
        players=args.players, decisions=args.decisions, games=args.games, seeds=args.seeds,
        init_from=args.init_from,
    )  # fmt: skip
    table.show(console)


def _add_seeds(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--seeds",
        type=_seeds,
        metavar="N-M",
        default=_seeds(default),
        help=f"random seeds N, or N to M, one run each (default: {default})",
    )


def _seeds(text: str) -> range:
    """Parse seeds: 3, or 0-4."""
    match = re.fullmatch("([0-9]+)(?:-([0-9]+))?", text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not N or N-M")
    return range(seed(match[1]), seed(match[2] or match[1]) + 1)


COMMANDS = (
    Command(
        "benchmark",
        "train and compare learners",
        (
            "busenv benchmark ppo",
            "busenv benchmark                      (print the tables)",
            "busenv benchmark ppo --decisions 10000000 --out runs/ppo",
            "busenv benchmark net:my.safetensors --name mine --decisions 1000000",
            "busenv benchmark --add runs/ppo/result.json --page docs/results.md",
        ),
        _add_benchmark,
        _benchmark,
        "Train a learner under the protocol busenv-agents-v3, several runs with different seeds, "
        "and measure it against bots and frozen networks, or measure trained agents. Then print "
        "the tables of all results. A stopped benchmark keeps its finished runs.",
        EXTRAS,
    ),
    Command(
        "exploit",
        "measure exploitability",
        (
            "busenv exploit planner",
            "busenv exploit net:city-2 --init-from city-2 --out runs/exploit-city-2",
        ),
        _add_exploit,
        _exploit,
        "Train PPO agents for a fixed budget in games with frozen copies of an agent, and report "
        "the share of games that they win when copies hold all other seats. A share above par "
        "shows a weakness. A stopped run resumes in its folder.",
        EXTRAS,
    ),
)
