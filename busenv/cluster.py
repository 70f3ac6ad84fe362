"""Calls of functions on Ray's cluster: many machines, or the cores of this one.

What is called must depend on its arguments alone: then it does not matter where it runs, and what a
lost node had in hand is simply called again. Nobody but those who ask for a cluster needs Ray, or
imports it.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import busenv
from busenv.error_text import truncate

Value = TypeVar("Value")

PACKAGES = ("busenv", "busenv.agents", "busenv.train", "busenv.experiments")
RETRIES = 20  # of a call whose node or process is lost
KEPT = 8  # shared values that a process keeps
PATIENCE = 5.0  # seconds that the head of a cluster has to answer
LONGEST = 300  # characters of what Ray says
LOCAL = {  # settings of Ray for a cluster of this machine's own, where the environment has none
    "RAY_USAGE_STATS_ENABLED": "0",
    # By Ray's own 15, calls wait for whatever else the machine does, which plain workers do not.
    "RAY_worker_niceness": "0",
}

_kept: dict[str, Any] = {}  # shared values of this process, by key


class ClusterError(ValueError):
    """A cluster that cannot be used, or was lost; the message says why."""


@contextmanager
def connected(address: str, cores: int | None = None) -> Iterator[None]:
    """For a block: Ray's cluster, in which calls run.

    address: "auto" for the cluster that this machine is a node of; "local" for one of this
    machine's own, with so many `cores` (all), which ends with the block; HOST:PORT of a head; or ""
    for none. Where the caller is connected already, that cluster is used and stays.

    ClusterError when there is no such cluster; ModuleNotFoundError when Ray is not installed.
    """
    if not address:
        yield
        return
    import ray  # heavy, and of an extra

    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        for name, value in LOCAL.items():
            os.environ.setdefault(name, value)
        quiet |= {"num_cpus": cores, "include_dashboard": False}
    else:
        _check_head(address)
    try:
        ray.init(address, **quiet)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"no cluster at {address!r}: {_first_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def cores() -> int:
    """How many calls the cluster runs at once now; nodes may come and go."""
    import ray

    return int(ray.cluster_resources().get("CPU", 0))


class Shared(Generic[Value]):
    """A value put into the cluster once: it travels to a node once, and a process that asks for it
    keeps it while it is among the last ones asked for."""

    def __init__(self, value: Value) -> None:
        import ray

        with _sentences():
            self._ref = ray.put(value)
        self.key: str = self._ref.hex()

    def get(self) -> Value:
        """The value; its arrays cannot be written to."""
        import ray

        if self.key not in _kept:
            _kept[self.key] = ray.get(self._ref)
        value = _kept.pop(self.key)
        _kept[self.key] = value  # the last one asked for
        for key in [*_kept][:-KEPT]:
            del _kept[key]
        return value


def call(function: Callable[..., Value], *arguments: Any) -> Any:
    """Have a function of a module called on one core of the cluster; a reference to its result."""
    return _remote().options(name=function.__name__).remote(_code(), function, *arguments)


def result(reference: Any) -> Any:
    """What came of a call, as soon as it is there. Raises what it raised, and ClusterError when it
    was lost for good."""
    import ray

    with _sentences():
        return ray.get(reference)


def ready(references: Iterable[Any], seconds: float) -> tuple[list[Any], list[Any]]:
    """Those calls that have ended and those that have not, as soon as one has or time is up."""
    import ray

    waiting = [*references]
    ray.wait(waiting, num_returns=1, timeout=seconds)
    done, running = ray.wait(waiting, num_returns=len(waiting), timeout=0)
    return done, running


@cache
def _remote() -> Any:
    import ray

    return ray.remote(num_cpus=1, max_retries=RETRIES)(_run)


def _run(code: str, function: Callable[..., Value], *arguments: Any) -> Value:
    """What a node does: a call, if it is of the same code."""
    if code != _code():
        raise ClusterError(
            f"node {socket.gethostname()} has another busenv ({_code()}) than the machine that "
            f"calls it ({code}); install the same on every node"
        )
    return function(*arguments)


@cache
def _code() -> str:
    """The version of this package, and a part of the SHA-256 of its sources and data."""
    files = {}
    for name in PACKAGES:
        for folder in map(Path, importlib.import_module(name).__path__):
            for path in folder.rglob("*"):
                if path.suffix in (".py", ".json"):
                    files[f"{name.replace('.', '/')}/{path.relative_to(folder).as_posix()}"] = path
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return f"{busenv.__version__}, {digest.hexdigest()[:8]}"


def _check_head(address: str) -> None:
    """ClusterError where nobody listens: Ray itself would try for minutes, then end the process."""
    from ray._private.services import canonicalize_bootstrap_address

    try:
        head = canonicalize_bootstrap_address(address) if address == "auto" else address
    except ConnectionError:
        head = None
    if head is None:
        raise ClusterError("no cluster runs on this machine; 'ray start' makes it a node of one")
    host, _, port = head.rpartition(":")
    if not (host and port.isdecimal()) or "/" in host:
        raise ClusterError(f"no cluster {address!r}; allowed: auto, local, or HOST:PORT of a head")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"no cluster at {head}: {_first_line(error)}; allowed: auto, local, or HOST:PORT of a "
            "head, as 'ray start --head' tells it"
        ) from error


@contextmanager
def _sentences() -> Iterator[None]:
    """What Ray raises, as what a call raised, or in a sentence."""
    from ray import exceptions

    try:
        yield
    except exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, (ImportError, exceptions.RaySystemError)):  # of a call, or before it
            raise ClusterError(
                f"a node cannot do what it is called for: {_first_line(cause)}; install the same "
                "busenv, with the same extras, on every node"
            ) from error
        raise cause if isinstance(cause, (ValueError, OSError)) else error from None
    except exceptions.RayError as error:
        raise ClusterError(f"the cluster gave up: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return truncate(str(error).strip().partition("\n")[0], LONGEST)
