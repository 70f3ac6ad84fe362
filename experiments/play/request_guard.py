"""What every request to the server passes before anything is done with it.

The Host must be one of this machine's own names, so that a stranger's page cannot reach the server
under a name of its own (DNS rebinding). What changes anything must come from a page of the server
itself: browsers tell that by Origin. And every answer says what its page may do.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from busenv.experiments.play.messages import Refusal

LOCAL = "http://localhost:* http://127.0.0.1:*"  # where notebooks run that show a page
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'self' {LOCAL}"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Wraps an app. host: the address that the server listens at."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
        except Refusal as refusal:
            await _refuse(scope, refusal, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        """Refusals other_host, other_origin."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_own_host(host, self.host):
            raise Refusal("other_host", "This server is not reached by that name.", 403)
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            return
        origin = headers.get("origin", "")
        if not re.fullmatch("https?://" + re.escape(host), origin):
            raise Refusal("other_origin", "Only the server's own pages may do that.", 403)


def is_own_host(named: str, bound: str) -> bool:
    """Whether a Host header names this machine. bound: the address that the server listens at.

    Where that is a loopback address, only loopback addresses do; elsewhere any address, and the
    machine's own name: a page of somebody else's has a name of somebody else's.
    """
    try:
        name = urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return False
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        own = socket.gethostname().lower()
        return not is_loopback(bound) and name in (own, f"{own}.local", bound.lower())
    return address.is_loopback or not is_loopback(bound)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens at an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _refuse(scope: Scope, refusal: Refusal, send: Send) -> None:
    """Answer a request with a refusal, a websocket by not accepting it."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4403, "reason": refusal.name})
        return
    body = json.dumps({"error": refusal.name, "words": refusal.words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
