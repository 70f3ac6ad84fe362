"""The extra of this package that installs a missing module."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata

RENAMED = {"pygame": "pygame-ce", "PIL": "pillow"}  # modules whose package has another name


def missing_extras(module: str | None, needed: Iterable[str] = ()) -> list[str]:
    """Return the extras to install when a module is missing: its own, and those `needed` anyway.

    Empty when no extra provides the module.
    """
    package = (module or "").partition(".")[0]
    package = RENAMED.get(package, package).replace("_", "-")
    own = [extra for name, extra in _packages() if name == package]
    if not own:
        return []
    extras = [*dict.fromkeys(needed)]
    return extras if {*extras} & {*own} else [*extras, own[0]]


def _packages() -> list[tuple[str, str]]:
    """Return (package, extra) for every package of an extra, in the order of pyproject.toml."""
    form = re.compile(r"""([\w.-]+).*\bextra == ["']([\w-]+)["']""")
    matches = map(form.match, metadata.requires("busenv") or [])
    packages = [(match[1].lower().replace("_", "-"), match[2]) for match in matches if match]
    return [(name, extra) for name, extra in packages if name != "busenv"]  # extras of extras
