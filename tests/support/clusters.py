"""Ray clusters of several small nodes on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from busenv.cluster import LOCAL_ENVIRONMENT

NODE = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
ENVIRONMENT = {
    **LOCAL_ENVIRONMENT,  # gives the nodes a share of a core next to other tests
    "RAY_TMPDIR": "/tmp",  # the length of a socket's name is limited
    "RAY_health_check_period_ms": "500",  # a lost node is detected soon, and a slow one is not lost
    "RAY_health_check_failure_threshold": "8",
}
TRIES = 3  # Ray allows a node 30 seconds to start, which is too little when all cores are busy


def started(start: Callable[[], Any]) -> Any:
    """The node or cluster that `start` returns; repeated when it times out."""
    for left in reversed(range(TRIES)):
        try:
            return start()
        except Exception as error:  # Ray has no class for a timeout
            if not left or "timed out during startup" not in str(error):
                raise


def end(cluster: Any) -> None:
    """End a cluster and remove its address, to which other tests would connect."""
    import ray

    ray.shutdown()
    cluster.shutdown()


@contextmanager
def with_nodes(cluster: Any, count: int, **more: Any) -> Iterator[list[Any]]:
    """Add nodes of one core each for a block."""
    one = {**NODE, "num_cpus": 1, **more}
    added = [started(lambda: cluster.add_node(**one)) for _ in range(count)]
    try:
        yield added
    finally:
        for node in added:
            if node in cluster.worker_nodes:
                cluster.remove_node(node, allow_graceful=False)
