"""Play against agents in the browser, in a notebook (`play`) and through MCP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from busenv.error_text import missing_extra
from busenv.game.board import Board
from busenv.game.rules import Rules

if TYPE_CHECKING:
    from IPython.display import IFrame


def play(
    *seats: str,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
    first_player: int | None = None,
    seed: int | None = None,
    folder: str | Path = "runs/play",
    height: int = 900,
) -> IFrame:
    """Play in a notebook cell: shows the page of `busenv play`, served by this machine, in a frame.

    seats: 3 to 5 of "me", "friend" (joins through a link) and agent specs, as in
        `play("me", "uct:1000", "greedy")`; without seats the page offers a choice.
    folder: where games are saved and resumed from.
    height: height of the frame, in pixels.

    The other arguments and errors are those of `busenv.Game`. Requires the extras `play` and
    `notebooks`; raises ModuleNotFoundError with the install command if one is missing.
    """
    try:
        from busenv.play.notebook import show_page
    except ModuleNotFoundError as error:
        raise missing_extra(error, "play,notebooks", "busenv.play") from error
    return show_page(seats, rules, board, first_player, seed, folder, height)
