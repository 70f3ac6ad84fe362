"""The drawing in pixels, and in a window. Needs the extra `render`."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from busenv.error_text import missing_extra
from busenv.render.layout import HEIGHT, WIDTH


def svg_to_png(svg_text: str) -> bytes:
    """A drawing (`busenv.render.svg.draw_svg`) as a PNG file of 1200 x 800 pixels.

    The one font is pygame's own, so the picture is the same on every machine. Raises as
    `load_pygame`.
    """
    pygame = load_pygame()
    import resvg_py

    font = Path(str(pygame.__file__)).parent / pygame.font.get_default_font()
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg_text,
            width=WIDTH,
            height=HEIGHT,
            skip_system_fonts=True,
            font_files=[str(font)],
            sans_serif_family="FreeSans",
        )
    )


def draw_pixels(svg_text: str) -> np.ndarray:
    """A drawing as pixels: uint8, shape (800, 1200, 3), red, green, blue; else as `svg_to_png`."""
    pygame = load_pygame()
    surface = pygame.image.load(io.BytesIO(svg_to_png(svg_text)), "drawing.png")
    return np.ascontiguousarray(pygame.surfarray.array3d(surface).transpose(1, 0, 2))


class DisplayWindow:
    """A window that shows pixels; on a machine without a screen it shows nothing."""

    def __init__(self) -> None:
        self._pygame = load_pygame()
        screens = ("DISPLAY", "WAYLAND_DISPLAY")
        if sys.platform == "linux" and not any(os.environ.get(name) for name in screens):
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        self._pygame.display.init()
        self._screen = self._pygame.display.set_mode((WIDTH, HEIGHT))
        self._pygame.display.set_caption("Bus")

    def show(self, pixels: np.ndarray) -> None:
        """Show a picture of shape (800, 1200, 3)."""
        self._pygame.event.pump()
        self._pygame.surfarray.blit_array(self._screen, pixels.transpose(1, 0, 2))
        self._pygame.display.flip()

    def close(self) -> None:
        """Take the window away."""
        self._pygame.display.quit()


def load_pygame() -> ModuleType:
    """pygame. Raises ModuleNotFoundError, saying what to install, if it or resvg is missing."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
        import resvg_py  # noqa: F401 - only whether it is there
    except ModuleNotFoundError as error:
        raise missing_extra(error, "render", "drawing pixels") from error
    return pygame
