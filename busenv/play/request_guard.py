"""The checks that every HTTP and websocket request passes first.

The Host header must name this machine, which prevents DNS rebinding. Requests that can change
something must come from the server's own pages (Origin header). Every response carries a content
security policy.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from busenv.play.messages import RequestError

NOTEBOOKS = "http://localhost:* http://127.0.0.1:*"  # may show a page in a frame
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors 'self' {NOTEBOOKS}"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class RequestGuard:
    """ASGI middleware. host: the address at which the server listens."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        try:
            self._check(scope)
        except RequestError as error:
            if scope["type"] == "websocket":
                return await send({"type": "websocket.close"})  # the response has status 403
            body = {"code": error.code, "message": error.message}
            response = JSONResponse(body, error.status)
            return await response(scope, receive, send_with_headers)
        await self.app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        """RequestError: other_host, other_origin."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_own_host(host, self.host):
            raise RequestError("other_host", "This server does not answer to that host name.", 403)
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            return
        if not re.fullmatch("https?://" + re.escape(host), headers.get("origin", "")):
            raise RequestError(
                "other_origin", "The request must come from a page of this server.", 403
            )


def is_own_host(host: str, listening: str) -> bool:
    """Whether a Host header names this machine. listening: the address of the server.

    Any IP address counts as a name of this machine, since DNS rebinding needs a host name.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    own = socket.gethostname().lower()
    return name in ("localhost", own, f"{own}.local", listening.lower()) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
