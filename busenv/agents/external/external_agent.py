"""The `exec` agent: an external program that speaks the protocol of EXEC.md."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from typing import Any

from busenv import Game, __version__
from busenv.agents.base import AgentError, LockedAgent
from busenv.agents.external.program import Program
from busenv.error_text import quote
from busenv.validation import check_seed

PROTOCOL = 1
SECONDS = 10.0  # per decision, by default
START_SECONDS = 60.0  # to answer hello: some programs load a network first
MAX_SECONDS = 86400.0


class ExternalAgent(LockedAgent):
    """Asks a program for each decision; starts it at the first one, and again after a failure.

    command: the program and its arguments, split by the rules of a POSIX shell, but run without a
        shell.
    seconds: time limit per decision, up to a day.

    Raises ValueError for a bad command or limit, FileNotFoundError when the program is missing.
    """

    single_game_only = True  # the protocol needs the history of a game, which GAME records lack

    def __init__(
        self, command: str, seed: int = 0, seconds: float = SECONDS, name: str | None = None
    ) -> None:
        if not 0 < seconds <= MAX_SECONDS:
            raise ValueError(
                f"{seconds:g} seconds per decision; allowed: above 0, to {MAX_SECONDS:g}"
            )
        super().__init__()
        self.name = name or f"exec:{command}"
        self._arguments = _split(command)
        self._seconds = seconds
        self._program: Program | None = None
        self.reset(seed)

    def __getstate__(self) -> dict[str, Any]:
        # A copy starts a program of its own.
        return {**super().__getstate__(), "_program": None, "_seed_due": True, "_setup": None}

    def reset(self, seed: int) -> None:
        with self._lock:
            self._seed = check_seed(seed)
            self._seed_due = True
            self._setup: tuple[object, ...] | None = None
            self._history: list[int] = []

    def close(self) -> None:
        """End the program. The agent remains usable: the next decision starts it again."""
        if (program := self._program) is not None:
            program.stop()  # without the lock: a thread that waits for an answer fails at once
        with self._lock:
            self._program = None
            self.reset(self._seed)

    def _act(self, game: Game) -> int:
        """Return the program's action. AgentError when it fails, which ends the program."""
        if game.begun_in_position:
            raise ValueError(
                f"{self.name} supports games from the set-up only; this one began in a given "
                "position"
            )
        legal = game.legal_actions()
        try:
            if self._program is None:
                self._program = Program(self.name, self._arguments)
                self._greet(self._program)
            answer = self._program.ask(self._question(game, legal), self._seconds)
            return self._check(answer, legal)
        except BaseException:  # else a late answer would count for the next question
            self.close()
            raise

    def _greet(self, program: Program) -> None:
        answer = program.ask(f"hello busenv {__version__} protocol {PROTOCOL}\n", START_SECONDS)
        if answer.split()[:1] != ["ready"]:
            raise AgentError(f'{self.name}: answered {quote(answer)} to hello; expected "ready"')

    def _question(self, game: Game, legal: list[int]) -> str:
        """Return the lines that the program needs for a decision."""
        board = {"name": game.board.name, "fingerprint": game.board.fingerprint}
        setup = (game.rules, board, game.num_players, game.first_player)
        history = game.history
        lines = [f"seed {self._seed}"] if self._seed_due else []
        if setup != self._setup or history[: len(self._history)] != self._history:
            lines += [
                f"rules {json.dumps({'name': game.rules.name, **game.rules.to_dict()})}",
                f"board {json.dumps(board)}",
                f"newgame players {game.num_players} first {game.first_player}",
            ]
        self._seed_due, self._setup, self._history = False, setup, history
        lines.append(_line("position", history))
        go = f"go seat {game.current_player} time {self._seconds:g} legal"
        lines.append(_line(go, legal))
        return "\n".join(lines) + "\n"

    def _check(self, answer: str, legal: list[int]) -> int:
        match = re.fullmatch(r"bestmove +([0-9]{1,9})", answer)
        if match is None:
            raise AgentError(f'{self.name}: answered {quote(answer)} to go; expected "bestmove ID"')
        action = int(match[1])
        if action not in legal:
            listed = ", ".join(map(str, legal[:10])) + (", ..." if len(legal) > 10 else "")
            raise AgentError(
                f"{self.name}: chose {action}, which is illegal; "
                f"legal: {listed} ({len(legal)} in all)"
            )
        return action


def _split(command: str) -> list[str]:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"command {command!r}: {error}") from error
    if not arguments:
        raise ValueError(f"command {command!r} names no program")
    if shutil.which(arguments[0]) is None:
        raise FileNotFoundError(f"command {command!r}: there is no program {arguments[0]!r} to run")
    return arguments


def _line(start: str, numbers: list[int]) -> str:
    return " ".join([start, *map(str, numbers)])
