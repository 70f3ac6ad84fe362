"""Compilation of kernels, with machine code cached on disk.

numba keys a cached function on the file that holds it, so that an edit in a module that it calls
is not detected. Here the checksum of a cached file covers the function's module and every module of
busenv that it imports, directly or through others.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, compiler, config
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

if config.DISABLE_JIT:
    warnings.warn("busenv needs compiled kernels: unset NUMBA_DISABLE_JIT", stacklevel=2)

CORE = Path(__file__).resolve().parent
DIGEST = 32  # bytes of a checksum
IMPORT = re.compile(r"^from (busenv[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def imported_modules(source: Path) -> list[Path]:
    """The modules of busenv that a module imports with `from busenv.X import Y`."""
    modules = []
    for package, names in IMPORT.findall(source.read_text(encoding="utf-8")):
        path = CORE.parents[1].joinpath(*package.split("."))
        modules += [path.with_suffix(".py"), *(path / f"{n}.py" for n in re.findall(r"\w+", names))]
    return [*filter(Path.is_file, modules)]


@cache
def sources_digest(source: Path) -> bytes:
    """Digest of a module and of all modules of busenv that it imports."""
    modules = [source]
    for module in modules:  # which grows
        modules += [one for one in imported_modules(module) if one not in modules]
    return _digest(b"".join(_digest(path.read_bytes()) for path in sorted({*modules})))


def cache_folders() -> list[Path]:
    """Folders of machine code: in NUMBA_CACHE_DIR, in the package, and in the user's cache.

    Code is read from any of them, also in a read-only installation, and written to the first that
    can be written.
    """
    user = Path(AppDirs(appname="busenv", appauthor=False).user_cache_dir)
    configured = [Path(config.CACHE_DIR, "busenv")] if config.CACHE_DIR else []
    return [*configured, CORE / "__pycache__" / "kernels", user]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


class KernelCache(caching.FunctionCache):
    """numba's cache of a function: a file for each signature; damaged ones count as missing."""

    announced = False

    def __init__(self, function: Callable[..., Any], folders: list[Path]) -> None:
        source = Path(function.__code__.co_filename).resolve()
        self._prefix = f"{source.parent.name}.{source.stem}.{function.__qualname__}"
        self._sources = sources_digest(source)
        self._py_func, self._name, self._folders = function, repr(function), folders
        self._cache_path = str(folders[0])
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code of a signature; None for a cache miss."""
        target_context.refresh()
        name = self._file_name(sig, target_context.codegen())
        for folder in self._folders:
            with contextlib.suppress(Exception):  # whatever a missing or damaged file raises
                content = (folder / name).read_bytes()
                if content[:DIGEST] == _digest(self._sources + content[DIGEST:]):
                    data = pickle.loads(content[DIGEST:])
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
        name, content = self._file_name(sig, data.codegen), dumps(data._reduce())
        for folder in self._folders:
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder) as draft:
                    path = Path(draft, name)
                    path.write_bytes(_digest(self._sources + content) + content)
                    path.replace(folder / name)
                return

    def _file_name(self, sig: Any, codegen: Any) -> str:
        """The name of a signature's file, which the code of an edited source replaces."""
        signature, target, (_, closure) = self._index_key(sig, codegen)
        checked = bool(config.BOUNDSCHECK)  # numba's key ignores it
        versions = numba.__version__, sys.version_info[:2]
        variant = repr((versions, checked, signature, target, closure))
        return f"{re.sub('[<>]', '', self._prefix)}.{_digest(variant.encode()).hex()[:16]}.nbc"


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function with numba: no Python objects, no GIL, cached on disk.

    Without `fastmath`, numba would take that of the kernel that is the first to call the function,
    so that results would depend on the order of calls.
    """
    dispatcher = numba.njit(**{"nogil": True, "fastmath": False, **options})(function)
    dispatcher._cache = KernelCache(function, cache_folders())
    return dispatcher


gil_kernel = partial(kernel, nogil=False)  # at most one Python thread is in such a function
fast_kernel = partial(kernel, fastmath={"reassoc", "contract", "nsz"})  # may reorder sums of floats
# Compiled within each kernel that calls it: its own compilation would repeat what it calls.
inlined = numba.njit(nogil=True, inline="always")
