"""The notebooks are kept with their outputs, small; they run anew and show what they promise."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from tests.support.notebooks import FOLDER, ROOT, run_notebook, tidy

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
    "4_what_agents_do": Shown(6, 0, ("of 4,830 games", "**uct@2:100** chose the clock")),
    "5_your_own_agent_and_reward": Shown(2, 0, ("driver", "3 players, capstone-2024")),
}


class Fewer(NamedTuple):
    """What is changed in a notebook for a shorter run, and then in the words that it shows."""

    code: tuple[str, str]
    words: tuple[str, str]


FEWER = {
    "4_what_agents_do": Fewer(
        (
            '{"greedy": 1000, "net:city-2": 400, "uct@2:100": 150, "az@2:city-3:100": 60}',
            '{"greedy": 200, "net:city-2": 80, "uct@2:100": 15, "az@2:city-3:16": 15}',
        ),
        ("4,830", "930"),
    ),
}


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", nbformat.NO_CONVERT)


def check_outputs(name: str, notebook: nbformat.NotebookNode, few: bool = False) -> None:
    """The notebook shows what it promises, no warning, no error. few: games, by FEWER."""
    outputs = [one for c in notebook.cells if c.cell_type == "code" for one in c.outputs]
    streams = [one for one in outputs if one.output_type == "stream"]
    assert [one.text for one in streams if one.name == "stderr"] == []
    assert [one for one in outputs if one.output_type == "error"] == []
    data = [one.data for one in outputs if one.output_type != "stream"]
    assert sum("image/png" in one for one in data) == NOTEBOOKS[name].pictures
    assert sum("image/svg+xml" in one for one in data) == NOTEBOOKS[name].drawings
    texts = [one.text for one in streams] + [text for one in data for text in one.values()]
    for words in NOTEBOOKS[name].words:
        wanted = words.replace(*FEWER[name].words) if few else words
        assert any(wanted in text for text in texts), wanted


def test_every_notebook_is_listed() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(NOTEBOOKS)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in NOTEBOOKS:
        assert f"(notebooks/{name}.ipynb)" in readme


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_as_one_run_left_it(name: str) -> None:
    """All cells in order, with what they showed, and nothing that only that run could have."""
    notebook = read(name)
    nbformat.validate(notebook)
    counts = [c.execution_count for c in notebook.cells if c.cell_type == "code"]
    assert counts == [*range(1, len(counts) + 1)]
    check_outputs(name, notebook)
    kept = nbformat.writes(notebook)
    for volatile in ("/tmp/", "/home/", " at 0x", "iopub"):
        assert volatile not in kept
    tidy(notebook)
    assert nbformat.writes(notebook) == kept


def test_the_notebooks_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_000_000


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_tells_how_to_run_it(name: str) -> None:
    first = read(name).cells[0]
    assert first.cell_type == "markdown"
    title, _, about = first.source.partition("\n")
    assert title.startswith("# ")
    assert INSTALL in about
    assert "all cells; it takes" in about


def test_the_first_notebook_has_ten_cells_of_code() -> None:
    assert sum(c.cell_type == "code" for c in read("1_game_and_environment").cells) == 10


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_it_promises(name: str, tmp_path: Path) -> None:
    notebook = read(name)
    if name in FEWER:
        (cell,) = (c for c in notebook.cells if FEWER[name].code[0] in c.source)
        cell.source = cell.source.replace(*FEWER[name].code)
    check_run(name, notebook, tmp_path, few=name in FEWER)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEWER)
def test_a_long_notebook_runs_as_it_is_kept(name: str, tmp_path: Path) -> None:
    check_run(name, read(name), tmp_path)


def check_run(name: str, notebook: nbformat.NotebookNode, folder: Path, few: bool = False) -> None:
    place, temporary = folder / "here", folder / "temporary"
    place.mkdir()
    temporary.mkdir()
    run_notebook(notebook, place, temporary)
    assert [*place.iterdir()] == []
    assert [*temporary.glob("busenv-*")] == []
    check_outputs(name, notebook, few)
