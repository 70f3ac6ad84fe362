"""Files are written whole or not at all, and in the folder of a run through no link."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import IO

LARGEST = 16 * 2**20  # bytes of a record, a board, rules or settings; a long game takes 4 kB


def read_bounded(
    path: str | Path, error: type[ValueError] = ValueError, follow_links: bool = True
) -> bytes:
    """The content of a file; `error` when it is larger than LARGEST, of which no more is read.

    follow_links: as for `write_whole`. OSError, of the system's kind, says what cannot be read.
    """
    try:
        with open(path, "rb") if follow_links else open_plain(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as failed:
        if failed.errno is None:  # it is a sentence of ours
            raise
        raise type(failed)(_unread(path, failed)) from None
    check_size(data, str(path), error)
    return data


def _unread(path: str | Path, error: OSError) -> str:
    """Why a file cannot be read, in a sentence."""
    if isinstance(error, FileNotFoundError):
        return f"there is no file {path}"
    if os.path.isdir(path):  # which not every system tells apart from one that is not ours
        return f"{path} is a folder; wanted: a file"
    return f"{path} cannot be read: {error.strerror}"


def check_size(data: str | bytes, name: str, error: type[ValueError] = ValueError) -> None:
    """`error` when data are larger than LARGEST; name: how it calls them."""
    if len(data) > LARGEST:
        raise error(f"{name} is larger than {LARGEST:,} bytes, the most that is read")


def write_whole(path: str | Path, content: str | bytes, follow_links: bool = True) -> None:
    """Write a file through a temporary neighbour, so that a kill leaves the old one or the new.

    follow_links: where the path is a symbolic link it stays one, and what it leads to is written;
    False, for folders that may come from others (the folder of a run), refuses it with OSError.
    """
    if not follow_links:
        check_plain(path)
    path = Path(os.path.realpath(path)) if follow_links else Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    name = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, stat.S_IMODE(path.stat().st_mode))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def check_plain(path: str | Path) -> None:
    """OSError when there is something at a path that is neither a plain file nor a folder."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise _not_plain(path, f"a symbolic link to {os.readlink(path)!r}")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise _not_plain(path, "no file")


def open_plain(path: str | Path, mode: str) -> IO[bytes]:
    """Open a file of a run's folder: "rb", "ab" or "r+b". OSError when it is a link or no file.

    It is the open file that is checked, so that none can be put in its place meanwhile, as far as
    the system knows how (O_NOFOLLOW).
    """
    check_plain(path)
    file = open(path, mode, opener=_without_links)  # noqa: SIM115 - for the caller to close
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _not_plain(path, "no file")
    return file


def _without_links(path: str, flags: int) -> int:
    # Without waiting: who opens a pipe to read would otherwise wait for somebody who writes.
    extra = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags | extra, 0o666)


def _not_plain(path: str | Path, what: str) -> OSError:
    return OSError(f"{path} is {what}; allowed in the folder of a run: plain files")
