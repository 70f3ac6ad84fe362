"""Somebody at the playing page, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import BrowserContext, Locator

from busenv import Record
from tests.support.playing import PATIENCE

CHOICES = "#board.yours .spot"
OVER = "#end:not([hidden])"
FIRST = {"first_player": 0, "seed": 5}  # of games that are to be the same


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
