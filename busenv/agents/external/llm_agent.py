"""The `llm` agent: a language model behind an OpenAI-compatible chat endpoint."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai

from busenv import Game
from busenv.agents.base import AgentError, LockedAgent
from busenv.common.jsonl import append_lines, read_lines
from busenv.envs.text.prompts import AnswerError, get_prompts
from busenv.error_text import printable, truncate
from busenv.errors import AgentUnavailableError
from busenv.validation import check_seed

RETRIES = 2  # invalid answers to a decision before the next one forfeits, as in `TextEnv`
QUOTED = 2000  # last characters of an invalid answer that are sent back
# Last characters of an answer that are read and logged. As JSON they have at most 12 bytes each, so
# they fit into a line of a log (`busenv.common.jsonl.MAX_LINE`).
LONGEST = 80_000
SECONDS, MAX_TOKENS = 60.0, 4096
ADVICE = {400: "BUSENV_LLM_OPTIONS", 401: "OPENAI_API_KEY", 403: "OPENAI_API_KEY"}


def request_settings() -> dict[str, Any]:
    """Return the settings of requests: "seconds", their time limit, and "options", their fields.

    BUSENV_LLM_SECONDS: default 60. BUSENV_LLM_OPTIONS: a JSON object; without a limit of tokens,
    "max_completion_tokens": 4096 is added for OpenAI, "max_tokens": 4096 for other servers.
    Raises ValueError, which names the variable, for another value.
    """
    values: dict[str, Any] = {}
    for name, default in (("BUSENV_LLM_SECONDS", f"{SECONDS}"), ("BUSENV_LLM_OPTIONS", "{}")):
        text = os.environ.get(name) or default
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = None
    seconds, options = values["BUSENV_LLM_SECONDS"], values["BUSENV_LLM_OPTIONS"]
    if not (type(seconds) in (int, float) and 0 < seconds <= 86400):
        raise ValueError("BUSENV_LLM_SECONDS is not a number above 0, to 86400")
    if not isinstance(options, dict):
        raise ValueError("BUSENV_LLM_OPTIONS is not a JSON object")
    if not any("tokens" in name for name in options):
        # OpenAI's newer models refuse max_tokens; other servers may ignore the newer name.
        host = urlsplit(os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com").hostname
        is_openai = (host or "").endswith(".openai.com")
        options["max_completion_tokens" if is_openai else "max_tokens"] = MAX_TOKENS
    return {"seconds": seconds, "options": options}


@functools.cache
def _client(url: str | None, key: str, seconds: float) -> openai.OpenAI:
    """Return the client of this process, which repeats failed requests twice."""
    return openai.OpenAI(base_url=url, api_key=key, timeout=seconds)


class LlmAgent(LockedAgent):
    """Asks a model for each decision, with the prompts of `busenv.envs.text.prompts`.

    Each decision is a conversation of its own. An answer that names no legal action is invalid;
    after RETRIES of them the next one raises AgentError, which forfeits a rated game. Every
    other failure, such as a wrong key or a timeout, raises AgentUnavailableError.

    model: name of the model on the server. list_actions, obfuscate: as for `Prompts`.

    OPENAI_BASE_URL and OPENAI_API_KEY name the server and its key; by default the server is
    OpenAI's. Raises ValueError when both are missing, or for wrong `request_settings`.
    """

    single_game_only = True  # prompts need the rules of a game

    def __init__(
        self,
        model: str,
        seed: int = 0,
        *,
        list_actions: bool = True,
        obfuscate: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.name = name or f"llm:{model}"
        self._model, self._settings = model, request_settings()
        self._url = os.environ.get("OPENAI_BASE_URL") or None
        self._key = (os.environ.get("OPENAI_API_KEY") or "").strip()
        if not self._url and not self._key:
            raise ValueError(
                "llm agents need OPENAI_API_KEY, or OPENAI_BASE_URL for another server; "
                "neither environment variable is set"
            )
        if obfuscate is not None:
            check_seed(obfuscate)
        self._prompt_settings: Any = {"list_actions": list_actions, "obfuscate": obfuscate}
        self.reset(seed)

    def reset(self, seed: int) -> None:
        with self._lock:
            check_seed(seed)  # the server draws its own random numbers
            self._log: Path | None = None
            self._logged: dict[tuple[int, int, str], str] = {}

    def log_replies(self, file: Path, seat: int) -> None:
        with self._lock:
            file.parent.mkdir(exist_ok=True)
            rows: Iterable[Any] = read_lines(file) if file.exists() else ()
            self._logged = {
                (row["ply"], row["attempt"], row["request"]): row["text"]
                for row in rows
                if row["seat"] == seat
            }
            self._log, self._seat = file, seat

    def _act(self, game: Game) -> int:
        """Return the model's action. AgentError after too many invalid answers."""
        prompts = get_prompts(game.board, game.rules, game.num_players, **self._prompt_settings)
        messages = [
            {"role": "system", "content": prompts.instructions},
            {"role": "user", "content": prompts.question(game)},
        ]
        for attempt in range(RETRIES + 1):
            answer = self._answer(messages, len(game.history), attempt)
            try:
                return prompts.read(game, answer)
            except AnswerError as error:
                reason = str(error) if answer else "The answer is empty."
            messages += [
                {"role": "assistant", "content": answer[-QUOTED:]},
                {"role": "user", "content": f"{reason} Answer again."},
            ]
        raise AgentError(f"{self.name}: {RETRIES + 1} invalid answers; the last one: {reason}")

    def _answer(self, messages: list[dict[str, str]], ply: int, attempt: int) -> str:
        """Return the logged answer to a request, or send it and log the answer."""
        content = json.dumps([self._model, self._settings["options"], messages])
        request = hashlib.sha256(content.encode()).hexdigest()[:16]
        if (ply, attempt, request) in self._logged:
            return self._logged[ply, attempt, request]
        try:
            text, tokens = self._ask(messages)
        except Exception as error:  # of the network, its settings, or a server of another kind
            reason = truncate(printable(self._without_key(self._reason(error))))
            raise AgentUnavailableError(f"{self.name}: {reason}") from error
        if self._log:
            where = {"agent": self.name, "seat": self._seat, "ply": ply, "attempt": attempt}
            append_lines(self._log, [{**where, "request": request, "text": text, **tokens}])
        return text

    def _ask(self, messages: Any) -> tuple[str, dict[str, int]]:
        """Return a model's answer, "" for an empty one, and the tokens read and written."""
        client = _client(self._url, self._key or "none", self._settings["seconds"])
        options = self._settings["options"]
        completion: Any = client.chat.completions.create(
            model=self._model, messages=messages, extra_body=options
        )
        text = completion.choices[0].message.content or ""
        if isinstance(text, list):  # of parts, as some servers send it
            text = "".join(part.get("text") or "" for part in text)
        text = text.encode(errors="replace").decode()  # lone surrogates cannot be sent back
        counts = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
        tokens = {name: getattr(completion.usage, key, 0) or 0 for name, key in counts.items()}
        return self._without_key(text.strip())[-LONGEST:], tokens

    def _reason(self, error: Exception) -> str:
        """Describe an error of a request in one sentence."""
        match error:
            case openai.APITimeoutError():
                return f"no answer within {self._settings['seconds']:g} s (BUSENV_LLM_SECONDS)"
            case openai.APIStatusError(status_code=status):
                advice = ADVICE.get(status, "OPENAI_BASE_URL and the model")
                return f"the server answered {status}; check {advice}: {error.response.text}"
            case openai.APIConnectionError(__cause__=Exception() as cause):
                error = cause
            case AttributeError() | LookupError() | TypeError() | json.JSONDecodeError():
                return "the server answered with something other than a chat completion"
        return f"no connection to the server; check OPENAI_BASE_URL and the proxy: {error!r}"

    def _without_key(self, text: str) -> str:
        # Keys of local servers may be as short as "x", which may occur in any answer.
        return text.replace(self._key, "[key]") if len(self._key) >= 8 else text
