"""Undo, analysis and recorded games on the game page in Chromium."""

import re
from collections.abc import Callable

import pytest

import busenv
from tests.support.browser_player import FIXED_START, Player
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
    page.click("#pause")
    page.locator("#pause", has_text="Continue").wait_for()
    me.choose("site-3")
    branch = page.locator("#steps .branch")
    branch.click()
    me.wait_for_node(2)
    watcher = served.open(link)
    page.click("#pause")
    watcher.until("state", lambda state: bool(state["targets"]))
    page.wait_for_timeout(500)  # milliseconds, in which the page receives this state, too
    assert me.node() == 2  # the branch stays on display while the agents play
    watcher.close()
    page.click("#back")
    me.my_turn()
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


def test_a_hint_disappears_with_its_position(served: Served, player: Callable[..., Player]) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIXED_START))
    me.my_turn()
    me.choose("site-0")
    me.my_turn()
    me.page.click("#hint")
    hint = me.wait_for_notice("Best move of")
    me.page.click("[data-key=PageUp]")
    hint.wait_for(state="detached")


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
    record = busenv.Game.load(busenv.__path__[0] + "/pictures/game.json").record().to_json()
    page.goto(served.origin + served.begin("me", "me", "me", "me", record=record))
    page.click("#chart")
    page.locator("#mistakes button").first.wait_for()
    marks, buttons = page.evaluate(
        "['#curves .mistake', '#mistakes button'].map(one => document.querySelectorAll(one).length)"
    )
    assert marks == buttons
    text = page.evaluate(
        "() => { const one = document.querySelector('#mistakes button');"
        "one.click(); return one.innerText }"
    )
    ply = int(re.search(r"Move (\d+):", text)[1])
    page.locator(f"#steps > :nth-child({ply + 1}) [aria-current]").wait_for()
