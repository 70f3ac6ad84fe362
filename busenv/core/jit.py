"""Compile a kernel once, keep the machine code on disk, and never use it stale.

numba keys its cache on the file that holds a function, so an edit in a module that the function
calls into would go unseen. Here the cache lives in a folder named after the content of the whole
core: any edit anywhere in it leads to another, empty folder. A kernel outside of the core (it may
call the core, and its own package) is filed under the content of its package as well.

numba has a setting for the folder, but no more: with it a damaged file fails every call or crashes,
a full disk fails the first, anybody's file is believed, and nobody is told what takes so long.
Hence the classes below.

What is loaded from the cache is run. So each file begins with a checksum, which finds any damage,
and folders and files that somebody else could have written are not used, which the checksum cannot
see: it is no secret how it is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import stat
import sys
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from numba import __version__ as NUMBA  # noqa: N812 - a constant
from numba import njit
from numba.core import caching, config
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

CORE = Path(__file__).resolve().parent
DIGEST = 32  # bytes of a checksum


@cache
def source_fingerprint(folder: Path) -> str:
    """SHA-256 (first 16 hex digits) over every Python file of a folder, names included."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(
            path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
        )
    return digest.hexdigest()[:16]


def _package_of(source: Path) -> Path:
    """The folder of the outermost package that a file is in, or the file's own folder."""
    folder = source.parent
    while (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return folder


FINGERPRINT = source_fingerprint(CORE)


def _candidates() -> list[Path]:
    """Folders that may hold the cache, best first: the user's choice, in the package, per user."""
    place = "busenv_" + hashlib.sha256(str(CORE).encode()).hexdigest()[:16]
    chosen = [Path(config.CACHE_DIR) / place] if config.CACHE_DIR else []
    user = Path(AppDirs(appname="busenv", appauthor=False).user_cache_dir) / place
    return [*chosen, CORE / "__pycache__", user]


def _only_ours(status: os.stat_result) -> bool:
    """Whether nobody but us and root can have written it. Not asked where files have no owners."""
    if not hasattr(os, "geteuid"):
        return True
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid in (os.geteuid(), 0) and not others_write


def _make_folder() -> Path | None:
    """The first candidate that can be written, by nobody else; None when there is none."""
    for parent in _candidates():
        folder = parent / f"core-{FINGERPRINT}"
        try:
            fresh = not folder.exists()
            parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o755, exist_ok=True)
            status = folder.lstat()
            (folder / "writable").touch(mode=0o644)
        except OSError:
            continue
        if not (stat.S_ISDIR(status.st_mode) and _only_ours(status)):
            continue
        if fresh:
            for old in parent.glob("core-*"):
                if old != folder:
                    shutil.rmtree(old, ignore_errors=True)
        return folder
    return None


class _Locator(caching._CacheLocator):
    """Tells numba to keep a kernel in our folder."""

    folder: Path | None = None
    looked = False  # whether a folder has been looked for

    def __init__(self, py_func: Callable[..., Any]) -> None:
        code = py_func.__code__
        self._py_file = code.co_filename
        source = Path(code.co_filename).resolve()
        self._name = f"{source.stem}-{code.co_firstlineno}"
        if CORE in source.parents:
            self._name = f"{source.parent.name}-{self._name}"  # a name may be there twice
        else:
            self._name += "-" + source_fingerprint(_package_of(source))

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return FINGERPRINT

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes: ClassVar[list[type]] = [_Locator]


class _Files:
    """A file for each compiled signature of a kernel: a checksum, and a pickle of whose it is and
    of numba's data. It stands in for numba's index and data files (IndexDataCacheFile)."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = Path(folder), name

    def load(self, key: Any) -> Any:
        """What was saved under a key; None if nothing, or if a file is damaged or not ours."""
        try:
            with self._path(key).open("rb") as file:
                if not _only_ours(os.fstat(file.fileno())):
                    return None
                content = file.read()
        except FileNotFoundError:
            return None
        pickled = content[DIGEST:]
        if content[:DIGEST] != _digest(pickled):
            return None
        owner, data = pickle.loads(pickled)
        return data if owner == (self._name, NUMBA, key) else None

    def save(self, key: Any, data: Any) -> None:
        """Write a file whole or not at all; OSError if not."""
        pickled = dumps(((self._name, NUMBA, key), data))
        path = self._path(key)
        draft = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(draft, flags, 0o644), "wb") as file:
                file.write(_digest(pickled) + pickled)
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise

    def flush(self) -> None:
        """Delete what is saved; numba's `recompile` asks for it."""
        for path in self._folder.glob(f"{self._name}.*.nbc"):
            path.unlink()

    def _path(self, key: Any) -> Path:
        return self._folder / f"{self._name}.{_digest(repr((NUMBA, key)).encode()).hex()[:16]}.nbc"


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


class _Cache(caching.FunctionCache):
    """numba's cache in our folder; says so when somebody waits, and never fails a call."""

    _impl_class = _Impl
    announced = False

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # a damaged file is a cache miss, whatever it raises
            found = None
        if found is None:
            announce()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # a full or vanished disk costs a compilation next time, no more
            self.disable()


def announce() -> None:
    """Say once that code is being compiled, if a person is likely to be watching."""
    if not _Cache.announced and sys.stderr.isatty():
        print("busenv: compiling the rules for this machine (up to a minute, once)",
              file=sys.stderr, flush=True)  # fmt: skip
    _Cache.announced = True


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function of the core with numba: no Python objects, no GIL, cached on disk."""
    return _compile(function, nogil=True)


def exclusive(function: Callable[..., Any]) -> Any:
    """As `kernel`, but it keeps the GIL: no two Python threads are inside of such at once."""
    return _compile(function, nogil=False)


def fast_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, but sums of floats may be taken in any order, several terms at once."""
    return _compile(function, nogil=True, fastmath={"reassoc", "contract", "nsz"})


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    if not _Locator.looked:
        _Locator.folder, _Locator.looked = _make_folder(), True
    dispatcher = njit(**options)(function)
    if _Locator.folder is None:
        announce()
    else:
        dispatcher._cache = _Cache(function)
    return dispatcher
