"""Scalars of a run for TensorBoard.

The calling thread writes them, so that a full disk raises an error that names the file there;
TensorBoard's own writer prints a traceback in another thread.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


class ScalarLog:
    """A new event file in a folder.

    first_step: TensorBoard hides this and later steps of earlier files.

    OSError, which names the file, when it cannot be written; an empty file is removed.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"events.out.tfevents.{time.time_ns()}.{os.getpid()}"
        self._file = self._path.open("xb")
        self._records = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"))
        self._write(Event(step=first_step, session_log=SessionLog(status=SessionLog.START)))

    def add(self, scalars: dict[str, float], step: int) -> None:
        """Write scalars, by name, of a step."""
        values = [Summary.Value(tag=name, simple_value=value) for name, value in scalars.items()]
        self._write(Event(step=step, summary=Summary(value=values)))

    def close(self) -> None:
        self._file.close()

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        try:
            self._records.write(event.SerializeToString())
            self._file.flush()
        except OSError as error:
            with suppress(OSError):  # what is left in the buffer
                self.close()
            if not self._path.stat().st_size:
                self._path.unlink()
            raise OSError(error.errno, error.strerror, str(self._path)) from error
