"""Decisions on the game page in Chromium: by mouse, keyboard and touch."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from busenv import Game
from busenv.experiments.play.catalogue import AGENTS, DEFAULT_OPPONENT
from busenv.render.phrases import describe_move
from tests.support.browser_player import FIRST, Player
from tests.support.play_client import Served


def test_default_game_has_opponents_of_middling_strength(
    served: Served, player: Callable[..., Player]
) -> None:
    page = player().page
    page.goto(served.origin + served.start_link)
    page.click("#start")
    page.locator("#board[data-node]").wait_for()
    name = AGENTS[DEFAULT_OPPONENT][0]
    assert page.locator(".chip").all_text_contents()[1:] == [
        f"{seat} {name}{DEFAULT_OPPONENT}" for seat in (1, 2, 3)
    ]


def test_whole_game_by_mouse(served: Served, player: Callable[..., Player]) -> None:
    chance = random.Random(4)
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", "greedy", **FIRST))
    kinds = set()
    while me.my_turn():
        targets = me.targets()
        target = "pass" if "pass" in targets and chance.random() < 0.8 else chance.choice(targets)
        drive = [name for name in ("action-5", "action-2", "action-4") if name in targets]
        target = chance.choice(drive) if drive and chance.random() < 0.4 else target
        kinds.add(target.partition("-")[0])
        me.choose(target, chance.randrange)
    assert kinds >= {"site", "street", "action", "pass"}
    game = Game.from_record(me.record())
    assert game.is_over
    assert len(me.rows()) == len(game.history) + 1
    assert me.rows()[1:] == [
        describe_move(game.board, before.position(), action)
        for before, action in Game.replay(game.record())
    ]
    shown = [row.locator("td").all_inner_texts() for row in me.page.locator("#result tr").all()[1:]]
    seats = sorted(range(4), key=game.ranking().__getitem__)
    names = ["you", "Beginner", "Beginner", "Beginner"]
    assert shown == [
        [
            str(rank + 1),
            f"{seat} {names[seat]}",
            *(str(values[seat]) for values in (game.points, game.deliveries, game.time_stones)),
        ]
        for rank, seat in enumerate(seats)
    ]
    ties = sum(game.points[a] == game.points[b] for a, b in itertools.pairwise(seats))
    assert me.page.locator("#result .help").count() == ties
    with me.context.expect_page() as opened:
        me.page.click("#result a")
    assert opened.value.inner_text("#result tr >> nth=1").startswith(f"1\t{seats[0]}")


def test_card_describes_a_choice_before_the_click(
    served: Served, player: Callable[..., Player]
) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    me.my_turn()
    me.page.mouse.move(*me.point("site-3"))
    assert me.card().startswith("Site at intersection 15, zone 1")
    text = me.choose("site-3", lambda _: 2)
    assert text == "Erect pub at intersection 15, zone 1"
    me.choose("site-4")
    me.my_turn()
    me.page.mouse.move(*me.point("street-20"))
    text = me.card()
    me.choose("street-20")
    assert text.lower() == me.rows()[7].lower()
    while me.my_turn() and "action-5" not in me.targets():
        me.choose(me.targets()[0])
    me.page.mouse.move(*me.point("action-5"))
    assert me.card().startswith("Place marker on Vrrooomm!: space A: each of your 1 bus")
    me.page.mouse.move(2, 2)
    assert me.page.is_hidden("#card")


def test_keyboard(served: Served, player: Callable[..., Player]) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    page, press = me.page, me.page.keyboard.press
    focus = "document.activeElement.dataset.target ?? document.activeElement.id"
    me.my_turn()
    press("ArrowDown")
    assert page.evaluate(focus) == me.targets()[0]
    press("Tab")
    assert page.evaluate(focus) == me.targets()[1]
    before = me.point(me.targets()[1])
    press("ArrowDown")
    below = page.evaluate(focus)
    assert me.point(below)[1] > before[1]
    press("Enter")
    assert "house" in page.evaluate("document.activeElement.textContent")
    press("Escape")
    assert page.locator("#card.open").count() == 0
    assert page.evaluate(focus) == below
    press("Enter")
    press("ArrowRight")
    assert me.card().startswith("Erect office")
    press("3")
    me.wait_for_node(1)
    assert me.rows()[1].startswith("erect pub at intersection ")
    press("u")
    me.wait_for_node(0)
    press("r")
    me.wait_for_node(1)
    press("Home")
    me.wait_for_node(0)
    assert page.is_visible("#viewing")
    assert me.targets() == []
    press("PageDown")
    me.wait_for_node(1)
    assert page.is_hidden("#viewing")
    assert len(me.targets()) == 11
    press("?")
    assert page.is_visible("#help-dialog")
    press("Escape")
    assert page.is_hidden("#help-dialog")
    press("p")
    page.locator("#pause", has_text="Continue").wait_for()


def test_touch_needs_a_second_tap(served: Served, player: Callable[..., Player]) -> None:
    me = player(390, 844, has_touch=True, is_mobile=True)
    me.join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    me.my_turn()
    tap = me.page.touchscreen.tap
    tap(*me.point("site-0"))
    assert me.card().startswith("Site at")
    me.page.locator("#card .choices button").first.tap()
    me.wait_for_node(1)
    x, y = me.point("site-1")
    tap(x, y + 9)  # taps are imprecise
    me.page.locator("#card .choices button").first.tap()
    while me.page.locator("[data-target^=street]").count() < 50:
        me.page.wait_for_timeout(20)
    node = me.node()
    tap(*me.point("street-20"))
    assert me.card().startswith("Grow line")
    assert me.node() == node
    tap(*me.point("street-20"))
    me.wait_for_change(node)
    me.my_turn()
    assert me.page.evaluate("document.documentElement.scrollWidth") == 390
    while me.my_turn() and "action-1" not in me.targets():
        me.tap(me.targets()[0])
    me.page.wait_for_timeout(600)  # the page scrolls to the action board
    _, y = me.point("action-1")
    assert 0 < y < 844 - 100
