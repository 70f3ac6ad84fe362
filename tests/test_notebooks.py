"""The notebooks are stored with their outputs, are small, and run."""

from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from tests.support.notebooks import FOLDER, run_notebook, tidy
from tests.support.pages import ROOT


class Expected(NamedTuple):
    """Expected outputs of a notebook: numbers of PNG and SVG pictures, and texts."""

    pictures: int
    drawings: int
    words: tuple[str, ...]


NOTEBOOKS = {
    "1_game_and_environment": Expected(
        3, 2, ("is illegal for seat", "over (markers), winner seat")
    ),
    "2_benchmarking": Expected(4, 1, ("192 games in blocks of 96", "uct:30")),
    "3_training": Expected(3, 1, ("training decisions", "place marker on")),
    "4_what_agents_do": Expected(6, 0, ("of 4,407 games", "**uct@2:100** chose the clock")),
    "5_your_own_agent_and_reward": Expected(
        2, 0, ("tuned on 192 games", "3 players, capstone-2024")
    ),
    "6_generated_boards": Expected(6, 1, ("boards played on", "unseen boards", "'generator': 1")),
    "7_ppo_from_scratch": Expected(
        1, 0, ("of the decisions have an advantage", "training decisions")
    ),
    "8_exploitability": Expected(1, 0, ("planner",)),
}


SHORTENED = {  # replacements for a shorter run of a notebook, in its code and in the expected texts
    "1_game_and_environment": {"- start < 0.5": "- start < 0.05"},
    "2_benchmarking": {
        "(16, 64, 256, 1024, 4096)": "(16, 64)",
        "games=160": "games=90",
        "192 games": "96 games",
    },
    "3_training": {
        "SECONDS = 60.0": "SECONDS = 4.0",
        "games: int = 128": "games: int = 16",
        "games=400": "games=40",
    },
    "4_what_agents_do": {
        '"greedy": 1000, "net:city-4": 400': '"greedy": 60, "net:city-4": 30',
        '"uct@2:100": 45, "az@2:city-4:100": 24': '"uct@2:100": 15, "az@2:city-4:16": 15',
        "uct@2:100": "uct@2:20",
        "4,407": "360",
    },
    "5_your_own_agent_and_reward": {
        "decisions: int = 32_768": "decisions: int = 2_048",
        "games: int = 400": "games: int = 40",
        "games=192": "games=8",
    },
    "6_generated_boards": {"train:200": "train:20", "train:300": "train:30", "1024": "64"},
    "7_ppo_from_scratch": {
        "DECISIONS = 300_000": "DECISIONS = 10_000",
        "[agent], 96": "[agent], 16",
    },
    "8_exploitability": {"(100_000, 300_000)": "(2_000,)", "[agent], 192": "[agent], 16"},
}


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", nbformat.NO_CONVERT)


def shorten(name: str, text: str) -> str:
    for replacement in SHORTENED.get(name, {}).items():
        text = text.replace(*replacement)
    return text


def check_outputs(name: str, notebook: nbformat.NotebookNode, *, short: bool = False) -> None:
    """Assert that the notebook has its expected outputs, no warning and no error."""
    outputs = [one for c in notebook.cells if c.cell_type == "code" for one in c.outputs]
    streams = [one for one in outputs if one.output_type == "stream"]
    assert [one.text for one in streams if one.name == "stderr"] == []
    assert [one for one in outputs if one.output_type == "error"] == []
    data = [one.data for one in outputs if one.output_type != "stream"]
    assert sum("image/png" in one for one in data) == NOTEBOOKS[name].pictures
    assert sum("image/svg+xml" in one for one in data) == NOTEBOOKS[name].drawings
    texts = [one.text for one in streams] + [text for one in data for text in one.values()]
    for words in NOTEBOOKS[name].words:
        expected = shorten(name, words) if short else words
        assert any(expected in text for text in texts), expected


def test_every_notebook_is_listed() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(NOTEBOOKS)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_200_000
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in NOTEBOOKS:
        assert f"(notebooks/{name}.ipynb)" in readme


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_stored_outputs_are_of_one_run(name: str) -> None:
    """All cells are executed in order; nothing stored depends on the machine or the time."""
    notebook = read(name)
    nbformat.validate(notebook)
    counts = [c.execution_count for c in notebook.cells if c.cell_type == "code"]
    assert counts == [*range(1, len(counts) + 1)]
    check_outputs(name, notebook)
    stored = nbformat.writes(notebook)
    for volatile in ("/tmp/", "/home/", " at 0x", "iopub"):
        assert volatile not in stored
    tidy(notebook)
    assert nbformat.writes(notebook) == stored


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    """It leaves no files behind and has its expected outputs."""
    notebook = read(name)
    texts = [*NOTEBOOKS[name].words, *(cell.source for cell in notebook.cells)]
    assert all(long in "\n".join(texts) for long in SHORTENED.get(name, {}))
    for cell in notebook.cells:
        cell.source = shorten(name, cell.source)
    current, temporary = tmp_path / "current", tmp_path / "temporary"
    current.mkdir()
    temporary.mkdir()
    run_notebook(notebook, current, temporary)
    assert [*current.iterdir()] == []
    assert [*temporary.glob("busenv-*")] == []
    check_outputs(name, notebook, short=True)
