"""Decisions on the game page in Chromium: by mouse, keyboard and touch."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from busenv import Building, Game, Phase, load_board
from busenv.play.catalogue import CITY_AGENTS, DEFAULT_OPPONENT, PREPARED
from busenv.play.launch import make_catalogue
from busenv.render.phrases import describe_move
from tests.support.browser_player import FIXED_START, Player
from tests.support.play import played
from tests.support.play_client import Served, serving
from tests.support.positions import at_passengers, at_phase


def test_whole_game_by_mouse(served: Served, player: Callable[..., Player]) -> None:
    chance = random.Random(4)
    me = player().join(
        served.origin + served.begin("me", "greedy", "greedy", "greedy", **FIXED_START)
    )
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
    places = me.page.locator("#result .seat").all_text_contents()
    assert places == [str(seat) for seat in sorted(range(4), key=game.ranking().__getitem__)]


def test_card_describes_a_choice_before_the_click(
    served: Served, player: Callable[..., Player]
) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIXED_START))
    me.my_turn()
    me.page.mouse.move(*me.point("site-3"))
    assert me.card().startswith("Site at intersection 15, zone 1")
    text = me.choose("site-3", lambda _: 2)
    assert text == "Erect pub at intersection 15, zone 1"
    me.choose("site-4")
    me.my_turn()
    while me.my_turn() and "action-5" not in me.targets():
        me.choose(me.targets()[0])
    me.page.mouse.move(*me.point("action-5"))
    assert me.card().startswith("Place marker on Vrrooomm!: space A: your bus carries")
    me.page.mouse.move(2, 2)
    assert me.page.is_hidden("#card")


def test_whole_turn_by_keyboard(served: Served, player: Callable[..., Player]) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIXED_START))
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
    press("Enter")
    press("1")
    me.wait_for_change(1)
    me.my_turn()
    press("u")
    me.wait_for_node(1)
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
    me.join(served.origin + served.begin("me", "greedy", "greedy", **FIXED_START))
    me.my_turn()
    tap = me.page.touchscreen.tap
    tap(*me.point("site-0"))
    assert me.card().startswith("Site at")
    me.page.locator("#card .choices button").first.tap()
    me.wait_for_node(1)
    x, y = me.point("site-1")
    tap(x, y + 9)  # taps are imprecise
    me.page.locator("#card .choices button").first.tap()
    me.wait_for_change(1)
    assert me.page.evaluate("document.documentElement.scrollWidth") == 390
    while me.my_turn() and "action-1" not in me.targets():
        me.tap(me.targets()[0])
    me.page.wait_for_timeout(600)  # the page scrolls to the action board
    _, y = me.point("action-1")
    assert 0 < y < 844 - 100


def test_marks_menus_and_cards_on_the_page(served: Served, player: Callable[..., Player]) -> None:
    record = at_passengers().record().to_json()
    me = player().join(served.origin + served.begin("me", "me", "me", record=record))
    me.my_turn()
    me.page.click("#hint")
    hint = me.wait_for_notice("Best move of").inner_text()
    arrivals = re.findall(r"(\d) to station (\d+)", hint)
    tags = me.page.locator(".mark text")
    assert sorted(tags.all_text_contents()) == sorted(f"+{number}" for number, _ in arrivals)
    if len(arrivals) == 1:
        station = 1 - [*load_board("city").stations].index(int(arrivals[0][1]))
        other = me.page.locator("[data-target=split] circle").nth(station).bounding_box()
        tag = tags.bounding_box()
        assert abs(tag["x"] - other["x"]) > 100
    me.choose("split")
    clock = at_phase(Phase.CLOCK, 3, least_round=3)
    seats = ("me", "greedy", "me")
    assert clock.current_player != 1
    me = player().join(served.origin + served.begin(*seats, record=clock.record().to_json()))
    me.my_turn()
    assert "Last: Beginner, " in me.page.inner_text("#last")
    me.page.mouse.click(*me.point("clock"))
    choices = me.page.locator("#card .choices button").all_inner_texts()
    kind = (clock.position().clock + 1) % 3
    assert choices == [f"advance to {Building(kind).name.lower()}", "stop time, −1 point"]
    city, card = (me.page.locator(name).bounding_box() for name in ("#city", "#card"))
    assert card["x"] + card["width"] > city["x"] + city["width"]  # not over the city's centre


def test_finished_record_has_names_and_can_be_analysed(
    served: Served, player: Callable[..., Player]
) -> None:
    game = played(3, seed=4)
    me = player().join(
        served.origin + served.begin("me", "greedy", "random", record=game.record().to_json())
    )
    page = me.page
    names = page.locator("#result .player").all_inner_texts()[1:]
    assert sorted(names) == ["0 you", "1 Beginner", "2 Random"]
    page.click("#result .close")
    assert page.locator("#hint").is_disabled()
    page.click("[data-key=PageUp]")
    page.click("#analyse")
    expect(page.locator("#steps [aria-current]")).to_be_in_viewport()
    expect(page.locator("#history")).to_be_in_viewport()  # though the list is scrolled
    page.click("#analyse")
    page.locator("#steps .row").nth(20).click()
    me.wait_for_node(20)
    page.click("#hint")
    me.wait_for_notice("Best move of")
    page.click("#analyse")
    page.locator("#best-moves span").first.wait_for()
    page.click("[data-key=PageDown]")
    me.wait_for_node(21)
    page.locator("#chances meter").first.wait_for()
    assert page.locator(".gain").count() == 0
    page.locator("#steps .row", has_text="set the passenger down").first.click()
    assert page.locator(".gain").text_content(timeout=20_000) == "+1"


def test_start_page_deletes_games_and_shows_compilation(
    served: Served, player: Callable[..., Player], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = served.begin("me", "me", "me")
    monkeypatch.setattr(served.server, "num_prepared", 0)
    page = player().page
    page.goto(served.origin + served.start_link)
    page.locator("#preparing").wait_for()
    row = page.locator(f".game:has([href='{link}'])")
    row.locator("button").click()
    row.locator("button", has_text="for good").click()
    row.wait_for(state="detached")
    assert served.get(link)[0] == 404
    page.click("#start")
    monkeypatch.setattr(served.server, "num_prepared", len(PREPARED))
    page.locator("#board[data-node]").wait_for()


def test_agents_that_play_only_the_city_are_disabled_on_other_boards(
    tmp_path: Path, player: Callable[..., Player]
) -> None:
    catalogue = make_catalogue(["me", "net:city-2", "greedy"], "capstone-2024", "generated:small:5")
    with serving(tmp_path, catalogue) as served:
        page = player().page
        page.goto(served.origin + served.start_link)
        seats = page.locator("#seats select")
        expect(seats).to_have_count(3)
        disabled = page.locator("#seats select >> nth=1 >> option:disabled")
        assert [option.get_attribute("value") for option in disabled.all()] == [*CITY_AGENTS]
        assert seats.nth(1).input_value() == DEFAULT_OPPONENT
        page.locator("details >> nth=0 >> summary").click()
        page.select_option("#board-name", "city")
        expect(disabled).to_have_count(0)
        (tmp_path / "record.json").write_text(Game(board="generated:small:5").record().to_json())
        page.set_input_files("#file", tmp_path / "record.json")
        expect(page.locator("#settings")).to_be_hidden()  # those of the record count
        expect(disabled).to_have_count(len(CITY_AGENTS))
        page.locator("details >> nth=1 >> summary").click()
        page.click("#remove-record")
        expect(page.locator("#settings")).to_be_visible()
