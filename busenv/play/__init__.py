"""Play against agents in the browser, in a notebook (`play`) and through MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from busenv.error_text import missing_extra

if TYPE_CHECKING:
    from busenv.play.notebook import play

__all__ = ["play"]


def __getattr__(name: str) -> Any:
    """Import `play`, which needs the extras `play` and `notebooks`, when it is first used."""
    if name != "play":
        raise AttributeError(f"module 'busenv.play' has no attribute {name!r}")
    try:
        from busenv.play.notebook import play
    except ModuleNotFoundError as error:
        raise missing_extra(error, "play,notebooks", "busenv.play") from error
    return play
