"""Drawings as an animated GIF; requires the extra `render`."""

from __future__ import annotations

import io
from collections.abc import Sequence

from busenv.error_text import missing_extra
from busenv.render.raster import svg_to_png

SIZE = (720, 480)  # pixels
COLOURS = 48  # a drawing has few; more only lengthen the file
DURATION, LAST_DURATION = 120, 3000  # milliseconds


def drawings_to_gif(drawings: Sequence[str]) -> bytes:
    """Convert drawings (`busenv.render.svg.draw_svg`) to an animated GIF of 720 x 480 pixels.

    Each drawing is shown for 0.12 seconds, the last one for 3 seconds. All use the palette of
    the last one.
    Raises ModuleNotFoundError with the install command without the extra `render`.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise missing_extra(error, "render", "an animation") from error

    def pixels(drawing: str) -> Image.Image:
        picture = Image.open(io.BytesIO(svg_to_png(drawing))).convert("RGB")
        return picture.resize(SIZE, Image.Resampling.LANCZOS)

    palette = pixels(drawings[-1]).quantize(COLOURS)
    frames = [
        pixels(drawing).quantize(palette=palette, dither=Image.Dither.NONE) for drawing in drawings
    ]
    file = io.BytesIO()
    frames[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[DURATION] * (len(frames) - 1) + [LAST_DURATION],
        loop=0,
        optimize=True,  # unchanged pixels become transparent: the file is a tenth as long
    )
    return file.getvalue()
