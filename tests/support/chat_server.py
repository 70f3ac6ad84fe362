"""A stub of an OpenAI-compatible chat server."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-secret-Mq71"


def chat(content: object, **other: Any) -> bytes:
    """The body of a response with an answer."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 20}
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": usage, **other}).encode()


def response(status: str, text: str, *headers: str) -> bytes:
    """A whole response with a status, such as "404 Not Found", and a text."""
    lines = [f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(text)}", *headers]
    return "\r\n".join([*lines, "", text]).encode()


def first_legal(body: dict[str, Any]) -> bytes:
    """Answer with some text and the first action of the list."""
    listed = body["messages"][1]["content"].split("legal actions:\n")[-1]
    return chat(f"Let me think.\n\n{listed.partition(':')[0]}\n")


@contextmanager
def chat_server(
    answer: Callable[[dict[str, Any]], bytes] = first_legal,
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve answers on a free port; yields the base URL and the list of requests so far.

    answer: returns the body of a response to the body of a request. A body that begins with
    b"HTTP" is sent as the whole response.
    """
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append({**body, "path": self.path, "key": self.headers["Authorization"]})
            data = answer(body)
            try:
                if not data.startswith(b"HTTP"):
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.end_headers()
                self.wfile.write(data)
            except OSError:  # the client has left
                pass

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
