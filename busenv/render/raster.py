"""The drawing as pixels, and in a window; requires the extra `render`."""

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
    """Convert a drawing (`busenv.render.svg.draw_svg`) to a PNG file of 1200 x 800 pixels.

    The only font is pygame's, so the picture is the same on every machine. Raises
    ModuleNotFoundError as `load_pygame`.
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
    """Convert a drawing to pixels: uint8, (800, 1200, 3), RGB; raises as `svg_to_png`."""
    pygame = load_pygame()
    surface = pygame.image.load(io.BytesIO(svg_to_png(svg_text)), "drawing.png")
    return np.ascontiguousarray(pygame.surfarray.array3d(surface).transpose(1, 0, 2))


class DisplayWindow:
    """A window that shows pixels; invisible on a machine without a screen."""

    def __init__(self) -> None:
        self._pygame = load_pygame()
        self._open()

    def _open(self) -> None:
        screens = ("DISPLAY", "WAYLAND_DISPLAY")
        if sys.platform == "linux" and not any(os.environ.get(name) for name in screens):
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        self._pygame.display.init()
        self._pygame.display.set_mode((WIDTH, HEIGHT))
        self._pygame.display.set_caption("Bus")

    def show(self, pixels: np.ndarray) -> None:
        """Show pixels: uint8, (800, 1200, 3)."""
        if not self._pygame.display.get_init():  # another environment has closed the display
            self._open()
        self._pygame.event.pump()
        screen = self._pygame.display.get_surface()  # the one of all windows of this process
        self._pygame.surfarray.blit_array(screen, pixels.transpose(1, 0, 2))
        self._pygame.display.flip()

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()


def load_pygame() -> ModuleType:
    """Import pygame; raises ModuleNotFoundError with the install command without it or resvg."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
        import resvg_py  # noqa: F401 - only to check that it is installed
    except ModuleNotFoundError as error:
        raise missing_extra(error, "render", "drawing pixels") from error
    return pygame
