"""Start the server on this machine and open its page."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import ValidationError
from uvicorn.protocols.http.h11_impl import H11Protocol

from busenv import Board, Rules
from busenv.agents import make_agent
from busenv.common.runs import lock_folder
from busenv.error_text import printable
from busenv.game.board_specs import as_board
from busenv.game.rules import as_rules
from busenv.play.app import make_app
from busenv.play.catalogue import AGENTS, Catalogue
from busenv.play.game_store import GameStore
from busenv.play.messages import MAX_REQUEST, NewGame, RequestError, Seat
from busenv.play.request_guard import is_loopback
from busenv.play.server import Server
from busenv.schema import first_error

MAX_CONNECTIONS = 500  # well below 1,024, a usual limit of a process's open files
PEOPLE = ("me", "friend")
ALL_INTERFACES = ("0.0.0.0", "::")


class _Protocol(H11Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()


class _UvicornServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave SIGINT to the caller (`busenv.cli.main`)."""
        yield


def serve(
    seats: Sequence[str] = (),
    *,
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

    seats: "me", "friend" or an agent's spec, 3 to 5 times, to start a game at once; by default the
        start page opens.
    rules, board, first_player, seed: of that game; rules and board are also the start page's
        defaults.
    folder: of the saved games, which are restored.
    port: 0 for any free port.
    browser: whether to open a web browser.

    ValueError for too few seats, a first player or seed without seats, an invalid agent, an empty
    host, an invalid port, or a folder that another server uses; OSError if the server cannot listen
    at host and port.
    """
    if not host:  # would be all interfaces
        raise ValueError("host is empty; allowed: an address of this machine")
    if not 0 <= port < 2**16:
        raise ValueError(f"port is {port}; allowed: 0 to {2**16 - 1}")
    catalogue = make_catalogue(seats, rules, board)
    new = make_new_game(seats, first_player, seed)
    with lock_folder(Path(folder), mode=0o700), listen(host, port) as listening:
        asyncio.run(_serve(catalogue, new, GameStore(folder), host, listening, browser))


def make_catalogue(
    seats: Sequence[str], rules: str | Path | Rules, board: str | Path | Board
) -> Catalogue:
    """A catalogue with these rules and this board as defaults, which allows the seats' agents.

    ValueError if an agent cannot be built.
    """
    rules_value, board_value = as_rules(rules), as_board(board)
    name = rules_value.name
    if name == "custom" and not isinstance(rules, Rules):
        name = Path(rules).stem
    for spec in {*seats}.difference(PEOPLE, AGENTS):
        try:
            make_agent(spec).close()
        except ValueError as error:
            people = ", ".join(PEOPLE)
            raise ValueError(f"seat {spec!r} is not {people} or an agent: {error}") from None
    catalogue = Catalogue(trusted={*seats}.difference(PEOPLE))
    catalogue.seats = tuple(seats) or catalogue.seats
    rules_differ = catalogue.rules.get(name, rules_value) != rules_value
    catalogue.rules = _with_first(name, rules_value, catalogue.rules, rules_differ)
    bundled = catalogue.boards.get(board_value.name, board_value)
    board_differs = bundled.fingerprint != board_value.fingerprint
    catalogue.boards = _with_first(board_value.name, board_value, catalogue.boards, board_differs)
    return catalogue


def _with_first(name: str, value: Any, entries: dict[str, Any], is_taken: bool) -> dict[str, Any]:
    """Return entries with a value first, under another name if an entry has its name."""
    return {f"{name} (custom)" if is_taken else name: value} | entries


def make_new_game(
    seats: Sequence[str], first_player: int | None, seed: int | None
) -> NewGame | None:
    """The settings of a game with seats as on the command line; None without seats.

    ValueError if they are invalid.
    """
    if not seats:
        if first_player is None and seed is None:
            return None
        raise ValueError("first player and seed need 3 to 5 seats, such as me, greedy and greedy")
    if not 3 <= len(seats) <= 5:
        raise ValueError(f"{len(seats)} seats; allowed: 3, 4 or 5, such as me, greedy and greedy")
    try:
        return NewGame(
            seats=[
                Seat(kind=seat)  # type: ignore[arg-type]
                if seat in PEOPLE
                else Seat(kind="agent", spec=seat)
                for seat in seats
            ],
            first_player=first_player,
            seed=seed,
        )
    except ValidationError as error:
        raise ValueError(first_error(error)) from None


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. OSError if host and port cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given explicitly.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # on Windows two servers could then share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise OSError(
            f"cannot listen at {host}, port {port}: {error.strerror}; "
            "allowed: an address of this machine (--host), and a free port (--port), 0 for any"
        ) from error
    return listening


async def _serve(
    catalogue: Catalogue,
    new: NewGame | None,
    store: GameStore,
    host: str,
    listening: socket.socket,
    browser: bool,
) -> None:
    port = listening.getsockname()[1]
    server = Server(store, catalogue, addresses(host, port))
    async with running(server, host, listening) as ended:
        address = local_address(host, port) + await first_link(server, new)
        for error in server.errors:
            print(f"Not restored: {printable(error)}", file=sys.stderr)
        print(f"Play at {address}", flush=True)
        for other in server.addresses:
            print(f"Other machines in your network reach this server at {other}. "
                  "The game page shows each friend's link.")  # fmt: skip
        print(f"Games are saved in {store.folder}. Press Ctrl-C to stop the server.", flush=True)
        if browser:
            asyncio.get_running_loop().run_in_executor(None, webbrowser.open, address)
        await server.prepare()
        await asyncio.shield(ended)  # Ctrl-C cancels this task; the server then ends in order


async def first_link(server: Server, new: NewGame | None) -> str:
    """The link of a new game, or of the start page. ValueError if the game is invalid."""
    if new is None:
        return f"/start/{server.key}"
    try:
        return server.create_game(new)
    except RequestError as error:
        raise ValueError(error.message) from None


@contextlib.asynccontextmanager
async def running(
    server: Server, host: str, listening: socket.socket
) -> AsyncIterator[asyncio.Task[None]]:
    """Run a server within the block. Yields a task that ends with the server."""
    uvicorn_server = make_uvicorn_server(server, host)
    ended = asyncio.create_task(uvicorn_server.serve(sockets=[listening]))
    while not (uvicorn_server.started or ended.done()):
        await asyncio.sleep(0.01)
    try:
        yield ended
    finally:
        uvicorn_server.should_exit = True
        await ended


def make_uvicorn_server(server: Server, host: str) -> uvicorn.Server:
    config = uvicorn.Config(
        make_app(server, host),
        log_level="error",  # strangers can cause warnings
        access_log=False,  # paths contain secrets
        server_header=False,
        ws_max_size=4 * MAX_REQUEST,  # bytes; a character has up to 4
        ws_per_message_deflate=False,  # compression costs more time than it saves
        http=_Protocol,
        backlog=100,  # connections accepted at once
        timeout_graceful_shutdown=1,
    )
    return _UvicornServer(config)


def local_address(host: str, port: int) -> str:
    """The server's address on this machine."""
    name = "127.0.0.1" if host in ALL_INTERFACES else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def addresses(host: str, port: int) -> list[str]:
    """The server's addresses for other machines; none for a loopback address."""
    if is_loopback(host):
        return []
    if host not in ALL_INTERFACES:
        return [local_address(host, port)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # selects the network interface, sends nothing
        except OSError:
            return []
        return [local_address(probe.getsockname()[0], port)]
