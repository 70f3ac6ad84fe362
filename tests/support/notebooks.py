"""`python -m tests.support.notebooks` runs the notebooks and stores them with their outputs.

Times, ids and other values that differ between runs are removed.
"""

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
from tests.support.pages import ROOT

FOLDER = ROOT / "notebooks"


def run_notebook(notebook: nbformat.NotebookNode, current: Path, temporary: Path) -> None:
    """Run all cells in a new kernel, in the folder `current`, with a folder for temporary files.

    Raises nbclient.exceptions.CellExecutionError when a cell fails.
    """
    environment = {**os.environ, "IPYTHONDIR": str(temporary / "ipython")}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    environment.pop("PYTHONPATH", None)
    environment.pop("MPLBACKEND", None)  # otherwise no pictures are displayed
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(current)}},
        record_timing=False,
    )
    client.execute(env=environment)


def tidy(notebook: nbformat.NotebookNode) -> None:
    """Remove metadata and ids of a run, and compress the pictures."""
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
    """A PNG in base64 with a palette of 64 colours: a third of the size."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        if image.mode == "P":  # converted before
            return picture
        plain = image.convert("RGB").quantize(64, dither=Image.Dither.NONE)
        plain.save(small, "png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def main() -> None:
    """Run the notebooks named on the command line, or all, and store them with their outputs."""
    for path in map(Path, sys.argv[1:] or sorted(FOLDER.glob("*.ipynb"))):
        notebook = nbformat.read(path, nbformat.NO_CONVERT)
        with tempfile.TemporaryDirectory() as current, tempfile.TemporaryDirectory() as temporary:
            run_notebook(notebook, Path(current), Path(temporary))
        tidy(notebook)
        write_whole(path, nbformat.writes(notebook) + "\n")
        print(f"{path}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
