"""How long a click takes to change the picture, in Chromium, without an agent in between.

`python -m tests.support.clicks` plays a game of one person at all seats and prints the median and
the slowest of a hundred; on a machine that has nothing else to do.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.conftest import SWITCHES
from tests.support.playing import serving

CLICKS, WARM_UP = 120, 20
WATCH = """() => {
  window.times = [];
  let clicked = 0;
  addEventListener("click", (event) => { clicked = event.timeStamp; }, true);
  const board = document.getElementById("board");
  new MutationObserver(() => {
    // in the frame that will show it: the next task comes after that is painted
    const channel = new MessageChannel();
    channel.port1.onmessage = () => times.push(performance.now() - clicked);
    channel.port2.postMessage(null);
  }).observe(board, { attributeFilter: ["data-node"] });
}"""


def decide(page: Page) -> None:
    """Click on a spot, and on a choice of it if it has several; returns when that has been seen."""
    page.locator("#board.yours .spot").first.wait_for()
    before = page.evaluate("times.length")
    shape = page.locator(".spot").last.locator(":scope > :not(text)").first
    box = shape.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    if page.locator("#card.open").count():
        page.locator("#card .choices button").first.click()
    while page.evaluate("times.length") == before:
        page.wait_for_timeout(2)


def main() -> None:
    """Print what was measured."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as served:
        link = served.begin("me", "me", "me", "me", first_player=0, seed=1)
        with sync_playwright() as driver:
            path = shutil.which("chromium")
            browser = driver.chromium.launch(executable_path=path, args=SWITCHES)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(served.origin + link)
            page.locator("#board[data-node]").wait_for()
            page.select_option("#pace", "0")
            page.evaluate(WATCH)
            for _ in range(CLICKS):
                decide(page)
            times = page.evaluate("times")[WARM_UP:]
            browser.close()
    print(
        f"{len(times)} clicks: median {statistics.median(times):.1f} ms, "
        f"slowest {max(times):.1f} ms from the click to the picture"
    )


if __name__ == "__main__":
    main()
