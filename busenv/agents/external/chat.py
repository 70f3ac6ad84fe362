"""Requests to an OpenAI-compatible chat endpoint, with limits of time and size."""

from __future__ import annotations

import functools
import json
import time
from typing import Any, NamedTuple

import httpx

from busenv.agents.external.llm_settings import LlmSettings
from busenv.error_text import printable, truncate
from busenv.errors import AgentUnavailableError

MAX_BYTES = 2**20  # of a response
MAX_ATTEMPTS = 3  # while the server answers with a status in RETRY_STATUSES
FIRST_PAUSE = 2.0  # seconds before the second attempt; doubled for each further one
SHORTEST_KEY = 8  # characters of a key that replies are searched for
RETRY_STATUSES = (429, 500, 502, 503, 504)


class Reply(NamedTuple):
    """A model's answer. error: why there is none, "" for an answer. Tokens are 0 if unknown."""

    text: str
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


def ask(model: str, messages: list[dict[str, str]], settings: LlmSettings) -> Reply:
    """Send messages to a model and return its reply, in which the key is replaced by "[key]".

    A reply that is late, too long or malformed has an `error`. Raises AgentUnavailableError, which
    names the environment variable to look at, when the server cannot be reached or refuses.
    """
    body = {**settings.options, "model": model, "messages": messages}
    for attempt in range(MAX_ATTEMPTS):
        status, data = _post(body, settings)
        if status not in RETRY_STATUSES:
            break
        time.sleep(FIRST_PAUSE * 2**attempt if attempt + 1 < MAX_ATTEMPTS else 0)
    if status == 0:
        return Reply("", error=data.decode())
    text = _without_key(data.decode(errors="replace"), settings.key)
    if status != 200:
        advice = "OPENAI_API_KEY" if status in (401, 403) else "OPENAI_BASE_URL and the model"
        if status == 400:
            advice = "BUSENV_LLM_OPTIONS and the model"
        raise AgentUnavailableError(
            f"llm:{model}: the server answered {status}: {truncate(printable(text))}; "
            f"check {advice}"
        )
    return _parse(text, settings.key)


@functools.cache
def _client() -> httpx.Client:
    """The client of this process. Connections are not reused: a server may have closed them."""
    return httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))


def _post(body: dict[str, Any], settings: LlmSettings) -> tuple[int, bytes]:
    """Return the status and body of a response; status 0 and the reason for a late or long one."""
    headers = {"Accept-Encoding": "identity"}  # a small response cannot expand
    if settings.key:
        headers["Authorization"] = f"Bearer {settings.key}"
    url = settings.url.rstrip("/") + "/chat/completions"
    deadline = time.monotonic() + settings.seconds
    no_answer = f"no answer within {settings.seconds:g} s (BUSENV_LLM_SECONDS)".encode()
    try:
        with _client().stream(
            "POST", url, json=body, headers=headers, timeout=settings.seconds
        ) as response:
            data = b""
            for chunk in response.iter_raw():
                data += chunk
                if len(data) > MAX_BYTES:
                    return 0, f"a response of more than {MAX_BYTES:,} bytes".encode()
                if time.monotonic() > deadline:
                    return 0, no_answer
            return response.status_code, data
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise AgentUnavailableError(
            f"llm:{body['model']}: no server answers at the URL in OPENAI_BASE_URL"
        ) from None  # the URL may hold a password
    except httpx.TimeoutException:
        return 0, no_answer
    except httpx.HTTPError as error:
        return 0, f"a broken response ({type(error).__name__})".encode()


def _parse(text: str, key: str) -> Reply:
    """Return the reply in the JSON text of a response."""
    try:
        data = json.loads(text)
        choice = data["choices"][0]
        content = choice["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Reply("", error=f"a malformed response: {truncate(printable(text))}")
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    if isinstance(content, str) and content.strip():
        content = content.encode(errors="replace").decode()  # lone surrogates cannot be sent back
        return Reply(_without_key(content, key), "", *tokens)
    reason = truncate(_without_key(printable(choice.get("finish_reason")), key))
    return Reply("", f"an empty answer (finish_reason {reason})", *tokens)


def _without_key(text: str, key: str) -> str:
    # Keys of local servers may be as short as "x", which may occur in any reply.
    return text.replace(key, "[key]") if len(key) >= SHORTEST_KEY else text


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 10**9 else 0
