"""Games played in the browser, from Python: found where they are installed, as agents are.

The rules know no server; a package that brings one (ours is `busenv.experiments`) names a function
under the entry point "play" of the group "busenv.play".
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from busenv.error_text import missing_extra
from busenv.game.board import Board
from busenv.game.rules import Rules


def play(
    *seats: str,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
    first_player: int | None = None,
    seed: int | None = None,
    folder: str | Path = "runs/play",
    height: int = 900,
) -> Any:
    """Play in a cell of a notebook that runs on this machine: the page of `busenv play` in a frame.

    seats: 3 to 5 of "me", "friend" (who gets a link) and specs of agents, such as
        `busenv.play("me", "uct:1000", "greedy")`; none: a page to choose on.
    folder: where games are kept, and gone on with. height: of the frame, in pixels.
    The other arguments, and ValueErrors, are those of `busenv.Game`. Needs the extra `play`;
    ModuleNotFoundError says what to install.
    """
    for found in entry_points(group="busenv.play", name="play"):
        try:
            return found.load()(seats, rules, board, first_player, seed, folder, height)
        except ModuleNotFoundError as error:
            raise missing_extra(error, "play", "busenv.play") from error
    raise ModuleNotFoundError("no package that serves games is installed")
