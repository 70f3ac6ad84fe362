"""Ray's cluster of several nodes on this machine, as small as they can be."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from busenv.cluster import LOCAL_ENVIRONMENT
from tests.support.pages import ROOT

NODE = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
ENVIRONMENT = {
    **LOCAL_ENVIRONMENT,  # gives the nodes a share of a core next to other tests
    "RAY_TMPDIR": "/tmp",  # sockets want short names
    "RAY_health_check_period_ms": "500",  # a lost node is missed soon, a slow one is not lost
    "RAY_health_check_failure_threshold": "8",
}


TRIES = 3  # at starting a node, which Ray gives 30 seconds: little where all cores are taken


def started(start: Callable[[], Any]) -> Any:
    """What comes of starting a node, or all of a cluster."""
    for left in reversed(range(TRIES)):
        try:
            return start()
        except Exception as error:  # Ray has no kind of its own for it
            if not left or "timed out during startup" not in str(error):
                raise


def end(cluster: Any) -> None:
    """End a cluster and forget its address, which others would find."""
    import ray

    ray.shutdown()
    cluster.shutdown()


@contextmanager
def with_nodes(cluster: Any, count: int, **more: Any) -> Iterator[list[Any]]:
    """For a block: so many nodes of one core besides the head, which has none."""
    one = {**NODE, "num_cpus": 1, **more}
    found = [started(lambda: cluster.add_node(**one)) for _ in range(count)]
    try:
        yield found
    finally:
        for node in found:
            if node in cluster.worker_nodes:
                cluster.remove_node(node, allow_graceful=False)


def other_version(folder: Path) -> Path:
    """A folder to import busenv from that has another version of it."""
    package = folder / "busenv"
    shutil.copytree(ROOT / "busenv", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("agents", "train", "experiments"):
        (package / name).symlink_to(ROOT / name)
    text = (package / "__init__.py").read_text(encoding="utf-8")
    assert '__version__ = "' in text
    (package / "__init__.py").write_text(text + '\n__version__ = "0.0.9"\n', encoding="utf-8")
    return folder
