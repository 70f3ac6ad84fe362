"""A game server in a thread, and a Python client of its websocket messages."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from busenv.play.catalogue import Catalogue
from busenv.play.game_store import GameStore
from busenv.play.launch import listen, make_uvicorn_server
from busenv.play.server import Server

PATIENCE = 180.0  # seconds; enough on a busy machine


class Served:
    """A running server, and requests with the headers of its own pages."""

    def __init__(self, folder: Path, catalogue: Catalogue | None = None, port: int = 0) -> None:
        self.server = Server(GameStore(folder), catalogue or Catalogue(), [])
        self._socket = listen("127.0.0.1", port)
        self.port = self._socket.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self._uvicorn = make_uvicorn_server(self.server, "127.0.0.1")
        self._thread = threading.Thread(target=self._run)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("busenv.play.server.MAX_WORKERS", 1)  # workers start slowly
            self._thread.start()
            end = time.monotonic() + PATIENCE
            while not self._uvicorn.started:
                assert time.monotonic() < end
                assert self._thread.is_alive()
                time.sleep(0.01)

    def _run(self) -> None:
        asyncio.run(self._uvicorn.serve(sockets=[self._socket]))

    def close(self) -> None:
        self._uvicorn.should_exit = True
        self._thread.join()
        self._socket.close()

    @property
    def start_link(self) -> str:
        return f"/start/{self.server.key}"

    def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        return self._request(urllib.request.Request(self.origin + path, headers=headers))

    def post(
        self, path: str, body: Any, method: str = "POST", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Origin": self.origin, **headers}
        request = urllib.request.Request(self.origin + path, data, headers, method=method)
        status, text, _ = self._request(request)
        return status, json.loads(text)

    def _request(self, request: urllib.request.Request) -> tuple[int, str, dict[str, str]]:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), dict(error.headers)

    def begin(self, *seats: str, **settings: Any) -> str:
        """Create a game with seats "me", "friend" or an agent's spec; return the host's link."""
        players = [
            {"kind": seat} if seat in ("me", "friend") else {"kind": "agent", "spec": seat}
            for seat in seats
        ]
        status, answer = self.post(f"{self.start_link}/games", {"seats": players, **settings})
        assert status == 201, answer
        return answer["link"]

    def open(self, link: str, origin: str | None = None) -> PageClient:
        return PageClient(self.origin + link, origin)


class PageClient:
    """A page: stores the latest message of each type, the nodes, and the parts of each drawing.

    origin: by default that of the link; "" for none.
    """

    def __init__(self, link: str, origin: str | None = None) -> None:
        self._stack = ExitStack()
        address = f"ws{link.removeprefix('http')}/socket"
        sender: Any = (link.partition("/play/")[0] if origin is None else origin) or None
        connection = connect(address, origin=sender, max_size=None, open_timeout=PATIENCE)
        self.socket = self._stack.enter_context(connection)
        self.latest: dict[str, dict[str, Any]] = {}
        self.views: dict[int, dict[str, str]] = {}
        self.nodes: dict[int, dict[str, Any]] = {}
        self.until("state")

    def receive(self) -> dict[str, Any]:
        message = json.loads(self.socket.recv(timeout=PATIENCE))
        self.latest[message["type"]] = message
        if message["type"] == "view":
            self.views[message["node"]] = message["parts"]
        if message["type"] == "tree":
            self.nodes |= {node["id"]: node for node in message["nodes"]}
        if message["type"] == "state":
            assert message["node"] in self.views
            assert {*message["variation"]} <= {*self.nodes}
        return message

    def until(
        self, kind: str, condition: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> dict[str, Any]:
        """Receive messages until one has a type and fulfils a condition; return it."""
        while True:
            message = self.receive()
            if message["type"] == kind and condition(message):
                return message

    def send(self, kind: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **fields}))

    @property
    def state(self) -> dict[str, Any]:
        return self.latest["state"]

    @property
    def first_choice(self) -> int:
        """The action of the first legal choice."""
        return self.state["targets"][0]["choices"][0]["action"]

    def error_code(self, kind: str, **fields: Any) -> str:
        """Send an invalid request; return the code of the error."""
        self.send(kind, **fields)
        return self.until("error")["code"]

    def my_turn(self) -> dict[str, Any]:
        """Receive until this page has a choice, the game is over, or an agent has failed."""

        def is_mine(state: dict[str, Any]) -> bool:
            return bool(state["targets"]) or state["status"] == "over" or bool(state["failure"])

        return self.state if is_mine(self.state) else self.until("state", is_mine)

    def decide(self, action: int) -> dict[str, Any]:
        """Decide, and receive until the game has moved on."""
        node = self.state["node"]
        self.send("decide", node=node, action=action)
        return self.until("state", lambda state: state["node"] != node)

    def decide_first(self) -> dict[str, Any]:
        """Wait for this page's turn and pick the first choice."""
        self.my_turn()
        return self.decide(self.first_choice)

    def close(self) -> None:
        self._stack.close()


@contextmanager
def serving(folder: Path, catalogue: Catalogue | None = None, port: int = 0) -> Iterator[Served]:
    """A running server within the block; port: 0 for any free one."""
    served = Served(folder, catalogue, port)
    try:
        yield served
    finally:
        served.close()
