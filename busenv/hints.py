"""What error messages add: the name that may have been meant, the extra that is to be installed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from busenv.quoting import cut


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """ "; did you mean 'NAME'?" for the closest allowed name; "" when none is close."""
    close = difflib.get_close_matches(cut(word), list(allowed), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def install(*extras: str) -> str:
    """How to install extras of busenv, which is not on PyPI."""
    return f"In a clone of busenv: pip install -e '.[{','.join(extras)}]'"


def missing_extra(error: ModuleNotFoundError, extra: str, what: str) -> ModuleNotFoundError:
    """The error for `what` when a package of one of busenv's extras is missing."""
    return ModuleNotFoundError(
        f"{what} needs {error.name}, which is not installed. {install(extra)}", name=error.name
    )
