"""A running program that is talked with by lines of text."""

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

MAX_LINE = 65536  # bytes of a line from a program; more is an error, so that none can fill memory
# Waits until nobody holds the other end of its standard input, then kills a process group: so no
# program outlives a process of ours that is killed. (Linux' signal on a parent's death would come
# when the thread ends that started the program, and to the program alone.)
GUARD = ["/bin/sh", "-c", 'read line; kill -KILL "-$1"', "guard"]
GRACE = 1.0  # seconds that a program has to end by itself
KILLED = 10.0  # ... and one that was killed; only one that may not be killed takes longer


class Program:
    """A program of its own process group, which ends with us, however we end (not on Windows).

    What it starts ends too, unless that begins a group or session of its own. Its standard error
    goes where ours goes.

    All reading and writing is done by a thread, so that a program that neither reads nor writes
    keeps nobody waiting beyond the time limit. (Pipes alone can be waited for on POSIX only.)

    name: how errors call it. arguments: the program and its arguments; no shell comes between.
    """

    def __init__(self, name: str, arguments: list[str]) -> None:
        self._name = name
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            guard = _start_guard(self._process)
        except OSError as error:
            raise AgentError(f"{name}: cannot be started: {error}") from error
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        thread = threading.Thread(
            target=_talk, args=(self._process, self._messages, self._answers), daemon=True
        )
        thread.start()
        # Runs once: when called, or when nobody holds the program any more, or when Python ends.
        self.stop = weakref.finalize(self, _stop, self._process, guard, self._messages, thread)

    def ask(self, message: str, seconds: float) -> str:
        """Send lines of text and wait for a line that does not begin with the word "info".

        Raises AgentError when none comes in time, when it is too long, or when the program ends.
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
        """Why nothing more comes."""
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its input or output"
        return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _start_guard(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes] | None:
    """Have a program's group killed when we are gone; OSError, the program killed, if not."""
    if sys.platform == "win32":
        return None
    try:
        return subprocess.Popen(
            [*GUARD, str(process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except BaseException:
        _kill_group(process)
        raise


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):  # nothing left to kill
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILLED)


def _talk(
    process: subprocess.Popen[bytes],
    messages: queue.SimpleQueue[bytes | None],
    answers: queue.SimpleQueue[bytes],
) -> None:
    """Put an answer for every message; b"" when the program is gone. Closes both pipes."""
    with cast(BinaryIO, process.stdout) as output:
        try:
            with cast(BinaryIO, process.stdin) as entry:
                for message in iter(messages.get, None):
                    entry.write(message)
                    entry.flush()
                    answers.put(_read(output))
                entry.write(b"quit\n")
        except OSError:  # it reads no more
            answers.put(b"")
        while output.read(MAX_LINE):  # its last words, which it must not be kept from
            pass


def _read(output: BinaryIO) -> bytes:
    """The next line that is no "info"; without a line feed if too long or cut off."""
    while True:
        line = output.readline(MAX_LINE)
        if not line.endswith(b"\n") or line.split()[:1] != [b"info"]:
            return line


def _stop(
    process: subprocess.Popen[bytes],
    guard: subprocess.Popen[bytes] | None,
    messages: queue.SimpleQueue[bytes | None],
    thread: threading.Thread,
) -> None:
    """Ask the program to quit, then kill it and what it has started."""
    messages.put(None)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _kill_group(process)
    if guard is not None:
        _kill_group(guard)  # before its input closes: it would kill whoever has the number then
        cast(BinaryIO, guard.stdin).close()
    thread.join(GRACE)
