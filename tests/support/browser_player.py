"""A player at the game page, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import BrowserContext, Locator

from busenv import Record
from tests.support.play_client import PATIENCE

SWITCHES = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
CHOICES = "#board.yours .target"
OVER = "#result:not([hidden])"
FIXED_START = {"first_player": 0, "seed": 5}  # makes games reproducible


class Player:
    """A page in a browser context of its own. errors: collects the page's console output."""

    def __init__(self, context: BrowserContext, errors: list[str]) -> None:
        self.context, self.page, self.errors = context, context.new_page(), errors
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.add_init_script("try { localStorage.setItem('busenv-tour', 'offered') } catch {}")
        self.page.on("pageerror", lambda error: errors.append(str(error)))
        self.page.on("console", lambda message: errors.append(message.text))

    def join(self, address: str, delay: str = "0") -> Player:
        """Open a game and set the delay between automatic moves."""
        self.page.goto(address)
        self.page.locator("#board[data-node]").wait_for()
        if self.page.locator("#delay").is_visible():
            self.page.select_option("#delay", delay)
        return self

    def my_turn(self) -> bool:
        """Wait for a choice or the end of the game; return whether there is a choice."""
        self.page.locator(f"{CHOICES}, {OVER}").first.wait_for(state="attached")
        return not self.page.locator(OVER).count()

    def targets(self) -> list[str]:
        return self.page.eval_on_selector_all(
            ".target", "all => all.map(one => one.dataset.target)"
        )

    def point(self, target: str) -> tuple[float, float]:
        """The centre of a target on the screen."""
        shape = self.page.locator(f"[data-target='{target}'] > :not(text)").first
        shape.scroll_into_view_if_needed()
        box = shape.bounding_box()
        assert box
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def choose(self, target: str, pick: Callable[[int], int] = lambda count: 0) -> str:
        """Click a target, and one of its choices if it has several. Wait until the drawing has
        changed; return the card's description of the choice."""
        node, text = self.node(), ""
        self.page.mouse.click(*self.point(target))
        if self.page.locator("#card.open").count():
            buttons = self.page.locator("#card .choices button").all()
            button = buttons[pick(len(buttons))]
            button.hover()
            text = self.card()
            button.click()
        self.wait_for_change(node)
        return text

    def tap(self, target: str) -> None:
        """Tap a target, then the first button of its card."""
        node = self.node()
        self.page.touchscreen.tap(*self.point(target))
        self.page.locator("#card .choices button").first.tap()
        self.wait_for_change(node)

    def wait_for_change(self, node: int) -> None:
        self.page.locator(f"#board[data-node]:not([data-node='{node}'])").wait_for()

    def card(self) -> str:
        return self.page.inner_text("#card p")

    def node(self) -> int:
        """The node on the drawing."""
        return int(self.page.get_attribute("#board", "data-node") or -1)

    def wait_for_node(self, node: int) -> None:
        self.page.locator(f"#board[data-node='{node}']").wait_for()

    def wait_for_notice(self, text: str) -> Locator:
        notice = self.page.locator("#notice", has_text=text)
        notice.wait_for()
        return notice

    def record(self) -> Record:
        """Download the record."""
        with self.page.expect_download() as download:
            self.page.click("#record")
        return Record.from_json(Path(download.value.path()).read_text(encoding="utf-8"))

    def rows(self) -> list[str]:
        """The list of moves without numbers and seats."""
        rows = self.page.locator("#steps .row").all_inner_texts()
        return [re.sub(r"^\d+\.\s+\d\s+", "", row) for row in rows]
