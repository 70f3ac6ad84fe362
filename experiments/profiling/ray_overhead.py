"""What Ray costs: the same work by plain workers and on a cluster of this machine, in turns.

`python -m busenv.experiments.profiling.ray_overhead WHAT` prints the speeds of each pair and the median of
their ratios. Speeds are steady ones: until processes are started and warm, nothing is counted.

- local: ratings on a cluster of one node, as `--ray local` begins it, beside as many workers;
- nodes: ratings on a cluster with a node of one core for each of the workers beside it;
- ppo, search: training with its games on such a local cluster, beside training without;
- memory: what the processes of a local cluster take while they play --games, by random and greedy
  agents: for a rating, for PPO, and for self-play by the smallest search.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from busenv.cluster import connected
from busenv.experiments.cli.train_commands import PART
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.ratings.distributed_games import play_on_cluster
from busenv.experiments.ratings.rating_store import append_games
from busenv.experiments.ratings.schedule import Schedule
from busenv.experiments.ratings.tournament import play_games

WARM = 3.0  # seconds of play, from the first games that end, before any is counted
NODE: dict[str, Any] = {
    "include_dashboard": False,
    "object_store_memory": 80 * 2**20,
}  # as small as can be
SAMPLES = 20  # of memory

TRAINED = ("ppo", "search")
COMMON: dict[str, Any] = {"seconds": 1e6, "device": "cpu"}
TINY: dict[str, Any] = {**COMMON, "width": 8, "games": 512, "snapshot_every": 2, "threads": 1}


def rating_speed(agents: tuple[str, ...], workers: int, seconds: float, place: str) -> float:
    """Games a second, written down as they come; place: "" for plain workers, local, or nodes."""
    schedule = Schedule(agents, games=1_000_000)
    with tempfile.TemporaryFile() as file, _cluster(place, workers):
        numbers = [*range(schedule.total)]
        play = (
            play_on_cluster(schedule, numbers) if place else play_games(schedule, numbers, workers)
        )
        with closing(play):
            _until(play, WARM, lambda games: append_games(file, games))
            began = time.perf_counter()
            count = _until(play, seconds, lambda games: append_games(file, games))
            return count / (time.perf_counter() - began)


def _until(
    play: Iterator[list[dict[str, Any]]], seconds: float, keep: Callable[[Any], None]
) -> int:
    """Take games until so many seconds after the first of them; how many there were."""
    count, end = 0, float("inf")
    for games in play:
        keep(games)
        count += len(games)
        if games:
            end = min(end, time.perf_counter() + seconds)
        if time.perf_counter() >= end:
            break
    return count


def training_speed(method: str, workers: int, seconds: float, place: str) -> float:
    """Decisions learned from a second, in so many threads or on so many cores."""
    from busenv.train.config import PRESETS  # imports torch, for which `main` sets something before
    from busenv.train.expert_iteration.expert_config import ExpertConfig

    changes = {**COMMON, "threads": workers}
    config: Any
    if method == "ppo":
        shares = PRESETS["quick"].games // PART if place else 1
        config = PRESETS["quick"].changed({**changes, "warm_start": "", "num_workers": shares})
    else:
        config = ExpertConfig(games=16, width=128, **changes)
    with tempfile.TemporaryDirectory() as folder, _cluster(place, workers):
        run = _run(config, folder, bool(place))
        run.step()  # warms up
        before, began = run.decisions, time.perf_counter()
        while time.perf_counter() - began < seconds:
            run.step()
        return (run.decisions - before) / (time.perf_counter() - began)


def _run(config: Any, folder: str, on_cluster: bool) -> Any:
    from busenv.train.expert_iteration.expert_run import ExpertRun
    from busenv.train.ppo_run import PPORun

    kind: Any = PPORun if config.method == "ppo" else ExpertRun
    return kind(config, Path(folder), on_cluster)


@contextmanager
def _cluster(place: str, cores: int) -> Iterator[None]:
    with _nodes_of_one_core(cores) if place == "nodes" else connected(place, cores):
        yield


@contextmanager
def _nodes_of_one_core(count: int) -> Iterator[None]:
    """For a block: this process is connected to a cluster of so many nodes, and a head without a
    core."""
    from ray import cluster_utils

    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    try:
        for _ in range(count):
            cluster.add_node(**NODE, num_cpus=1)
        with connected(cluster.address):
            yield
    finally:
        cluster.shutdown()


def show_pairs(name: str, speed: Callable[[str], float], place: str, pairs: int) -> None:
    """Measure both sides in turns, now one first and now the other, and print how they compare."""
    ratios = []
    for number in range(pairs):
        found = {side: speed(side) for side in (("", place) if number % 2 == 0 else (place, ""))}
        ratios.append(found[place] / found[""])
        print(
            f"{name}: plain {found['']:,.1f} a second, cluster {found[place]:,.1f}, "
            f"{ratios[-1]:.3f} times",
            flush=True,
        )
    print(f"{name}: {median(ratios):.3f} times, the median of {pairs}")


def show_memory(name: str, games: int, workers: int) -> None:
    """Have games played, and print what each process had in the beginning, at most and at last."""
    found: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, connected("local", workers):
        played, samples = 0, 0
        for count in _games(name, games, folder):
            played += count
            if played * SAMPLES >= (samples + 1) * games:
                samples += 1
                for worker, size in _memory().items():
                    found.setdefault(worker, []).append(size)
    for worker, sizes in found.items():
        print(
            f"memory, {name}: process {worker}, {played:,} games by all: {sizes[0]:.1f} MB at "
            f"first, {max(sizes):.1f} at most, {sizes[-1]:.1f} at last, {len(sizes)} samples",
            flush=True,
        )


def _games(name: str, games: int, folder: str) -> Iterator[int]:
    """Play so many games on the cluster; how many there were each time that some came."""
    if name == "rating":
        schedule = Schedule(("random", "greedy"), games=games)
        yield from (len(some) for some in play_on_cluster(schedule, [*range(schedule.total)]))
        return
    from busenv.train.config import PPOConfig
    from busenv.train.expert_iteration.expert_config import ExpertConfig

    config: Any
    if name == "ppo":
        bots = ("random", "greedy")
        config = PPOConfig(**TINY, num_workers=8, warm_start="", bots=bots, opponent_share=1.0, epochs=1)
    else:
        config = ExpertConfig(
            **TINY, num_simulations=1, fast_simulations=1, full_search_share=0.01, bot_share=0.0
        )
    run = _run(config, folder, True)
    for _ in range(0, games, run.config.games):
        run.step()
        yield run.config.games


def _memory() -> dict[int, float]:
    """Megabytes in memory (RSS) that the processes that play have to themselves, by number.

    What they share, the cluster's store of objects among it, is not theirs.
    """
    import psutil  # comes along with the extra `notebooks`

    found = {}
    for process in psutil.Process().children(recursive=True):
        if " ".join(process.cmdline()).startswith(("ray::IDLE", "ray::play")):
            memory = process.memory_info()
            found[process.pid] = (memory.rss - memory.shared) / 2**20
    return found


def main() -> None:
    """Measure, and print a line for each pair or process."""
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.ray_overhead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="+", choices=("local", "nodes", "ppo", "search", "memory"))
    parser.add_argument("--workers", type=int, default=2, help="and cores of a cluster (2)")
    parser.add_argument("--pairs", type=int, default=3, help="of measurements (3)")
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement (15)")
    parser.add_argument(
        "--agents", nargs="+", default=["greedy", "planner"], help="that are rated (greedy planner)"
    )
    parser.add_argument("--games", type=int, default=100_000, help="for memory (100000)")
    parser.add_argument(
        "--of", nargs="+", choices=("rating", *TRAINED), default=["rating", *TRAINED],
        help="whose memory (all)",
    )  # fmt: skip
    chosen = parser.parse_args()
    os.environ.setdefault("RAY_TMPDIR", "/tmp")  # sockets want short names
    os.environ.setdefault("RAY_worker_niceness", "0")  # as plain workers have it
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as `busenv` has it
    for what in chosen.what:
        if what == "memory":
            for name in chosen.of:
                show_memory(name, chosen.games, chosen.workers)
        elif what in TRAINED:
            speed = partial(training_speed, what, chosen.workers, chosen.seconds)
            show_pairs(what, speed, "local", chosen.pairs)
        else:
            speed = partial(rating_speed, tuple(chosen.agents), chosen.workers, chosen.seconds)
            show_pairs(what, speed, what, chosen.pairs)


if __name__ == "__main__":
    run_command(main)
