"""Settings of `llm` agents, from environment variables."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from busenv.error_text import quote

OPENAI = "https://api.openai.com/v1"
SECONDS, MAX_TOKENS = 60.0, 4096


@dataclass(frozen=True)
class LlmSettings:
    """Endpoint and limits of `llm` agents.

    url, key: of an OpenAI-compatible server; the key may be empty. Both are left out of the repr.
    seconds: time limit of a request. options: merged into the body of every request.
    prices: dollars per million input and output tokens, by model.
    """

    url: str = field(repr=False)
    key: str = field(repr=False)
    seconds: float
    options: dict[str, Any]
    prices: dict[str, tuple[float, float]]


def load_settings() -> LlmSettings:
    """Read the settings; ValueError names the variable that is missing or wrong.

    OPENAI_BASE_URL, OPENAI_API_KEY: one of them is required; by default the URL is OpenAI's.
    BUSENV_LLM_SECONDS: default 60. BUSENV_LLM_OPTIONS: a JSON object; without a limit of tokens,
    "max_completion_tokens": 4096 is added for OpenAI, "max_tokens": 4096 for other servers.
    BUSENV_LLM_PRICES: JSON, {"MODEL": [input, output]}.
    """
    url, key = (os.environ.get(name, "").strip() for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"))
    if not url and not key:
        raise ValueError(
            "llm agents need OPENAI_API_KEY, or OPENAI_BASE_URL for another server; "
            "neither environment variable is set"
        )
    if not (key.isascii() and key.isprintable()):
        raise ValueError("OPENAI_API_KEY contains characters other than printable ASCII")
    if url and not url.startswith(("http://", "https://")):
        raise ValueError("OPENAI_BASE_URL does not start with http:// or https://")
    text = os.environ.get("BUSENV_LLM_SECONDS") or f"{SECONDS}"
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 86400:
        raise ValueError(f"BUSENV_LLM_SECONDS is {quote(text)}; allowed: above 0, to 86400")
    options, prices = _json("BUSENV_LLM_OPTIONS"), _json("BUSENV_LLM_PRICES")
    for model, pair in prices.items():
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_price, pair))):
            raise ValueError(
                f"BUSENV_LLM_PRICES of {quote(model)} is {quote(pair)}; allowed: [INPUT, OUTPUT], "
                "dollars per million tokens"
            )
    url = url or OPENAI
    if not any("tokens" in name for name in options):
        # OpenAI's newer models refuse max_tokens; other servers may ignore the newer name.
        is_openai = url.startswith("https://api.openai.com/")
        options["max_completion_tokens" if is_openai else "max_tokens"] = MAX_TOKENS
    return LlmSettings(url, key, seconds, options, {m: (*p,) for m, p in prices.items()})


def _json(name: str) -> dict[str, Any]:
    text = os.environ.get(name) or "{}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {quote(text)}; allowed: a JSON object")
    return value


def _is_price(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e6  # type: ignore[operator]
