"""`busenv.play` shows a game in a notebook's cell."""

import json
from pathlib import Path

import pytest

from busenv import Rules
from busenv.experiments.play.notebook import play
from tests.support.play_client import PageClient


def show(*seats: str, folder: Path, rules: str | Rules = "capstone-2024") -> str:
    """The address in the frame of a cell."""
    return play(seats, rules, "city", 0, 5, folder, 700).src


def test_cell_with_a_playable_game(tmp_path: Path) -> None:
    frame = play(("me", "greedy", "greedy"), "capstone-2024", "city", 0, 5, tmp_path, 700)
    assert (frame.width, frame.height) == ("100%", 700)
    origin = frame.src.partition("/play/")[0]
    page = PageClient(frame.src)
    assert page.latest["init"]["seed"] == "5"
    page.decide_first()
    page.close()
    custom = [Rules(bus_limit=limit) for limit in (7, 8)]
    for rules in custom:  # the same server with the latest rules
        link = show("me", "me", "me", folder=tmp_path, rules=rules)
        assert link.startswith(f"{origin}/play/")
    assert f"{origin}/start/" in show(folder=tmp_path)
    saved = [json.loads(path.read_text().splitlines()[0]) for path in tmp_path.glob("*.jsonl")]
    assert sorted(header["record"]["rules"]["bus_limit"] for header in saved) == [5, 7, 8]
    with pytest.raises(ValueError, match="2 seats"):
        show("me", "greedy", folder=tmp_path)
