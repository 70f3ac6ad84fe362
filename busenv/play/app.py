"""The HTTP routes and the websocket of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

import busenv.render
from busenv.play import messages
from busenv.play.catalogue import PREPARED
from busenv.play.messages import RequestError, parse_request
from busenv.play.request_guard import NOTEBOOKS, RequestGuard
from busenv.play.server import Server, replay_arguments
from busenv.play.session import Connection, Session
from busenv.render.pieces import pieces_style
from busenv.render.replay import replay_page
from busenv.schema import parse

PAGES = Path(__file__).parent / "page"
STATIC_FOLDERS = (Path(busenv.render.__file__).parent, PAGES)
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css"}
REPLAY_POLICY = (  # allows the page's own script, but gives it no origin and no other resource
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    f"style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self' {NOTEBOOKS}"
)
CLOSE_NO_SUCH_GAME, CLOSE_TRY_AGAIN = 4404, 1013


def make_app(server: Server, host: str) -> RequestGuard:
    """The ASGI app of a server. host: the address at which it listens."""
    static = {
        path.name: path
        for folder in STATIC_FOLDERS
        for path in folder.iterdir()
        if path.suffix in MEDIA_TYPES
    }

    async def start_page(request: Request) -> Response:
        server.check_key(request.path_params["key"])
        return FileResponse(PAGES / "start.html")

    async def options(request: Request) -> Response:
        server.check_key(request.path_params["key"])
        return JSONResponse(server.start_options())

    async def progress(request: Request) -> Response:
        server.check_key(request.path_params["key"])
        return JSONResponse({"done": server.num_prepared, "total": len(PREPARED)})

    async def new_game(request: Request) -> Response:
        server.check_key(request.path_params["key"])
        new = await _read_new_game(request)
        return JSONResponse({"link": server.create_game(new)}, 201)

    async def delete_game(request: Request) -> Response:
        server.check_key(request.path_params["key"])
        server.delete_game(request.path_params["id"])
        return JSONResponse({})

    async def game_page(request: Request) -> Response:
        server.find(request.path_params["token"])
        return FileResponse(PAGES / "game.html")

    async def record(request: Request) -> Response:
        game = server.find(request.path_params["token"])[0].game
        text = game.tree.record(game.node).to_json()
        name = f'attachment; filename="bus-{game.header.id}.json"'
        return Response(text, media_type="application/json", headers={"content-disposition": name})

    async def replay(request: Request) -> Response:
        session, _ = server.find(request.path_params["token"])
        page = await asyncio.to_thread(replay_page, **replay_arguments(session))
        headers = {"content-security-policy": REPLAY_POLICY}
        return Response(page, media_type="text/html", headers=headers)

    async def static_file(request: Request) -> Response:
        name = request.path_params["name"]
        if name == "pieces.css":
            return Response(pieces_style(), media_type="text/css")
        if name not in static:
            raise RequestError("no_such_page", "There is no such file.", 404)
        return FileResponse(static[name], media_type=MEDIA_TYPES[static[name].suffix])

    async def websocket(socket: WebSocket) -> None:
        await socket.accept()
        try:
            session, participant = server.find(socket.path_params["token"])
        except RequestError as error:
            await socket.close(CLOSE_NO_SUCH_GAME, error.code)
            return
        await _serve_page(server, session, Connection(participant), socket)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await server.open()
        try:
            yield
        finally:
            await server.close()

    app = Starlette(
        routes=[
            Route("/start/{key}", start_page),
            Route("/start/{key}/options", options),
            Route("/start/{key}/progress", progress),
            Route("/start/{key}/games", new_game, methods=["POST"]),
            Route("/start/{key}/games/{id}", delete_game, methods=["DELETE"]),
            Route("/play/{token}", game_page),
            Route("/play/{token}/record.json", record),
            Route("/play/{token}/replay.html", replay),
            Route("/static/{name}", static_file),
            WebSocketRoute("/play/{token}/socket", websocket),
        ],
        exception_handlers={RequestError: _error_response, OSError: _not_saved, 404: _not_found},
        lifespan=lifespan,
    )
    return RequestGuard(app, host)


async def _error_response(_: Request, error: Any) -> Response:
    return JSONResponse({"code": error.code, "message": error.message}, error.status)


async def _not_saved(request: Request, error: Any) -> Response:
    return await _error_response(request, RequestError("not_saved", _disk_message(error), 507))


def _disk_message(error: OSError) -> str:
    return f"The change could not be saved: {error.strerror or error}"


async def _not_found(request: Request, _: Any) -> Response:
    message = "There is no such page. Open the link that the terminal shows."
    return await _error_response(request, RequestError("no_such_page", message, 404))


async def _read_new_game(request: Request) -> messages.NewGame:
    """The body of a POST request. RequestError: not_json, too_large, bad_game."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RequestError("not_json", "The content type must be application/json.", 415)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > messages.MAX_BODY:
            limit = f"{messages.MAX_BODY:,}"
            raise RequestError("too_large", f"The body is too large; allowed: {limit} bytes", 413)
    try:
        return parse(messages.NewGame, body)
    except ValueError as error:
        raise RequestError("bad_game", str(error)) from None


async def _serve_page(
    server: Server, session: Session, connection: Connection, socket: WebSocket
) -> None:
    """Exchange messages with a page until it disconnects."""
    session.connect(connection, server.host_info(session))
    sender = asyncio.create_task(_send_messages(connection, socket))
    try:
        await _receive_requests(server, session, connection, socket)
    finally:
        session.disconnect(connection)
        sender.cancel()


async def _send_messages(connection: Connection, socket: WebSocket) -> None:
    with suppress(WebSocketDisconnect, RuntimeError, OSError):  # the page has disconnected
        while (text := await connection.queue.get()) is not None:
            await socket.send_text(text)
        await socket.close(CLOSE_TRY_AGAIN)


async def _receive_requests(
    server: Server, session: Session, connection: Connection, socket: WebSocket
) -> None:
    """Handle a page's requests in order; an invalid request changes nothing."""
    while (message := await socket.receive())["type"] == "websocket.receive":
        try:
            if message.get("text") is None:
                raise RequestError("bad_message", "Requests must be text, not bytes.")
            _handle(server, session, connection, parse_request(message["text"]))
        except RequestError as error:
            connection.send({"type": "error", "code": error.code, "message": error.message})
        except OSError as error:
            text = _disk_message(error)
            connection.send({"type": "error", "code": "not_saved", "message": text})
        await asyncio.sleep(0)  # serve other pages between two requests


def _handle(
    server: Server, session: Session, connection: Connection, request: messages.AnyRequest
) -> None:
    """Carry out a request. RequestError if it is not allowed, OSError if it cannot be saved."""
    game, participant = session.game, connection.participant
    match request:
        case messages.NodeRequest(type="view"):
            game.get_node(request.node)
            return session.send_view(connection, request.node)
        case messages.AnalysisRequest():
            return session.analyse(connection, request.node)
        case messages.SwitchRequest(type="chart"):
            return session.chart(connection, request.enabled)
        case messages.RenameRequest():
            game.rename(participant, request.seat, request.name)
            return session.publish_participants()
        case messages.RematchRequest():
            if participant.role != "host":
                raise RequestError("only_host", "Only the host can start a rematch.")
            return server.rematch(session)
        case messages.DelayRequest():
            game.set_delay(participant, request.seconds)
            return session.publish()
        case messages.DecideRequest():
            game.decide(participant, request.node, request.action)
        case messages.NodeRequest(type="undo" | "redo" as direction):
            game.undo_or_redo(participant, request.node, direction)
        case messages.JumpRequest():
            game.jump(participant, request.node, request.target)
        case messages.SwitchRequest(type="pause"):
            game.pause(participant, request.enabled)
    session.publish()
    session.restart_agents()
