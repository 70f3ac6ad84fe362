"""Render modes of the environments: "ansi", "rgb_array" and "human"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from busenv.render.game_drawing import game_svg, game_text
from busenv.render.raster import DisplayWindow, draw_pixels, load_pygame

if TYPE_CHECKING:
    from busenv.batch.batch import Batch
    from busenv.game.game import Game

RENDER_MODES = ["ansi", "rgb_array", "human"]
BATCH_RENDER_MODES = ["rgb_array"]  # of environments with many games
RENDER_FPS = 4  # speed of a recorded environment, in frames per second

RENDERED = 4  # games of a batch that its environments draw


class Renderer:
    """Renders games in one mode; None renders nothing.

    "ansi": the position as text. "rgb_array": pixels, uint8 (800, 1200, 3). "human": a window,
    updated after every step, invisible on a machine without a screen. The last two require the
    extra `render`. Raises ValueError for a mode that is not in `allowed`, ModuleNotFoundError
    without the extra.
    """

    def __init__(self, mode: str | None, allowed: list[str] = RENDER_MODES) -> None:
        if mode is not None and mode not in allowed:
            raise ValueError(f"render_mode is {mode!r}; allowed: None or one of {allowed}")
        self.mode = mode
        if mode in ("rgb_array", "human"):
            load_pygame()  # raises now if the extra is missing
        self._window: DisplayWindow | None = None

    def render(self, game: Game) -> str | np.ndarray | None:
        """Return the text or pixels of a game; "human" shows the window and returns None."""
        if self.mode == "ansi":
            return game_text(game)
        if self.mode == "rgb_array":
            return draw_pixels(game_svg(game))
        if self.mode == "human":
            self._window = self._window or DisplayWindow()
            self._window.show(draw_pixels(game_svg(game)))
        return None

    def render_batch(self, batch: Batch) -> list[Any]:
        """Render the first games of a batch, at most RENDERED; none before its first reset."""
        number = min(RENDERED, len(batch.games)) if batch.has_started else 0
        return [self.render(batch.game(i)) for i in range(number)]

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None
