"""Undo, analysis and recorded games on the game page in Chromium."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.browser_player import FIXED_START, Player
from tests.support.play import played
from tests.support.play_client import Served


def test_undo_redo_and_branches_on_the_page(served: Served, player: Callable[..., Player]) -> None:
    link = served.begin("me", "greedy", "greedy", **FIXED_START)
    me = player().join(served.origin + link)
    page = me.page
    for site in ("site-0", "site-1"):
        me.my_turn()
        me.choose(site)
    me.my_turn()
    ply = len(me.rows()) - 1
    page.click("#undo")
    me.wait_for_node(1)
    me.my_turn()
    assert len(me.rows()) == ply + 1  # moves that can be redone stay in the list
    page.click("#redo")
    page.locator(f"#steps > :nth-child({ply + 1}) [aria-current]").wait_for()
    page.click("#undo")
    me.wait_for_node(1)
    me.my_turn()
    me.choose("site-3")
    me.my_turn()
    branch = page.locator("#steps .branch")
    assert "erect house at intersection 14, zone 1" in branch.inner_text()
    assert f"({ply - 1} moves)" in branch.inner_text()
    branch.click()
    me.wait_for_node(2)
    assert "move 2 of" in page.inner_text("#viewing")
    assert me.targets() == []
    page.click("#jump")
    page.locator("#pause", has_text="Continue").wait_for()
    assert page.is_hidden("#viewing")
    assert "The game is paused: press Continue" in page.inner_text("#last")
    assert "erect house at intersection 15, zone 1" in branch.inner_text()


def test_hint_analysis_and_chart_on_the_page(served: Served, player: Callable[..., Player]) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIXED_START))
    page = me.page
    me.my_turn()
    page.click("#hint")
    hint = me.wait_for_notice("erect").inner_text()
    assert page.locator(".marks .mark").count() == 1
    page.click("#analyse")
    page.locator("#best-moves span").first.wait_for()
    chances = page.eval_on_selector_all("#chances meter", "bars => bars.map(bar => bar.value)")
    assert sum(chances) == pytest.approx(1, abs=0.01)
    assert page.locator(".marks .mark").count() >= 1
    page.click("#notice button")
    me.wait_for_node(1)
    assert me.rows()[1] in hint
    page.locator("#effort", has_text="simulations").wait_for()
    page.click("#analyse")
    assert page.is_hidden("#analysis")
    assert page.locator(".marks .mark").count() == 0
    me.my_turn()
    me.choose(me.targets()[0])
    me.my_turn()
    page.click("#chart")
    page.locator("#mistakes button").first.wait_for()
    assert page.locator("#curves .mistake").count() == page.locator("#mistakes button").count()
    text = page.inner_text("#mistakes button >> nth=0")
    page.click("#mistakes button >> nth=0")
    ply = int(re.search(r"at (\d+):", text)[1])
    page.locator(f"#steps > :nth-child({ply + 1}) [aria-current]").wait_for()


def test_uploaded_record_is_continued_at_any_ply(
    served: Served, player: Callable[..., Player], tmp_path: Path
) -> None:
    game, file = played(3, seed=4), tmp_path / "<b>game.json"
    game.save(file)
    me = player()
    page = me.page
    page.goto(served.origin + served.start_link)
    page.click("#from-record summary")
    page.set_input_files("#file", file)
    page.locator("#position", has_text="Game over").wait_for()
    assert page.locator("#seats .row").count() == 3
    page.locator("#ply").fill("40")
    page.locator("#position", has_text="After 40 of").wait_for()
    for seat in range(3):
        page.locator("#seats select").nth(seat).select_option("me")
    page.click("#start")
    page.locator("#board[data-node]").wait_for()
    page.locator("#steps > :nth-child(41)").wait_for()
    assert [*me.record().actions] == game.history[:40]
