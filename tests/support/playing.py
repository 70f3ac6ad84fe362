"""A server of games in a thread, and pages of it that are programs."""

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

from websockets.sync.client import connect

from busenv.experiments.play.catalogue import Offers
from busenv.experiments.play.game_store import Store
from busenv.experiments.play.launch import listen, make_server
from busenv.experiments.play.server import Hall

PATIENCE = 180.0  # seconds for what takes milliseconds on a machine that does nothing else


class Served:
    """A server at a port of its own, and requests to it as its own page makes them."""

    def __init__(self, folder: Path, offers: Offers | None = None, port: int = 0) -> None:
        self.hall = Hall(Store(folder), offers or Offers(), [])
        self._socket = listen("127.0.0.1", port)
        self.port = self._socket.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self._server = make_server(self.hall, "127.0.0.1")
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        end = time.monotonic() + PATIENCE
        while not self._server.started:
            assert time.monotonic() < end
            assert self._thread.is_alive()
            time.sleep(0.01)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        return self._ask(urllib.request.Request(self.origin + path, headers=headers))

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json", "Origin": self.origin, **headers}
        request = urllib.request.Request(self.origin + path, data, given)
        status, text, _ = self._ask(request)
        return status, json.loads(text)

    def _ask(self, request: urllib.request.Request) -> tuple[int, str, dict[str, str]]:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), dict(error.headers)

    def begin(self, *seats: str, **more: Any) -> str:
        """Begin a game of "me", "friend" and agents; the host's link."""
        chairs = [
            {"kind": seat} if seat in ("me", "friend") else {"kind": "agent", "spec": seat}
            for seat in seats
        ]
        status, answer = self.post(f"/start/{self.hall.key}/games", {"seats": chairs, **more})
        assert status == 201, answer
        return answer["link"]

    def open(self, link: str, **headers: str) -> PageClient:
        given = {"Origin": self.origin, **headers}
        origin = given.pop("Origin") or None
        address = f"ws://127.0.0.1:{self.port}{link}/socket"
        return PageClient(address, origin, given)


class PageClient:
    """A page: it keeps the newest message of each kind, and the parts of the picture it shows."""

    def __init__(self, address: str, origin: str | None, headers: dict[str, str]) -> None:
        self._stack = ExitStack()
        asked = connect(address, origin=origin, additional_headers=headers, max_size=None)
        self.socket = self._stack.enter_context(asked)
        self.newest: dict[str, dict[str, Any]] = {}
        self.views: dict[int, dict[str, str]] = {}
        self.nodes: dict[int, dict[str, Any]] = {}
        self.until("who")

    def receive(self) -> dict[str, Any]:
        found = json.loads(self.socket.recv(timeout=PATIENCE))
        self.newest[found["type"]] = found
        if found["type"] == "view":
            before = {} if found["base"] is None else self.views[found["base"]]
            self.views[found["node"]] = before | found["parts"]
        if found["type"] == "tree":
            self.nodes |= {node["id"]: node for node in found["nodes"]}
        if found["type"] == "state":
            assert found["node"] in self.views
            assert {*found["line"]} <= {*self.nodes}
        return found

    def until(
        self, kind: str, where: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> dict[str, Any]:
        """Receive until a message of a kind comes for which something holds."""
        while True:
            found = self.receive()
            if found["type"] == kind and where(found):
                return found

    def send(self, kind: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **fields}))

    @property
    def state(self) -> dict[str, Any]:
        return self.newest["state"]

    def refused(self, kind: str, **fields: Any) -> str:
        """Send what is to be refused; the name of the refusal."""
        self.send(kind, request=77, **fields)
        return self.until("error", lambda found: found["request"] == 77)["name"]

    def my_turn(self) -> dict[str, Any]:
        """Receive until it is the page's turn, or the game is over; the state then."""

        def mine(state: dict[str, Any]) -> bool:
            return bool(state["spots"]) or state["over"] or bool(state["trouble"])

        return self.state if mine(self.state) else self.until("state", mine)

    def decide(self, action: int) -> dict[str, Any]:
        """Decide, and receive until the game has moved on."""
        node = self.state["node"]
        self.send("decide", node=node, action=action)
        return self.until("state", lambda state: state["node"] != node)

    def close(self) -> None:
        self._stack.close()


@contextmanager
def serving(folder: Path, offers: Offers | None = None, port: int = 0) -> Iterator[Served]:
    """A server for a block; at any free port by default."""
    served = Served(folder, offers, port)
    try:
        yield served
    finally:
        served.close()
