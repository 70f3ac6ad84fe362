"""A game page in a notebook cell; the server runs in a thread of the notebook's process."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path

from IPython.display import IFrame

from busenv import Board, Rules
from busenv.common.runs import lock_folder
from busenv.play.catalogue import Catalogue
from busenv.play.game_store import GameStore
from busenv.play.launch import (
    first_link,
    listen,
    local_address,
    make_catalogue,
    make_new_game,
    running,
)
from busenv.play.server import Server

HOST = "127.0.0.1"


# In other threads, by folder: the server, its address, and its event loop.
_servers: dict[Path, tuple[Server, str, asyncio.AbstractEventLoop]] = {}


def play(
    *seats: str,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
    first_player: int | None = None,
    seed: int | None = None,
    folder: str | Path = "runs/play",
    height: int = 900,
) -> IFrame:
    """Play in a notebook cell: shows the page of `busenv play`, served by this machine, in a frame.

    seats: 3 to 5 of "me", "friend" (joins through a link) and agent specs, as in
        `play("me", "uct:1000", "greedy")`; without seats the page offers a choice.
    folder: where games are saved and resumed from.
    height: height of the frame, in pixels.

    The other arguments and errors are those of `busenv.Game`. Requires the extras `play` and
    `notebooks`; raises ModuleNotFoundError with the install command if one is missing.
    """
    catalogue = make_catalogue(seats, rules, board)
    new = make_new_game(seats, first_player, seed)
    path = Path(folder).resolve()
    if path not in _servers:
        started: Future[None] = Future()
        threading.Thread(target=_run, args=(path, catalogue, started), daemon=True).start()
        started.result()
    server, origin, loop = _servers[path]
    known = server.catalogue  # that games use
    catalogue.trusted |= known.trusted
    catalogue.boards = catalogue.boards | known.boards | catalogue.boards
    vars(known).update(vars(catalogue))
    link = asyncio.run_coroutine_threadsafe(first_link(server, new), loop).result()
    return IFrame(f"{origin}{link}", "100%", height)


def _run(folder: Path, catalogue: Catalogue, started: Future[None]) -> None:
    """Serve until the process ends; `started` receives an exception before that."""
    try:
        asyncio.run(_serve(folder, catalogue, started))
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


async def _serve(folder: Path, catalogue: Catalogue, started: Future[None]) -> None:
    with lock_folder(folder, mode=0o700), listen(HOST, 0) as listening:
        server = Server(GameStore(folder), catalogue, [])
        async with running(server, HOST, listening) as ended:
            origin = local_address(HOST, listening.getsockname()[1])
            _servers[folder] = server, origin, asyncio.get_running_loop()
            started.set_result(None)
            await ended
