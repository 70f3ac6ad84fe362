"""Function calls on a Ray cluster: many machines, or the cores of this one.

Results of a call must depend on its arguments alone: Ray repeats the calls of a lost node on
another one. Ray is an optional dependency, imported when a cluster is first used.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import busenv
from busenv.error_text import truncate

Value = TypeVar("Value")

MAX_RETRIES = 20  # of a call whose node or process is lost
CONNECT_TIMEOUT = 5.0  # seconds
LOCAL_ENVIRONMENT = {  # environment variables of a local cluster, where they are not set
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's default of 15 yields to all other processes, unlike this package's plain workers.
    "RAY_worker_niceness": "0",
    # Otherwise Ray writes ~/.ray/auth_token, which a later `ray start --head` then requires.
    "RAY_AUTH_TOKEN": secrets.token_hex(),
}


class ClusterError(ValueError):
    """A cluster cannot be used, or was lost."""


@contextmanager
def connected(address: str, num_cpus: int | None = None) -> Iterator[None]:
    """Connect to a Ray cluster for a `with` block.

    address: "auto" for the cluster that this machine is a node of; "local" for a cluster of this
        machine's own, which ends with the block; HOST:PORT of a head node; "" for none. An existing
        connection of this process is used and stays open. After "local", the process cannot connect
        to a cluster that requires a token.
    num_cpus: number of cores of a local cluster; None uses all.

    Raises ClusterError if there is no such cluster, ModuleNotFoundError if Ray is not installed.
    """
    if not address:
        yield
        return
    import ray

    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        for name, value in LOCAL_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        options |= {"num_cpus": num_cpus, "include_dashboard": False}
    else:
        if address == "auto":
            address = os.environ.get("RAY_ADDRESS", "auto")
        if address != "auto":
            _check_head(address)
    try:
        ray.init(address, **options)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        message = f"no cluster at {address!r}: {_first_line(error)}"
        if address != "local":
            message += "; if it requires a token, set RAY_AUTH_MODE=token and copy the head node's "
            message += "~/.ray/auth_token"
        raise ClusterError(message) from error
    try:
        yield
    finally:
        ray.shutdown()


def num_cpus() -> int:
    """Return the current number of cores of the cluster, each of which runs one call."""
    import ray

    return int(ray.cluster_resources().get("CPU", 0))


class Shared(Generic[Value]):
    """A value that is stored in the cluster once and sent to each node once.

    key: a string that identifies the value.
    """

    def __init__(self, value: Value) -> None:
        import ray

        with _ray_errors():
            self._reference = ray.put(value)
        self.key: str = self._reference.hex()

    def get(self) -> Value:
        """Return the value, from the process's cache of the last ones; its arrays are read-only."""
        return _fetch(self._reference)


@lru_cache(maxsize=8)
def _fetch(reference: Any) -> Any:
    import ray

    return ray.get(reference)


def call(function: Callable[..., Value], *arguments: Any) -> Any:
    """Call a module-level function on one core; returns a reference to its result."""
    return _remote().options(name=function.__name__).remote(_code_version(), function, *arguments)


def result(reference: Any) -> Any:
    """Wait for a call and return its result.

    Raises the call's ValueError or OSError, and ClusterError for a call that is lost or cannot run.
    """
    import ray

    with _ray_errors():
        return ray.get(reference)


def ready(references: Iterable[Any], seconds: float) -> tuple[list[Any], list[Any]]:
    """Wait until one call has ended or time is up; returns the ended and the running calls."""
    import ray

    references = [*references]
    ray.wait(references, num_returns=1, timeout=seconds)
    ended, running = ray.wait(references, num_returns=len(references), timeout=0)
    return ended, running


@cache
def _remote() -> Any:
    import ray

    return ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_run)


def _run(version: str, function: Callable[..., Value], *arguments: Any) -> Value:
    """Run a call on a node, which must have the caller's code."""
    if version != _code_version():
        raise ClusterError(
            f"node {socket.gethostname()} has another busenv ({_code_version()}) than the caller "
            f"({version}); install the same version on every node"
        )
    return function(*arguments)


@cache
def _code_version() -> str:
    """Return the version of busenv and a part of the SHA-256 of its sources and JSON files."""
    folder = Path(busenv.__path__[0])
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".json"):
            name = path.relative_to(folder).as_posix()
            digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return f"{busenv.__version__}, {digest.hexdigest()[:8]}"


def _check_head(address: str) -> None:
    """Raise ClusterError if nothing listens: Ray would retry for minutes and end the process."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()
    except (OSError, OverflowError, ValueError) as error:
        raise ClusterError(
            f"no cluster at {address!r}: {_first_line(error)}; allowed: auto, local, or HOST:PORT "
            "of a head node, as 'ray start --head' prints it"
        ) from error


@contextmanager
def _ray_errors() -> Iterator[None]:
    """Raise the exception of a call itself, and ClusterError in place of Ray's exceptions."""
    from ray import exceptions

    try:
        yield
    except exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, (ImportError, exceptions.RaySystemError)):
            raise ClusterError(
                f"a node cannot run a call: {_first_line(cause)}; install the same busenv, with "
                "the same extras, on every node"
            ) from error
        raise cause if isinstance(cause, (ValueError, OSError)) else error from None
    except exceptions.RayError as error:
        raise ClusterError(f"the cluster failed: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return truncate(str(error).strip().partition("\n")[0])
