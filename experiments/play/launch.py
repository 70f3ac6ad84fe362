"""Run the server on this machine, and open its page."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import uvicorn

from busenv import Board, Rules
from busenv.agents import make_agent
from busenv.error_text import printable
from busenv.experiments.common.runs import lock_folder
from busenv.experiments.play.app import make_app
from busenv.experiments.play.catalogue import SIMPLE, Offers
from busenv.experiments.play.game_store import Store
from busenv.experiments.play.messages import LONGEST_MESSAGE, Chair, NewGame, Refusal
from busenv.experiments.play.request_guard import is_loopback
from busenv.experiments.play.server import Hall
from busenv.game.board import as_board
from busenv.game.rules import as_rules

MOST_CONNECTIONS = 1000
PEOPLE = ("me", "friend")


class _Server(uvicorn.Server):
    """A server that leaves SIGINT to its caller (`keyboard_interrupt.run_command`)."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    seats: Sequence[str] = (),
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
    first_player: int | None = None,
    seed: int | None = None,
    folder: str | Path = "runs/play",
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
) -> None:
    """Serve games until Ctrl-C.

    seats: "me", "friend" or the spec of an agent each; a game of them is begun at once. Without,
    the page that is opened lets choose. rules, board, first_player, seed: of that game, and what
    the page offers first. folder: where games are kept, and gone on with. port: 0 for any.
    ValueError when seats are too few, an agent cannot be built, or another server has the folder;
    OSError when host and port cannot be listened at.
    """
    offers = make_offers(seats, rules, board)
    new = new_game(seats, first_player, seed) if seats else None
    with locked_folder(folder):
        listening = listen(host, port)
        with listening:
            asyncio.run(_serve(offers, new, Path(folder), host, listening, browser))


def make_offers(
    seats: Sequence[str], rules: str | Path | Rules, board: str | Path | Board
) -> Offers:
    """What pages may choose: the rules and the board that are given first, and the agents that the
    seats name."""
    offers, chosen, map_ = Offers(), as_rules(rules), as_board(board)
    name = chosen.name
    if name == "custom" and not isinstance(rules, Rules):
        name = Path(rules).stem
    offers.rules = {name: chosen, **offers.rules}
    offers.boards = {map_.name: map_, **offers.boards}
    for spec in {*seats}.difference(PEOPLE):
        if spec not in SIMPLE:
            make_agent(spec).close()  # or say what is wrong with it, before anything begins
        offers.trusted.add(spec)
    if seats:
        offers.seats = tuple(seats)
    return offers


def new_game(seats: Sequence[str], first_player: int | None, seed: int | None) -> NewGame:
    """A game of seats as the command line names them; ValueError when it cannot be."""
    if not 3 <= len(seats) <= 5:
        raise ValueError(f"{len(seats)} seats; allowed: 3, 4 or 5, such as --seat me --seat greedy")
    if first_player is not None and first_player >= len(seats):
        raise ValueError(
            f"first player is {first_player}; allowed: 0 to {len(seats) - 1}, one of the seats"
        )
    chairs = [
        Chair(kind="agent", spec=seat) if seat not in PEOPLE else Chair(kind=seat)  # type: ignore[arg-type]
        for seat in seats
    ]
    return NewGame(seats=chairs, first_player=first_player, seed=seed)


@contextlib.contextmanager
def locked_folder(folder: str | Path) -> Iterator[None]:
    """Hold a folder of games, made if need be, for this process; ValueError when another does."""
    Store(folder)
    with lock_folder(Path(folder)):
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; OSError says that it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends without waiting for more to send (TCP_NODELAY).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # where it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise OSError(
            f"cannot listen at {host}, port {port}: {error.strerror}; "
            "choose another by --port, 0 for any that is free"
        ) from error
    return listening


async def _serve(
    offers: Offers,
    new: NewGame | None,
    folder: Path,
    host: str,
    listening: socket.socket,
    browser: bool,
) -> None:
    port = listening.getsockname()[1]
    hall = Hall(Store(folder), offers, addresses(host, port))
    async with running(hall, host, listening) as ended:
        link = f"/start/{hall.key}"
        if new is not None:
            try:
                link = await hall.begin(new)
            except Refusal as refusal:
                raise ValueError(refusal.words) from None
        _welcome(hall, own_address(host, port) + link, folder)
        if browser:
            await asyncio.to_thread(webbrowser.open, own_address(host, port) + link)
        await ended


@contextlib.asynccontextmanager
async def running(
    hall: Hall, host: str, listening: socket.socket
) -> AsyncIterator[asyncio.Task[None]]:
    """A server of a hall, within the block; gives a task that ends when it does."""
    server = make_server(hall, host)
    ended = asyncio.create_task(server.serve(sockets=[listening]))
    while not (server.started or ended.done()):
        await asyncio.sleep(0.01)
    try:
        yield ended
    finally:
        server.should_exit = True
        await ended


def make_server(hall: Hall, host: str) -> uvicorn.Server:
    """The server of a hall, which is not yet running."""
    config = uvicorn.Config(
        make_app(hall, host),
        log_level="warning",
        access_log=False,  # addresses hold secrets
        server_header=False,
        ws_max_size=4 * LONGEST_MESSAGE,  # bytes of as many letters
        ws_per_message_deflate=False,  # messages are small: packing takes longer than it saves
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    return _Server(config)


def own_address(host: str, port: int) -> str:
    """Where this machine reaches the server."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def addresses(host: str, port: int) -> list[str]:
    """Where others in the network reach the server; none where only this machine does."""
    if is_loopback(host):
        return []
    if host not in ("0.0.0.0", "::"):
        return [own_address(host, port)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing, but tells by which way it would go
        except OSError:
            return []
        return [own_address(probe.getsockname()[0], port)]


def _welcome(hall: Hall, address: str, folder: Path) -> None:
    for fault in hall.faults:
        print(f"Left out: {printable(fault)}", file=sys.stderr)
    print(f"Play at {address}", flush=True)
    for other in hall.addresses:
        print(
            f"In your network this machine is {other}; a friend's link is on the page of the game"
        )
    print(f"Games are kept in {folder}. Ctrl-C ends the server; run it again to go on.", flush=True)
