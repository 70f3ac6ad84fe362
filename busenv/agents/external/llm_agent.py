"""The `llm` agent: a language model behind an OpenAI-compatible chat endpoint."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from busenv import Board, Game
from busenv.agents.base import AgentError, LockedAgent
from busenv.agents.external.chat import Reply, ask
from busenv.agents.external.llm_settings import load_settings
from busenv.agents.external.reply_log import ReplyLog
from busenv.render.prompts import AnswerError, get_prompts
from busenv.validation import check_seed

RETRIES = 2  # invalid answers to a decision before the next one forfeits, as in `TextEnv`
QUOTED = 2000  # last characters of an invalid answer that are sent back


class LlmAgent(LockedAgent):
    """Asks a model for each decision, with the prompts of `busenv.render.prompts`.

    Each decision is a conversation of its own. An answer that is late, malformed or no legal action
    is invalid; after RETRIES of them the next one raises AgentError, which forfeits a rated game.

    model: name of the model on the server. list_actions, obfuscate: as for `Prompts`.

    Raises ValueError for missing or invalid settings (`load_settings`).
    """

    needs_history = True

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
        self._model, self._settings = model, load_settings()
        self._prompt_settings: dict[str, Any] = {
            "list_actions": list_actions,
            "obfuscate": obfuscate,
        }
        if obfuscate is not None:
            check_seed(obfuscate)
        self._log: ReplyLog | None = None
        self.reset(seed)

    def reset(self, seed: int) -> None:
        with self._lock:
            check_seed(seed)  # the server draws its own random numbers
            self._log = None

    def log_replies(self, file: Path, seat: int) -> None:
        with self._lock:
            self._log = ReplyLog(file, seat)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Raise ValueError: prompts need the rules and the history of a game."""
        raise ValueError(f"{self.name} plays single games only: use act(game), not choose(games)")

    def _act(self, game: Game) -> int:
        """Return the model's action. AgentError after too many invalid answers."""
        prompts = get_prompts(game.board, game.rules, game.num_players, **self._prompt_settings)
        messages = [
            {"role": "system", "content": prompts.instructions},
            {"role": "user", "content": prompts.question(game)},
        ]
        for attempt in range(RETRIES + 1):
            reply = self._ask(messages, len(game.history), attempt)
            reason = reply.error
            if not reason:
                try:
                    return prompts.read(game, reply.text)
                except AnswerError as error:
                    reason = str(error)
                messages += [
                    {"role": "assistant", "content": reply.text[-QUOTED:]},
                    {"role": "user", "content": f"{reason} Answer again."},
                ]
        raise AgentError(f"{self.name}: {RETRIES + 1} invalid answers; the last one: {reason}")

    def _ask(self, messages: list[dict[str, str]], ply: int, attempt: int) -> Reply:
        """Return the logged reply to a request, or send it and log the reply."""
        content = json.dumps([self._model, self._settings.options, messages])
        request = hashlib.sha256(content.encode()).hexdigest()[:16]
        reply = self._log.find(ply, attempt, request) if self._log else None
        if reply is None:
            reply = ask(self._model, messages, self._settings)
            if self._log:
                self._log.append(ply, attempt, request, reply)
        return reply
