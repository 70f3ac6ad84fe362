"""Taking back, thinking and playing on from records on the playing page, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.play import played
from tests.support.player import FIRST, Player
from tests.support.playing import Served


def test_undo_branches_and_looking_back(served: Served, player: Callable[..., Player]) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    page = me.page
    me.my_turn()
    me.choose("site-0")
    me.my_turn()
    me.choose("site-1")
    me.my_turn()
    ply = len(me.rows()) - 1
    page.click("#undo")
    me.reach(1)
    assert len(me.rows()) == ply + 1  # what can be taken again stands there
    page.click("#redo")
    page.locator(f"#steps > :nth-child({ply + 1}) [aria-current]").wait_for()
    page.click("#undo")
    me.reach(1)
    me.my_turn()
    me.choose("site-2")
    me.my_turn()
    branch = page.locator("#steps .branch")
    assert "site 1 at" in branch.inner_text()
    assert f"({ply - 1} moves)" in branch.inner_text()
    branch.click()
    me.reach(2)
    assert "move 2 of" in page.inner_text("#looking")
    assert me.spots() == []
    page.click("[data-look=after]")
    me.reach(3)
    page.click("#back")
    me.my_turn()
    branch.click()
    me.reach(2)
    page.click("#from")
    page.locator("#pause", has_text="Go on").wait_for()
    assert page.is_hidden("#looking")
    assert "site 2 at" in branch.inner_text()


def test_hint_analysis_and_the_chances_over_the_game(
    served: Served, player: Callable[..., Player]
) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    page = me.page
    me.my_turn()
    page.click("#hint")
    hinted = me.said("would erect").inner_text()
    assert page.locator(".marks .mark").count() == 1
    page.click("#analyse")
    page.locator("#favourites span").first.wait_for()
    chances = page.eval_on_selector_all("#chances meter", "bars => bars.map(bar => bar.value)")
    assert sum(chances) == pytest.approx(1, abs=0.01)
    assert page.locator(".marks .mark").count() >= 1
    page.click("#notice button")
    me.reach(1)
    assert me.rows()[1] in hinted
    page.locator("#effort", has_text="simulations").wait_for()
    page.click("#analyse")
    assert page.is_hidden("#analysis")
    assert page.locator(".marks .mark").count() == 0
    me.my_turn()
    me.choose(me.spots()[0])
    me.my_turn()
    page.click("#graph")
    page.locator("#lost button").first.wait_for()
    assert page.locator("#chart .loss").count() == page.locator("#lost button").count()
    words = page.inner_text("#lost button >> nth=0")
    page.click("#lost button >> nth=0")
    ply = int(re.search(r"at (\d+):", words)[1])
    page.locator(f"#steps > :nth-child({ply + 1}) [aria-current]").wait_for()
    page.click("#back")
    box = page.locator("#chart svg").bounding_box()
    page.locator("#chart svg").click(position={"x": box["width"] * 0.1, "y": box["height"] / 2})
    me.reach(0)


def test_a_record_is_uploaded_and_played_on_from_any_ply(
    served: Served, player: Callable[..., Player], tmp_path: Path
) -> None:
    game, file = played(3, seed=4), tmp_path / "<b>game.json"
    game.save(file)
    me = player()
    page = me.page
    page.goto(f"{served.origin}/start/{served.hall.key}")
    page.click("#from summary")
    page.set_input_files("#file", file)
    page.locator("#about", has_text="Game over").wait_for()
    assert page.locator("#seats .row").count() == 3
    page.locator("#ply").fill("40")
    page.locator("#about", has_text="After 40 of").wait_for()
    for seat in range(3):
        page.locator("#seats select").nth(seat).select_option("me")
    page.click("#begin")
    page.locator("#board[data-node]").wait_for()
    page.locator("#steps > :nth-child(41)").wait_for()
    assert [*me.record().actions] == game.history[:40]
    file.write_text('{"format": "<img src=x onerror=alert(1)>"}')
    page.goto(f"{served.origin}/start/{served.hall.key}")
    page.click("#from summary")
    page.set_input_files("#file", file)
    page.locator("#wrong:not(:empty)").wait_for()
    assert page.locator("#wrong *").count() == 0
    assert me.faults.pop().startswith("Failed to load resource")  # as browsers say of a refusal
