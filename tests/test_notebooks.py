"""The notebooks run in a clean kernel and show what they promise; they are kept without outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
INSTALL = "pip install -c constraints.txt -e '.[notebooks]'"


class Shown(NamedTuple):
    """What a notebook is to show: pictures, drawn positions, and words."""

    pictures: int
    drawings: int
    words: tuple[str, ...]


NOTEBOOKS = {
    "1_game_and_environment": Shown(3, 2, ("is illegal for seat", "over (markers), winner seat")),
    "2_benchmarking": Shown(4, 1, ("160 games in blocks of 16", "uct:30")),
    "3_training": Shown(3, 1, ("decisions learned from", "place marker on")),
    "4_what_agents_do": Shown(6, 0, ("of 18,000 games", "**planner** stops time in")),
    "5_your_own_agent_and_reward": Shown(2, 0, ("driver", "3 players, capstone-2024")),
}


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", nbformat.NO_CONVERT)


def test_every_notebook_is_listed() -> None:
    assert sorted(path.stem for path in (ROOT / "notebooks").iterdir()) == sorted(NOTEBOOKS)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in NOTEBOOKS:
        assert f"(notebooks/{name}.ipynb)" in readme


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_bare_and_tells_how_to_run_it(name: str) -> None:
    notebook = read(name)
    assert notebook.nbformat == 4
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert not cell.metadata
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    title, _, about = first.source.partition("\n")
    assert title.startswith("# ")
    assert INSTALL in about
    assert "all cells; it takes" in about


def test_the_first_notebook_has_ten_cells_of_code() -> None:
    assert sum(c.cell_type == "code" for c in read("1_game_and_environment").cells) == 10


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_it_promises(name: str, tmp_path: Path) -> None:
    notebook, place, temporary = read(name), tmp_path / "here", tmp_path / "temporary"
    place.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path / "ipython")}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    environment.pop("MPLBACKEND", None)  # so that pictures are shown in the notebook
    resources = {"metadata": {"path": str(place)}}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources)
    client.execute(env=environment)
    assert [*place.iterdir()] == []
    assert [*temporary.glob("busenv-*")] == []

    outputs = [one for c in notebook.cells if c.cell_type == "code" for one in c.outputs]
    streams = [one for one in outputs if one.output_type == "stream"]
    assert [one.text for one in streams if one.name == "stderr"] == []  # no warnings
    data = [one.data for one in outputs if one.output_type != "stream"]
    assert sum("image/png" in one for one in data) == NOTEBOOKS[name].pictures
    assert sum("image/svg+xml" in one for one in data) == NOTEBOOKS[name].drawings
    texts = [one.text for one in streams] + [text for one in data for text in one.values()]
    for words in NOTEBOOKS[name].words:
        assert any(words in text for text in texts), words
