"""Compilation of kernels, with machine code cached on disk.

numba keys a cached function on the file that holds it, so that an edit in a module that it calls
is not detected. Here the key covers the function's module and every module of busenv that it
imports, directly or through others.

Loading a cached file runs it, and numba does not verify its files. Here each file begins with a
checksum, and one that is damaged or that another user can write is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import __version__ as NUMBA  # noqa: N812 - a constant
from numba import njit
from numba.core import caching, compiler, config
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

if config.DISABLE_JIT:
    warnings.warn(  # no error: the rules alone can run as Python
        "busenv plays no games without compiled kernels: unset NUMBA_DISABLE_JIT",
        RuntimeWarning,
        stacklevel=2,
    )

CORE = Path(__file__).resolve().parent
DIGEST = 32  # bytes of a checksum
IMPORT = re.compile(r"^from (busenv[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def _imports_of(source: Path) -> frozenset[Path]:
    """The modules of busenv that a module imports with `from busenv.X import Y`."""
    modules = set()
    for package, names in IMPORT.findall(source.read_text(encoding="utf-8")):
        path = CORE.parents[1].joinpath(*package.split("."))
        modules |= {path / f"{name}.py" for name in re.findall(r"\w+", names)}
        modules.add(path.with_suffix(".py"))
    return frozenset(filter(Path.is_file, modules))


@cache
def sources_digest(source: Path) -> bytes:
    """Digest of a module and of all modules of busenv that it imports."""
    modules, queue = {source}, [source]
    while queue:
        new = _imports_of(queue.pop()) - modules
        modules |= new
        queue += new
    return _digest(b"".join(_digest(path.read_bytes()) for path in sorted(modules)))


def cache_folders() -> list[Path]:
    """Folders of machine code: in NUMBA_CACHE_DIR, in the package, and in the user's cache.

    Code is read from any of them, so that a filled cache of a read-only installation is used, and
    written to the first that can be written.
    """
    install = "busenv_" + _digest(str(CORE).encode()).hex()[:16]
    user = Path(AppDirs(appname="busenv", appauthor=False).user_cache_dir) / install
    configured = [Path(config.CACHE_DIR) / install] if config.CACHE_DIR else []
    return [*configured, CORE / "__pycache__" / "kernels", user]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


def _is_private(status: os.stat_result) -> bool:
    """Return whether only this user and root can write a file; True where files have no owner."""
    if not hasattr(os, "geteuid"):
        return True
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid in (os.geteuid(), 0) and not others_write


class KernelCache(caching.FunctionCache):
    """numba's cache of a function, with one checksummed file for each compiled signature.

    A missing, damaged or non-private file is a cache miss. If no folder can be written, the code is
    not cached.
    """

    announced = False

    def __init__(self, function: Callable[..., Any], folders: list[Path]) -> None:
        source = Path(function.__code__.co_filename).resolve()
        name = f"{source.parent.name}.{source.stem}.{function.__qualname__}"
        self._function = name, sources_digest(source)
        self._py_func, self._name, self._folders = function, repr(function), folders
        self._cache_path = str(folders[0])
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code of a signature; None for a cache miss."""
        target_context.refresh()
        key = self._index_key(sig, target_context.codegen())
        for folder in self._folders:
            with contextlib.suppress(Exception):  # whatever a missing or damaged file raises
                data = self._read(folder / self._file_name(key), key)
                return compiler.CompileResult._rebuild(target_context, *data)
        if not KernelCache.announced and sys.stderr.isatty():
            print("busenv: compiling the rules for this machine (up to a minute, once)",
                  file=sys.stderr, flush=True)  # fmt: skip
        KernelCache.announced = True
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the machine code of a signature in the first folder that can be written."""
        if data.library.has_dynamic_globals:
            return
        key = self._index_key(sig, data.codegen)
        content = dumps(((*self._function, key), data._reduce()))
        for folder in self._folders:
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder) as draft:
                    path = Path(draft, "code")
                    path.touch(mode=0o644)
                    path.write_bytes(_digest(content) + content)
                    path.replace(folder / self._file_name(key))
                return

    def _file_name(self, key: Any) -> str:
        """The name of a signature's file, which the code of an edited source replaces."""
        signature, target, (_, closure) = key
        variant = repr((NUMBA, sys.version_info[:2], signature, target, closure)).encode()
        return f"{re.sub('[<>]', '', self._function[0])}.{_digest(variant).hex()[:16]}.nbc"

    def _read(self, path: Path, key: Any) -> Any:
        with path.open("rb") as file:
            content = file.read() if _is_private(os.fstat(file.fileno())) else b""
        if content[:DIGEST] != _digest(content[DIGEST:]):
            raise ValueError(f"{path} is damaged, or another user can write it")
        owner, data = pickle.loads(content[DIGEST:])
        if owner != (*self._function, key):
            raise ValueError(f"{path} holds the code of other sources")
        return data


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
    dispatcher = njit(**options)(function)
    dispatcher._cache = KernelCache(function, cache_folders())
    return dispatcher
