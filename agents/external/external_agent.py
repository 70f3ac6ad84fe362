"""An agent that is a program of its own, in any language; the protocol is on the page EXEC.md."""

from __future__ import annotations

import json
import re
import shlex
import shutil

import numpy as np

from busenv import Board, Game, __version__
from busenv.agents.base import Agent, AgentError
from busenv.agents.external.program import Program
from busenv.validation import check_seed

PROTOCOL = 1
SECONDS = 10.0  # a decision, where the spec does not say
START_SECONDS = 60.0  # to get ready: some load a network first
MAX_SECONDS = 86400.0


class ExternalAgent(Agent):
    """Asks a program for each decision. It is started at the first one, and again after a failure.

    command: the program and its arguments, split as a POSIX shell would; no shell runs it.
    seconds: time limit of a decision, up to a day.

    ValueError for a bad command or limit, FileNotFoundError when there is no such program.
    """

    def __init__(
        self, command: str, seed: int = 0, seconds: float = SECONDS, name: str | None = None
    ) -> None:
        if not 0 < seconds <= MAX_SECONDS:
            raise ValueError(
                f"{seconds:g} seconds a decision; allowed: above 0, to {MAX_SECONDS:g}"
            )
        self.name = name or f"exec:{command}"
        self._arguments = _split(command)
        self._seconds = seconds
        self._program: Program | None = None
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self._seed = check_seed(seed)
        self._seed_due = True
        self._setup: tuple[object, ...] | None = None
        self._history: list[int] = []

    def close(self) -> None:
        """End the program. The agent can still be used: the next decision starts it anew."""
        if self._program is not None:
            self._program.stop()
        self._program = None
        self.reset(self._seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Not possible: a GAME record does not tell how the game came about."""
        raise ValueError(f"{self.name} plays whole games only: use act(game), not choose(games)")

    def act(self, game: Game) -> int:
        """The program's answer. AgentError when it fails, which ends the program."""
        if game.is_over:
            raise ValueError("the game is over: there is nothing to choose")
        if game.begun_in_position:
            raise ValueError(
                f"{self.name} plays games from their set-up on: the protocol has no word for the "
                "position that this one began in"
            )
        legal = game.legal_actions()
        try:
            if self._program is None:
                self._program = Program(self.name, self._arguments)
                self._greet(self._program)
            answer = self._program.ask(self._question(game, legal), self._seconds)
            return self._check(answer, legal)
        except BaseException:  # a late answer to this question must not count for the next
            self.close()
            raise

    def _greet(self, program: Program) -> None:
        answer = program.ask(f"hello busenv {__version__} protocol {PROTOCOL}\n", START_SECONDS)
        if answer.split()[:1] != ["ready"]:
            raise AgentError(f'{self.name}: answered {_short(answer)} to hello; expected "ready"')

    def _question(self, game: Game, legal: list[int]) -> str:
        """All lines that the program needs to decide."""
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
        lines.append(_words("position", history))
        go = f"go seat {game.current_player} time {self._seconds:g} legal"
        lines.append(_words(go, legal))
        return "\n".join(lines) + "\n"

    def _check(self, answer: str, legal: list[int]) -> int:
        found = re.fullmatch(r"bestmove +([0-9]{1,9})", answer)
        if found is None:
            raise AgentError(
                f'{self.name}: answered {_short(answer)} to go; expected "bestmove ID"'
            )
        action = int(found[1])
        if action not in legal:
            some = ", ".join(map(str, legal[:10])) + (", ..." if len(legal) > 10 else "")
            raise AgentError(
                f"{self.name}: chose {action}, which is illegal; "
                f"legal: {some} ({len(legal)} in all)"
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


def _words(start: str, numbers: list[int]) -> str:
    return " ".join([start, *map(str, numbers)])


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")
