"""A child process that exchanges lines of text with busenv."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from typing import BinaryIO, cast

from busenv.agents.base import AgentError

MAX_LINE = 65536  # bytes of a line from a program, so that none can fill the memory
GRACE = 1.0  # seconds for a program to end by itself
KILL_TIMEOUT = 10.0  # seconds for a killed program to end


class Program:
    """A program in a process group of its own, which ends when Python exits.

    Its own children end too, unless they start another group or session. (On Windows only the
    program itself ends.) If busenv is killed, the program's standard input ends. It shares busenv's
    standard error. A thread reads and writes, so that a program that does neither cannot exceed the
    time limit.

    name: the agent's name in errors. arguments: the program and its arguments; no shell runs them.
    """

    def __init__(self, name: str, arguments: list[str]) -> None:
        self._name = name
        try:
            self._process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise AgentError(f"{name}: cannot be started: {error}") from error
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        thread = threading.Thread(
            target=_talk, args=(self._process, self._messages, self._answers), daemon=True
        )
        thread.start()
        # Runs once: when called, when this object is garbage, or when Python exits.
        self.stop = weakref.finalize(self, _stop, self._process, self._messages, thread)

    def ask(self, message: str, seconds: float) -> str:
        """Send lines of text and return the next line that does not begin with the word "info".

        Raises AgentError on a timeout, on a line above MAX_LINE, or when the program has ended.
        """
        self._messages.put(message.encode())
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise AgentError(f"{self._name}: no answer within {seconds:g} s") from None
        if line.endswith(b"\n"):
            return line.decode(errors="replace").strip()
        if len(line) == MAX_LINE:
            raise AgentError(f"{self._name}: wrote a line of more than {MAX_LINE} bytes")
        raise AgentError(f"{self._name}: {self._ending()}")

    def _ending(self) -> str:
        """Describe why the program has stopped answering."""
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its input or output"
        return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _talk(
    process: subprocess.Popen[bytes],
    messages: queue.SimpleQueue[bytes | None],
    answers: queue.SimpleQueue[bytes],
) -> None:
    """Put an answer for every message, b"" when the program has ended, then close both pipes."""
    with cast(BinaryIO, process.stdout) as output:
        try:
            with cast(BinaryIO, process.stdin) as stdin:
                for message in iter(messages.get, None):
                    stdin.write(message)
                    stdin.flush()
                    answers.put(_read(output))
                stdin.write(b"quit\n")
        except OSError:  # it no longer reads
            answers.put(b"")
        while output.read(MAX_LINE):  # so that it can finish writing
            pass


def _read(output: BinaryIO) -> bytes:
    """Return the next line other than "info"; without a line feed if too long or cut off."""
    while True:
        line = output.readline(MAX_LINE)
        if not line.endswith(b"\n") or line.split()[:1] != [b"info"]:
            return line


def _stop(
    process: subprocess.Popen[bytes],
    messages: queue.SimpleQueue[bytes | None],
    thread: threading.Thread,
) -> None:
    """Ask the program to quit, then kill its process group."""
    messages.put(None)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(OSError):  # the group has ended
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_TIMEOUT)
    thread.join(GRACE)
