"""A game page in a notebook cell; the server runs in a thread of the notebook's process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from IPython.display import IFrame

from busenv import Board, Rules
from busenv.play.catalogue import Catalogue
from busenv.play.launch import (
    first_link,
    listen,
    local_address,
    locked_store,
    make_catalogue,
    make_new_game,
    running,
)
from busenv.play.server import Server

HOST = "127.0.0.1"


@dataclass(frozen=True)
class _RunningServer:
    """A server in another thread, and that thread's event loop."""

    loop: asyncio.AbstractEventLoop
    server: Server
    origin: str


_servers: dict[Path, _RunningServer] = {}  # by folder


def show_page(
    seats: Sequence[str],
    rules: str | Path | Rules,
    board: str | Path | Board,
    first_player: int | None,
    seed: int | None,
    folder: str | Path,
    height: int,
) -> IFrame:
    """A frame with a game of these seats, or with the start page; see `busenv.play.play`."""
    catalogue = make_catalogue(seats, rules, board)
    new = make_new_game(seats, first_player, seed)
    path = Path(folder).resolve()
    if path not in _servers:
        started: Future[_RunningServer] = Future()
        threading.Thread(target=_run, args=(path, catalogue, started), daemon=True).start()
        _servers[path] = started.result()
    running_server = _servers[path]
    server = running_server.server
    server.catalogue.update(catalogue)
    link = asyncio.run_coroutine_threadsafe(first_link(server, new), running_server.loop).result()
    return IFrame(f"{running_server.origin}{link}", "100%", height)


def _run(folder: Path, catalogue: Catalogue, started: Future[_RunningServer]) -> None:
    """Serve until the process ends; `started` receives the server or the exception."""
    try:
        asyncio.run(_serve(folder, catalogue, started))
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


async def _serve(folder: Path, catalogue: Catalogue, started: Future[_RunningServer]) -> None:
    with locked_store(folder) as store, listen(HOST, 0) as listening:
        server = Server(store, catalogue, [])
        async with running(server, HOST, listening) as ended:
            origin = local_address(HOST, listening.getsockname()[1])
            started.set_result(_RunningServer(asyncio.get_running_loop(), server, origin))
            await ended
