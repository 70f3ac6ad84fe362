"""The playing page, in Chromium."""

from __future__ import annotations

import itertools
import random
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator

from busenv import Game, Record
from tests.support.play import played
from tests.support.playing import PATIENCE, Served, serving

CHOICES = "#board.yours .spot"
OVER = "#end:not([hidden])"
FIRST = {"first_player": 0, "seed": 5}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("games")) as server:
        yield server


class Player:
    """Somebody at a page: a context of the browser of his or her own."""

    def __init__(self, context: BrowserContext, faults: list[str]) -> None:
        self.context, self.page, self.faults = context, context.new_page(), faults
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.on("pageerror", lambda error: faults.append(str(error)))
        self.page.on("console", lambda message: faults.append(message.text))

    def join(self, address: str, pace: str = "0") -> Player:
        """Go to a game, and let nobody wait."""
        self.page.goto(address)
        self.page.locator("#board[data-node]").wait_for()
        if self.page.locator("#pace").is_visible():
            self.page.select_option("#pace", pace)
        return self

    def my_turn(self) -> bool:
        """Wait until there is something to choose, or the game is over; whether there is."""
        self.page.locator(f"{CHOICES}, {OVER}").first.wait_for(state="attached")
        return not self.page.locator(OVER).count()

    def spots(self) -> list[str]:
        return self.page.eval_on_selector_all(".spot", "signs => signs.map(s => s.dataset.spot)")

    def point(self, spot: str) -> tuple[float, float]:
        """The middle of a spot on the screen."""
        shape = self.page.locator(f"[data-spot='{spot}'] > :not(text)").first
        shape.scroll_into_view_if_needed()
        box = shape.bounding_box()
        assert box
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def choose(self, spot: str, pick: Callable[[int], int] = lambda count: 0) -> str:
        """Click on a spot of the picture, and on one of its choices if it has several; what the
        page said that the click would do. Returns when the picture has changed."""
        node = self.node()
        self.page.mouse.click(*self.point(spot))
        if self.page.locator("#card.open").count():
            buttons = self.page.locator("#card .choices button").all()
            button = buttons[pick(len(buttons))]
            button.hover()
            words = self.card()
            button.click()
        else:
            words = ""
        self.page.locator(f"#board[data-node]:not([data-node='{node}'])").wait_for()
        return words

    def tap(self, spot: str) -> None:
        """Tap on a spot, then on the first button of the card that opens."""
        node = self.node()
        self.page.touchscreen.tap(*self.point(spot))
        self.page.locator("#card .choices button").first.tap()
        self.page.locator(f"#board[data-node]:not([data-node='{node}'])").wait_for()

    def card(self) -> str:
        return self.page.inner_text("#card p")

    def node(self) -> int:
        """The node of the game's tree that the picture shows."""
        return int(self.page.get_attribute("#board", "data-node") or -1)

    def reach(self, node: int) -> None:
        self.page.locator(f"#board[data-node='{node}']").wait_for()

    def said(self, words: str) -> Locator:
        found = self.page.locator("#notice", has_text=words)
        found.wait_for()
        return found

    def record(self) -> Record:
        """The record that the page's link gives."""
        with self.page.expect_download() as download:
            self.page.click("#record")
        return Record.from_json(Path(download.value.path()).read_text(encoding="utf-8"))

    def rows(self) -> list[str]:
        """The moves in the list, without numbers and seats."""
        rows = self.page.locator("#steps .row").all_inner_texts()
        return [re.sub(r"^\d+\.\s+\d\s+", "", row) for row in rows]


@pytest.fixture
def player(browser: Browser) -> Iterator[Callable[..., Player]]:
    """Makes players; afterwards none of their pages must have met an error."""
    contexts, faults = [], []

    def make(width: int = 1280, height: int = 800, **settings: Any) -> Player:
        size = {"width": width, "height": height}
        settings = {"reduced_motion": "reduce", **settings}
        contexts.append(browser.new_context(viewport=size, **settings))
        return Player(contexts[-1], faults)

    yield make
    for context in contexts:
        context.close()
    assert faults == []


def test_one_click_starts_a_game_against_strong_opponents(
    served: Served, player: Callable[..., Player]
) -> None:
    page = player().page
    page.goto(f"{served.origin}/start/{served.hall.key}")
    page.click("#begin")
    page.locator("#board[data-node]").wait_for()
    assert page.locator(".chip").all_text_contents()[1:] == [
        f"{seat} uct:1000" for seat in (1, 2, 3)
    ]


def test_a_whole_game_by_clicks_on_the_picture(
    served: Served, player: Callable[..., Player]
) -> None:
    chance = random.Random(4)
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", "greedy", **FIRST))
    kinds = set()
    while me.my_turn():
        spots = me.spots()
        spot = "pass" if "pass" in spots and chance.random() < 0.8 else chance.choice(spots)
        drive = [name for name in ("action-5", "action-2", "action-4") if name in spots]
        spot = chance.choice(drive) if drive and chance.random() < 0.4 else spot
        kinds.add(spot.partition("-")[0])
        me.choose(spot, chance.randrange)
    assert kinds >= {"site", "street", "action", "pass"}
    game = Game.from_record(me.record())
    assert game.is_over
    assert len(me.rows()) == len(game.history) + 1
    assert me.rows()[1:] == [game.describe(action) for action in game.history]
    shown = [row.locator("td").all_inner_texts() for row in me.page.locator("#end tr").all()[1:]]
    seats = sorted(range(4), key=game.ranking().__getitem__)
    names = ["you", "greedy", "greedy", "greedy"]
    assert shown == [
        [
            str(place + 1),
            f"{seat} {names[seat]}",
            *(str(of[seat]) for of in (game.points, game.deliveries, game.time_stones)),
        ]
        for place, seat in enumerate(seats)
    ]
    ties = sum(game.points[a] == game.points[b] for a, b in itertools.pairwise(seats))
    assert me.page.locator("#end .help").count() == ties
    with me.context.expect_page() as opened:
        me.page.click("#end a")
    assert opened.value.inner_text("#result tr >> nth=1").startswith(f"1\t{seats[0]}")


def test_what_a_click_would_do_is_said_before(
    served: Served, player: Callable[..., Player]
) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    me.my_turn()
    me.page.mouse.move(*me.point("site-3"))
    assert me.card().startswith("Site 3 at intersection")
    said = me.choose("site-3", lambda _: 2)
    assert said == "Erect pub on site 3 at intersection 15, zone 1"
    me.choose("site-4")
    me.my_turn()
    me.page.mouse.move(*me.point("street-20"))
    words = me.card()
    me.choose("street-20")
    assert words.lower() == me.rows()[7].lower()
    while me.my_turn() and "action-5" not in me.spots():
        me.choose(me.spots()[0])
    me.page.mouse.move(*me.point("action-5"))
    assert me.card().startswith("Place marker on Vrrooomm!: space A: 1 bus")
    me.page.mouse.move(2, 2)
    assert me.page.is_hidden("#card")


def test_keys(served: Served, player: Callable[..., Player]) -> None:
    me = player().join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    page, press = me.page, me.page.keyboard.press
    focus = "document.activeElement.dataset.spot ?? document.activeElement.id"
    me.my_turn()
    press("ArrowDown")
    assert page.evaluate(focus) == me.spots()[0]
    press("Tab")
    assert page.evaluate(focus) == me.spots()[1]
    before = me.point(me.spots()[1])
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
    me.reach(1)
    assert me.rows()[1].startswith(f"erect pub on site {below.removeprefix('site-')} ")
    press("u")
    me.reach(0)
    press("r")
    me.reach(1)
    press("Home")
    me.reach(0)
    assert page.is_visible("#looking")
    assert me.spots() == []
    press("PageDown")
    me.reach(1)
    assert page.is_hidden("#looking")
    assert len(me.spots()) == 11
    press("?")
    assert page.is_visible("#helping")
    press("Escape")
    assert page.is_hidden("#helping")
    press("p")
    page.locator("#pause", has_text="Go on").wait_for()


def test_on_a_phone_a_tap_tells_and_the_next_does(
    served: Served, player: Callable[..., Player]
) -> None:
    me = player(390, 844, has_touch=True, is_mobile=True)
    me.join(served.origin + served.begin("me", "greedy", "greedy", **FIRST))
    me.my_turn()
    tap = me.page.touchscreen.tap
    tap(*me.point("site-0"))
    assert me.card().startswith("Site 0 at")
    me.page.locator("#card .choices button").first.tap()
    me.reach(1)
    x, y = me.point("site-1")
    tap(x, y + 9)  # fingers are not exact
    me.page.locator("#card .choices button").first.tap()
    while me.page.locator("[data-spot^=street]").count() < 50:
        me.page.wait_for_timeout(20)
    node = me.node()
    tap(*me.point("street-20"))
    assert me.card().startswith("Grow line")
    assert me.node() == node
    tap(*me.point("street-20"))
    me.page.locator(f"#board:not([data-node='{node}'])").wait_for()
    me.my_turn()
    assert me.page.evaluate("document.documentElement.scrollWidth") == 390
    while me.my_turn() and "action-1" not in me.spots():
        me.tap(me.spots()[0])
    me.page.wait_for_timeout(600)  # it scrolls to the action board
    _, y = me.point("action-1")
    assert 0 < y < 844 - 100


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
    me.choose("site-1")
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


def test_two_people_and_a_spectator(served: Served, player: Callable[..., Player]) -> None:
    host = player(permissions=["clipboard-read", "clipboard-write"])
    host.join(served.origin + served.begin("me", "friend", "greedy", **FIRST))
    host.page.click("#invite")
    links = [field.input_value() for field in host.page.locator("#linked input").all()]
    host.page.click("#linked button >> nth=0")
    host.page.locator("#linked button", has_text="Copied").wait_for()
    assert host.page.evaluate("navigator.clipboard.readText()") == links[0]
    host.page.click("#links form button")
    friend, watcher = player().join(links[0]), player().join(links[1])
    name = "<img src=x onerror=alert(1)>"
    friend.page.click(".rename")
    friend.page.locator(".chip input").fill(name)
    friend.page.keyboard.press("Enter")
    for one in (host, friend, watcher):
        one.page.locator(".chip", has_text=name).wait_for()
        assert one.page.locator(".chip img").count() == 0
    assert friend.spots() == []
    host.my_turn()
    host.choose("site-0")
    host.my_turn()
    host.choose("site-1")
    friend.my_turn()
    assert host.spots() == []
    friend.choose("site-2")
    for one in (host, watcher):
        one.reach(3)
        assert one.spots() == []
        assert f"({name})" in one.page.inner_text(".headline")
    assert watcher.page.is_hidden("#undo")
    assert watcher.page.is_hidden("#invite")
    friend.page.click("#undo")
    host.said("took back")
    watcher.reach(2)


def test_a_lost_connection_is_told_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context()
    with serving(tmp_path) as served:
        me = Player(context, []).join(served.origin + served.begin("me", "greedy", "greedy"))
        me.my_turn()
        me.choose(me.spots()[0])
        node, rows = me.node(), me.rows()
        port = served.port
    me.page.locator("#offline", has_text="Connection lost").wait_for()
    assert me.spots() == []
    with serving(tmp_path, port=port):
        me.page.locator("#offline").wait_for(state="hidden")
        me.my_turn()
        assert me.rows()[: len(rows)] == rows
        me.choose(me.spots()[0])
        assert me.node() > node
        context.close()


def test_the_page_plays_in_a_frame_of_a_notebook_on_this_machine(
    served: Served, player: Callable[..., Player], tmp_path: Path
) -> None:
    link = served.origin + served.begin("me", "me", "me", **FIRST)
    cell = (
        f'<link rel="icon" href="data:,"><iframe src="{link}" width="1200" height="760"></iframe>'
    )
    (tmp_path / "notebook.html").write_text(cell)
    me, files = player(), partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as jupyter:
        thread = threading.Thread(target=jupyter.serve_forever)
        thread.start()
        me.page.goto(f"http://localhost:{jupyter.server_port}/notebook.html")
        inside = me.page.frame_locator("iframe")
        inside.locator("[data-spot=site-0] circle").click()
        inside.locator("#card .choices button").first.click()
        inside.locator("#board[data-node='1']").wait_for()
        jupyter.shutdown()
        thread.join()
