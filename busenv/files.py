"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file through a temporary neighbour, so that a kill leaves the old one or the new."""
    path = Path(os.path.realpath(path))  # a link stays one
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
