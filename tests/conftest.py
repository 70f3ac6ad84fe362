"""Fixtures of several test modules."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from busenv.agents.external import program
from busenv.evaluation import dataset_export, tournament
from tests.support import clusters
from tests.support.browser_player import SWITCHES, Player
from tests.support.play_client import Served, serving
from tests.support.programs import READY, command


@pytest.hookimpl(trylast=True)  # after tests have been deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the modules so that two workers do not compile the same kernels at the same time.

    pytest-xdist gives each of two workers one half of the tests. The first half begins with
    test_agents, which compiles policies and searches. The second half therefore begins with the
    kernels of batches and ends with test_hostile_models, which needs policies and searches too.
    """
    batches = [item for item in items if item.path.stem in ("test_graph", "test_batch")]
    last = [item for item in items if item.path.stem == "test_hostile_models"]
    others = [item for item in items if item not in {*batches, *last}]
    middle = len(items) // 2
    items[:] = [*others[:middle], *batches, *others[middle:], *last]


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c() -> None:
    """Restore Ctrl-C where pytest runs in the background of a shell.

    Programs that tests start would inherit that it is ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; one for each module, since its driver keeps an event loop running."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((path for path in map(shutil.which, names) if path), None)
    if path is None:
        if os.environ.get("BUSENV_NEED_CHROMIUM"):
            pytest.fail("BUSENV_NEED_CHROMIUM is set, but there is no Chromium on the path")
        pytest.skip("no Chromium on the path; apt-get install chromium")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=SWITCHES)
        yield started
        started.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes a program and returns the spec of the agent that runs it."""

    def spec(code: str, start: str = READY, seconds: float = 20) -> str:
        path = tmp_path / "a program.py"
        path.write_text(start + code)
        return f"exec@{seconds}:{command(path)}"

    return spec


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The process ids of the programs that a test starts, in order."""
    start, started = program.Program.__init__, []

    def record_start(self: program.Program, name: str, arguments: list[str]) -> None:
        start(self, name, arguments)
        started.append(self._process.pid)

    monkeypatch.setattr(program.Program, "__init__", record_start)
    return started


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the bootstrap of ratings."""
    monkeypatch.setattr("busenv.common.intervals.RESAMPLES", 20)


@pytest.fixture
def threads_as_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Exports play in a thread, since starting a process takes two seconds."""
    monkeypatch.setattr(dataset_export, "worker_pool", lambda *_: ThreadPoolExecutor(1))
    yield
    tournament.close_agents()


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """A Ray cluster on this machine whose only node, the head, has no cores."""
    utils = pytest.importorskip("ray.cluster_utils")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clusters.ENVIRONMENT.items():
            patch.setenv(name, value)
        head = {**clusters.NODE, "num_cpus": 0}
        cluster = clusters.started(lambda: utils.Cluster(initialize_head=True, head_node_args=head))
        yield cluster
        clusters.end(cluster)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running game server."""
    with serving(tmp_path_factory.mktemp("games")) as server:
        yield server


@pytest.fixture
def player(browser: Browser) -> Iterator[Callable[..., Player]]:
    """A factory of players; afterwards checks that no page has reported an error."""
    contexts, errors = [], []

    def make(width: int = 1280, height: int = 800, **settings: Any) -> Player:
        size = {"width": width, "height": height}
        settings = {"reduced_motion": "reduce", **settings}
        contexts.append(browser.new_context(viewport=size, **settings))
        return Player(contexts[-1], errors)

    yield make
    for context in contexts:
        context.close()
    assert errors == []
