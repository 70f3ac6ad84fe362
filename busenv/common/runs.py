"""Run folders: one process at a time, and always the settings that the run started with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from busenv.error_text import quote, truncate
from busenv.io import read_json, write_whole

SETTINGS, LOCK = "run.json", "lock"


class RunError(ValueError):
    """A run that cannot start or resume; the message names the reason."""


@contextmanager
def lock_folder(folder: Path, mode: int = 0o777) -> Iterator[None]:
    """Hold a folder, created if missing, for this process until the block ends.

    RunError when another process holds it. The operating system releases the lock of a process that
    is killed.

    mode: permissions of a new folder, which is deleted if the block writes nothing into it.
    """
    from filelock import FileLock, Timeout  # an extra; reading a folder works without it

    if folder.is_file():
        raise RunError(f"{folder} is a file; allowed: a folder")
    is_new = not folder.exists()
    folder.mkdir(mode, parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise RunError(
            f"{folder} is in use by another process; wait for it or choose another folder"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not delete open files
            if is_new and [*folder.iterdir()] == [folder / LOCK]:
                (folder / LOCK).unlink()
                folder.rmdir()
        lock.release()


def store_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings of a new run to run.json, or compare them with those that it holds.

    RunError when the stored settings are damaged or differ.
    """
    path = folder / SETTINGS
    if not path.exists():
        write_whole(path, json.dumps(settings, indent=1) + "\n")
        return
    stored = read_json(path, RunError)
    if not isinstance(stored, dict):
        raise RunError(f"{path} is damaged: expected a JSON object, got {quote(stored)}")
    if differences := _differences(stored, settings):
        raise RunError(
            f"{folder} holds a run with {truncate(', '.join(differences), 1000)}; "
            "give the same settings to resume it, or another folder"
        )


def _differences(stored: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Descriptions of the settings that differ, by part for nested ones such as rules.

    The path of a rules or board file ("from") is ignored; its content is compared.
    """
    descriptions = []
    for key in sorted((stored.keys() | given.keys()) - {"from"}):
        one, other = stored.get(key), given.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            descriptions += [f"{key}: {part}" for part in _differences(one, other)]
        elif one != other or (key in stored) != (key in given):
            descriptions.append(f"{truncate(key)} {quote(one)}, not {quote(other)}")
    return descriptions
