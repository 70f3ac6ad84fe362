"""Notebooks are kept with their outputs: `python -m tests.support.notebooks` runs all of them anew.

What would differ from run to run without a reason (times, ids) is not kept.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

from busenv.io import write_whole

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"


def run_notebook(notebook: nbformat.NotebookNode, place: Path, temporary: Path) -> None:
    """Run all cells in a clean kernel, in one folder, with another one for temporary files.

    Raises nbclient.exceptions.CellExecutionError when a cell fails.
    """
    environment = {**os.environ, "IPYTHONDIR": str(temporary / "ipython")}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    environment.pop("PYTHONPATH", None)
    environment.pop("MPLBACKEND", None)  # so that pictures are shown in the notebook
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(place)}},
        record_timing=False,
    )
    client.execute(env=environment)


def tidy(notebook: nbformat.NotebookNode) -> None:
    """Drop what is of one run only, and make the pictures small."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", []):
            output.get("metadata", {}).clear()
            output.pop("transient", None)
            data = output.get("data", {})
            if "text/plain" in data:
                data["text/plain"] = re.sub(r" at 0x[0-9a-f]+", "", data["text/plain"])
            if "image/png" in data:
                data["image/png"] = fewer_colours(data["image/png"])


def fewer_colours(picture: str) -> str:
    """A PNG in base64 with a palette of 64 colours: a third of the size, and looks the same."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        if image.mode == "P":  # it has been done
            return picture
        plain = image.convert("RGB").quantize(64, dither=Image.Dither.NONE)
        plain.save(small, "png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def main() -> None:
    """Run the notebooks named on the command line, or all, and write them with their outputs."""
    for path in map(Path, sys.argv[1:] or sorted(FOLDER.glob("*.ipynb"))):
        notebook = nbformat.read(path, nbformat.NO_CONVERT)
        with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as temporary:
            run_notebook(notebook, Path(place), Path(temporary))
        tidy(notebook)
        write_whole(path, nbformat.writes(notebook) + "\n")
        print(f"{path}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
