"""The page of a game in a notebook's cell: a server in a thread of the notebook's process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from socket import socket

from IPython.display import IFrame

from busenv import Board, Rules
from busenv.experiments.play.catalogue import Offers
from busenv.experiments.play.game_store import Store
from busenv.experiments.play.launch import (
    listen,
    locked_folder,
    make_offers,
    new_game,
    own_address,
    running,
)
from busenv.experiments.play.messages import Refusal
from busenv.experiments.play.server import Hall

HOST = "127.0.0.1"


@dataclass(frozen=True)
class _Served:
    """A server that runs in another thread, in a loop of its own."""

    loop: asyncio.AbstractEventLoop
    hall: Hall
    origin: str


_servers: dict[Path, _Served] = {}  # by folder, for as long as the process lasts


def play(
    seats: Sequence[str],
    rules: str | Path | Rules,
    board: str | Path | Board,
    first_player: int | None,
    seed: int | None,
    folder: str | Path,
    height: int,
) -> IFrame:
    """A frame with a game of these seats, or with the start page; see `busenv.play`."""
    offers = make_offers(seats, rules, board)
    new = new_game(seats, first_player, seed) if seats else None
    path = Path(folder).resolve()
    if path not in _servers:
        started: Future[_Served] = Future()
        threading.Thread(target=_run, args=(path, offers, started), daemon=True).start()
        _servers[path] = started.result()
    served = _servers[path]
    served.hall.offers.add(offers)
    link = f"/start/{served.hall.key}"
    if new is not None:
        begun = asyncio.run_coroutine_threadsafe(served.hall.begin(new), served.loop)
        try:
            link = begun.result()
        except Refusal as refusal:
            raise ValueError(refusal.words) from None
    return IFrame(f"{served.origin}{link}", "100%", height)


def _run(folder: Path, offers: Offers, started: Future[_Served]) -> None:
    """Serve until the process ends; what keeps it from beginning goes to who waits for it."""
    try:
        with locked_folder(folder), listen(HOST, 0) as listening:
            asyncio.run(_serve(folder, offers, listening, started))
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


async def _serve(folder: Path, offers: Offers, listening: socket, started: Future[_Served]) -> None:
    hall = Hall(Store(folder), offers, [])
    async with running(hall, HOST, listening) as ended:
        origin = own_address(HOST, listening.getsockname()[1])
        started.set_result(_Served(asyncio.get_running_loop(), hall, origin))
        await ended
