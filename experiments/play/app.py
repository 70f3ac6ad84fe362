"""The server: pages, records and the websocket of every game."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

import busenv.render
from busenv.experiments.play import messages
from busenv.experiments.play.catalogue import ANALYSTS, GRAPHIST
from busenv.experiments.play.messages import Refusal, read, read_request
from busenv.experiments.play.request_guard import Guard
from busenv.experiments.play.server import Hall, replay_of
from busenv.experiments.play.session import Connection, Room
from busenv.render.page import pieces_style
from busenv.render.replay import replay_page

FOLDERS = (Path(__file__).parent / "page", Path(busenv.render.__file__).parent)
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
REPLAY_POLICY = (  # it runs its own script, and is of no origin: nothing of ours is in its reach
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)
NO_SUCH_GAME, NOT_TEXT = 4404, 1003  # codes by which a websocket is closed


def make_app(hall: Hall, host: str = "127.0.0.1") -> Guard:
    """The app of a hall, which is opened and closed with it. host: where it is served."""
    static = {
        path.name: path
        for folder in FOLDERS[::-1]
        for path in folder.iterdir()
        if path.suffix in KINDS
    }

    async def start(request: Request) -> Response:
        hall.check_key(request.path_params["key"])
        return FileResponse(FOLDERS[0] / "start.html")

    async def choices(request: Request) -> Response:
        hall.check_key(request.path_params["key"])
        return JSONResponse(hall.choices())

    async def preview(request: Request) -> Response:
        hall.check_key(request.path_params["key"])
        wanted = await _body(request, messages.PREVIEW)
        return JSONResponse(hall.preview(wanted.record, wanted.ply))

    async def new_game(request: Request) -> Response:
        hall.check_key(request.path_params["key"])
        wanted = await _body(request, messages.NEW_GAME)
        return JSONResponse({"link": await hall.begin(wanted)}, 201)

    async def game(request: Request) -> Response:
        hall.find(request.path_params["token"])
        return FileResponse(FOLDERS[0] / "game.html")

    async def record(request: Request) -> Response:
        room, _ = hall.find(request.path_params["token"])
        text = room.table.tree.record(room.table.node).to_json()
        name = f'attachment; filename="bus-{room.table.header.id}.json"'
        return Response(text, media_type="application/json", headers={"content-disposition": name})

    async def replay(request: Request) -> Response:
        room, _ = hall.find(request.path_params["token"])
        page = await asyncio.to_thread(replay_page, *replay_of(room))
        headers = {"content-security-policy": REPLAY_POLICY}
        return Response(page, media_type="text/html", headers=headers)

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name == "pieces.css":
            return Response(pieces_style(), media_type="text/css")
        if name not in static:
            raise Refusal("no_such_page", "There is no such file.", 404)
        return FileResponse(static[name], media_type=KINDS[static[name].suffix])

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        try:
            room, place = hall.find(websocket.path_params["token"])
        except Refusal as refusal:
            await websocket.close(NO_SUCH_GAME, refusal.name)
            return
        await _talk(hall, room, Connection(place), websocket)

    @asynccontextmanager
    async def open_hall(_: Starlette) -> AsyncIterator[None]:
        await hall.open()
        try:
            yield
        finally:
            await hall.close()

    app = Starlette(
        routes=[
            Route("/start/{key}", start),
            Route("/start/{key}/choices", choices),
            Route("/start/{key}/preview", preview, methods=["POST"]),
            Route("/start/{key}/games", new_game, methods=["POST"]),
            Route("/play/{token}", game),
            Route("/play/{token}/record.json", record),
            Route("/play/{token}/replay.html", replay),
            Route("/static/{name}", file),
            WebSocketRoute("/play/{token}/socket", socket),
        ],
        exception_handlers={Refusal: _refused, 404: _not_found},
        lifespan=open_hall,
    )
    return Guard(app, host)


async def _refused(_: Request, refusal: Any) -> Response:
    return JSONResponse({"error": refusal.name, "words": refusal.words}, refusal.status)


async def _not_found(request: Request, _: Any) -> Response:
    words = "There is nothing here: open the link that the terminal shows."
    return await _refused(request, Refusal("no_such_page", words, 404))


async def _body(request: Request, kind: TypeAdapter[Any]) -> Any:
    """What is posted, as a typed value. Refusals: not_json, too_large, bad_json, bad_game."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refusal("not_json", "Send application/json.", 415)
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > messages.LARGEST_BODY:
            most = f"{messages.LARGEST_BODY:,}"
            raise Refusal("too_large", f"At most {most} bytes are read.", 413)
    return read(kind, data, "bad_game")


async def _talk(hall: Hall, room: Room, connection: Connection, websocket: WebSocket) -> None:
    """Serve a page until it is gone."""
    room.join(connection, hall.for_host(room))
    writer = asyncio.create_task(_write(connection, websocket))
    reader = asyncio.create_task(_read(hall, room, connection, websocket))
    try:
        await asyncio.wait({writer, reader}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        room.leave(connection)
        for task in (writer, reader):
            task.cancel()
            with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError, OSError):
                await task


async def _write(connection: Connection, websocket: WebSocket) -> None:
    """Send what is to be sent."""
    while (text := await connection.queue.get()) is not None:
        await websocket.send_text(text)
    await websocket.close(1013, "behind")


async def _read(hall: Hall, room: Room, connection: Connection, websocket: WebSocket) -> None:
    """Do what the page asks for, one after the other; what is refused changes nothing."""
    while (found := await websocket.receive())["type"] == "websocket.receive":
        request: Any = None
        try:
            if found.get("text") is None:
                raise Refusal("bad_json", "Send text.")
            request = read_request(found["text"])
            await ANSWERS[type(request)](hall, room, connection, request)
        except Refusal as refusal:
            _send_error(connection, refusal.name, refusal.words, request)
        except OSError as error:
            words = f"It could not be written down: {error.strerror}"
            _send_error(connection, "not_kept", words, request)
        await asyncio.sleep(0)  # others are served in between, however much one page asks


def _send_error(connection: Connection, name: str, words: str, request: Any) -> None:
    number = None if request is None else request.request
    connection.send({"type": "error", "name": name, "words": words, "request": number})


Answer = Callable[[Hall, Room, Connection, Any], Awaitable[None]]


async def _decide(_: Hall, room: Room, connection: Connection, asked: messages.Decide) -> None:
    room.table.decide(connection.place, asked.node, asked.action)
    room.changed()


async def _undo(_: Hall, room: Room, connection: Connection, asked: messages.Undo) -> None:
    room.table.undo(connection.place, asked.node)
    room.changed()


async def _redo(_: Hall, room: Room, connection: Connection, asked: messages.Redo) -> None:
    room.table.redo(connection.place, asked.node)
    room.changed()


async def _go(_: Hall, room: Room, connection: Connection, asked: messages.Go) -> None:
    room.table.go(connection.place, asked.node, asked.to)
    room.changed()


async def _pause(_: Hall, room: Room, connection: Connection, asked: messages.Pause) -> None:
    room.table.pause(connection.place, asked.on)
    room.changed()


async def _pace(_: Hall, room: Room, connection: Connection, asked: messages.Pace) -> None:
    room.table.set_pace(connection.place, asked.seconds)
    room.publish()


async def _hint(_: Hall, room: Room, connection: Connection, asked: messages.Hint) -> None:
    room.ask_hint(connection, asked.node, asked.agent)


async def _analysis(_: Hall, room: Room, connection: Connection, asked: messages.Analysis) -> None:
    room.follow_analysis(connection, (asked.agent or ANALYSTS[0]) if asked.on else None)


async def _graph(_: Hall, room: Room, connection: Connection, asked: messages.Graph) -> None:
    room.follow_graph(connection, (asked.agent or GRAPHIST) if asked.on else None)


async def _view(_: Hall, room: Room, connection: Connection, asked: messages.View) -> None:
    for node in asked.nodes:
        room.table.find(node)
    for node in asked.nodes:
        room.send_view(connection, node)
        await asyncio.sleep(0)


async def _rename(_: Hall, room: Room, connection: Connection, asked: messages.Rename) -> None:
    room.table.rename(connection.place, asked.seat, asked.name)
    room.tell_who()


async def _again(hall: Hall, room: Room, connection: Connection, _: messages.Again) -> None:
    if connection.place.role != "host":
        raise Refusal("only_host", "Only who began this game can begin it again.")
    hall.again(room)


ANSWERS: dict[type, Answer] = {
    messages.Decide: _decide,
    messages.Undo: _undo,
    messages.Redo: _redo,
    messages.Go: _go,
    messages.Pause: _pause,
    messages.Pace: _pace,
    messages.Hint: _hint,
    messages.Analysis: _analysis,
    messages.Graph: _graph,
    messages.View: _view,
    messages.Rename: _rename,
    messages.Again: _again,
}
