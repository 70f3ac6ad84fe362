"""Which of the project's extras a missing package comes with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata

RENAMED = {"pygame": "pygame-ce"}  # modules that are not called as their package is


def missing_extras(module: str | None, needed: Iterable[str] = ()) -> list[str]:
    """The extras to install where a module is missing: its own, and those `needed` anyway.

    Empty when no extra has the module: then it is not an extra that is missing.
    """
    package = (module or "").partition(".")[0]
    wanted = RENAMED.get(package, package).replace("_", "-")
    own = [extra for name, extra in _packages() if name == wanted]
    if not own:
        return []
    named = [*dict.fromkeys(needed)]
    return named if {*named} & {*own} else [*named, own[0]]


def _packages() -> list[tuple[str, str]]:
    """The packages of all extras, as (package, extra), in the order of pyproject.toml."""
    form = re.compile(r"""([\w.-]+).*\bextra == ["']([\w-]+)["']""")
    found = map(form.match, metadata.requires("busenv") or [])
    packages = [(match[1].lower().replace("_", "-"), match[2]) for match in found if match]
    return [(name, extra) for name, extra in packages if name != "busenv"]  # extras of extras
