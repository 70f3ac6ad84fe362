"""Pictures of the pages are current; the citation has this version."""

import re
from pathlib import Path

from PIL import Image

import busenv
from busenv import Game
from experiments.readme_pictures import (
    ASSETS,
    FOLDER,
    POSITIONS,
    RECORD,
    draw_pictures,
    read_shares,
    share_table,
)
from tests.support.pages import ROOT


def test_the_pictures_are_current(tmp_path: Path) -> None:
    draw_pictures(tmp_path)
    names = {f"{name}.svg" for name in POSITIONS}
    assert {path.name for path in FOLDER.iterdir()} == names | {RECORD}
    for name in names:
        drawn = (tmp_path / name).read_text(encoding="utf-8")
        assert drawn == (FOLDER / name).read_text(encoding="utf-8"), (
            f"{name} is out of date: python -m experiments.readme_pictures"
        )


def test_the_recorded_game_is_over_and_its_pictures_are_small() -> None:
    game = Game.load(FOLDER / RECORD)
    assert game.is_over
    assert max(POSITIONS.values()) == len(game.history)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 400_000


def test_the_numbers_of_the_strength_picture_are_current() -> None:
    table = (ASSETS / "strength.csv").read_text(encoding="utf-8")
    assert table == share_table(read_shares()), "python -m experiments.readme_pictures"


def test_the_animation_shows_every_position_and_is_small() -> None:
    with Image.open(ASSETS / "game.gif") as animation:
        assert animation.n_frames == max(POSITIONS.values()) + 1
    assert (ASSETS / "game.gif").stat().st_size < 2_000_000


def test_every_picture_is_in_the_rules() -> None:
    rules = (ROOT / "busenv/RULES.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(pictures/(\w+)\.svg\)", rules) == [*POSITIONS]


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^(?:title|version|license): (.*)$", citation, re.MULTILINE) == [
        "busenv",
        busenv.__version__,
        "MIT",
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"version = {{{busenv.__version__}}}" in readme
