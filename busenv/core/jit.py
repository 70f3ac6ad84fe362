"""Compilation of kernels, with machine code cached on disk by the content of the sources.

numba keys a cached function on the file that holds it, so that an edit in a module that it calls
is not detected. Here the cache folder is named after the content of the whole core: any edit leads
to an empty folder. File names of kernels outside of the core also contain a hash of their module
and of every module of the package that it imports, directly or through others.

Loading a cached file runs it. numba does not verify its cache files: a damaged file makes every
call raise or crash, and a full disk makes the first call raise. Here each file begins with a
checksum, a damaged file is compiled again, and folders and files that another user can write are
not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import __version__ as NUMBA  # noqa: N812 - a constant
from numba import njit
from numba.core import caching, compiler, config
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

CORE = Path(__file__).resolve().parent
DIGEST = 32  # bytes of a checksum
IMPORT = re.compile(r"^from (busenv[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def source_fingerprint(folder: Path) -> str:
    """SHA-256 (first 16 hex digits) of all Python files of a folder and their names."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix().encode()
        digest.update(name + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def _imports_of(source: Path) -> frozenset[Path]:
    """The modules outside of the core that a module imports with `from busenv.X import Y`."""
    modules = set()
    for package, names in IMPORT.findall(source.read_text(encoding="utf-8")):
        path = CORE.parents[1].joinpath(*package.split("."))
        modules |= {path / f"{name}.py" for name in re.findall(r"\w+", names)}
        modules.add(path.with_suffix(".py"))
    return frozenset(path for path in modules if path.is_file() and CORE not in path.parents)


@cache
def _fingerprint_with_imports(source: Path) -> str:
    """SHA-256 (first 16 hex digits) of a module and of all that it imports outside of the core."""
    modules, queue = {source}, [source]
    while queue:
        new = _imports_of(queue.pop()) - modules
        modules |= new
        queue += new
    digest = hashlib.sha256()
    for path in sorted(modules):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _is_private(status: os.stat_result) -> bool:
    """Return whether only this user and root can write a file; True where files have no owner."""
    if not hasattr(os, "geteuid"):
        return True
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid in (os.geteuid(), 0) and not others_write


@cache
def _cache_folder() -> Path | None:
    """The first private, writable folder: in NUMBA_CACHE_DIR, the package, or the user's cache.

    Creates it, and removes those of other versions of the core. None if all candidates fail.
    """
    install = "busenv_" + hashlib.sha256(str(CORE).encode()).hexdigest()[:16]
    user = Path(AppDirs(appname="busenv", appauthor=False).user_cache_dir) / install
    configured = [Path(config.CACHE_DIR) / install] if config.CACHE_DIR else []
    for parent in (*configured, CORE / "__pycache__", user):
        folder = parent / f"core-{source_fingerprint(CORE)}"
        try:
            new = not folder.exists()
            parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o755, exist_ok=True)
            status = folder.lstat()
            (folder / "writable").touch(mode=0o644)
        except OSError:
            continue
        if not (stat.S_ISDIR(status.st_mode) and _is_private(status)):
            continue
        if new:
            for old in parent.glob("core-*"):
                if old != folder:
                    shutil.rmtree(old, ignore_errors=True)
        return folder
    return None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


class KernelCache(caching.FunctionCache):
    """numba's cache of a function, with one checksummed file for each compiled signature.

    A missing, damaged or non-private file is a cache miss. If a file cannot be written, the cache
    is disabled.
    """

    announced = False

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        code = function.__code__
        source = Path(code.co_filename).resolve()
        in_core = CORE in source.parents
        package = source.parent.name if in_core else _fingerprint_with_imports(source)
        name = function.__qualname__.replace("<", "").replace(">", "")
        python = "".join(map(str, sys.version_info[:2]))
        self._base = f"{source.stem}.{name}-{package}-{code.co_firstlineno}.py{python}"
        self._py_func, self._name, self._folder = function, repr(function), folder
        self._cache_path = str(folder)
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code of a signature; None for a cache miss."""
        target_context.refresh()
        compiled = None
        with contextlib.suppress(Exception):  # whatever a damaged file raises
            data = self._read(self._index_key(sig, target_context.codegen()))
            if data is not None:
                compiled = compiler.CompileResult._rebuild(target_context, *data)
        if compiled is None:
            announce()
        return compiled

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the machine code of a signature; a full or vanished disk disables the cache."""
        if not self._enabled or data.library.has_dynamic_globals:
            return
        with contextlib.suppress(OSError):
            self._write(self._index_key(sig, data.codegen), data._reduce())
            return
        self.disable()

    def _path(self, key: Any) -> Path:
        return self._folder / f"{self._base}.{_digest(repr((NUMBA, key)).encode()).hex()[:16]}.nbc"

    def _read(self, key: Any) -> Any:
        with self._path(key).open("rb") as file:
            content = file.read() if _is_private(os.fstat(file.fileno())) else b""
        pickled = content[DIGEST:]
        if content[:DIGEST] != _digest(pickled):
            return None
        owner, data = pickle.loads(pickled)
        return data if owner == (self._base, NUMBA, key) else None

    def _write(self, key: Any, data: Any) -> None:
        """Write a file atomically, readable by this user only."""
        pickled = dumps(((self._base, NUMBA, key), data))
        with tempfile.TemporaryDirectory(dir=self._folder) as draft:
            path = Path(draft, "code")
            path.touch(mode=0o600)
            path.write_bytes(_digest(pickled) + pickled)
            path.replace(self._path(key))


def announce() -> None:
    """Print once that code is being compiled, if standard error is a terminal."""
    if not KernelCache.announced and sys.stderr.isatty():
        print("busenv: compiling the rules for this machine (up to a minute, once)",
              file=sys.stderr, flush=True)  # fmt: skip
    KernelCache.announced = True


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with numba: no Python objects, no GIL, cached on disk."""
    return _compile(function, nogil=True)


def gil_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel`, but hold the GIL: at most one Python thread is in such a function."""
    return _compile(function, nogil=False)


def fast_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel`, but let sums of floats be reordered and vectorised."""
    return _compile(function, nogil=True, fastmath={"reassoc", "contract", "nsz"})


def inlined(function: Callable[..., Any]) -> Any:
    """Compile the function as part of each kernel that calls it.

    Compiling a function between two large kernels separately would repeat the optimisation of
    everything that it calls.
    """
    return njit(nogil=True, inline="always")(function)


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    dispatcher, folder = njit(**options)(function), _cache_folder()
    if folder is None:
        announce()
    else:
        dispatcher._cache = KernelCache(function, folder)
    return dispatcher
