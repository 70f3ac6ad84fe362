"""Measure the time from a click to the changed drawing on the screen, in Chromium.

`python -m tests.support.click_latency` starts a server in another process, plays a game in which
one person has all seats, and prints the median and maximum of 100 clicks in milliseconds. Run it on
an idle machine.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile

from playwright.sync_api import Page, sync_playwright

from tests.conftest import SWITCHES

CLICKS, WARM_UP = 120, 20
PAUSE = 100  # milliseconds before each click, in which the last update is completed
SCREEN = {"width": 1280, "height": 900}
WATCH = """() => {
  window.times = [];
  let clicked = 0;
  addEventListener("click", (event) => { clicked = event.timeStamp; }, true);
  // Browsers report paint times of named elements only: add a letter for each drawing.
  const letter = document.createElement("div");
  letter.style = "position: fixed; left: 0; top: 0; font-size: 12px";
  document.body.append(letter);
  const sent = new Map();
  new PerformanceObserver((list) => {
    for (const { identifier, renderTime } of list.getEntries()) {
      times.push(renderTime - sent.get(identifier));
      window.shown?.();
    }
  }).observe({ type: "element" });
  new MutationObserver(() => {
    const mark = document.createElement("p");
    mark.textContent = "x";
    mark.setAttribute("elementtiming", `picture ${sent.size}`);
    sent.set(`picture ${sent.size}`, clicked);
    letter.replaceChildren(mark);
  }).observe(document.getElementById("board"), { attributeFilter: ["data-node"] });
}"""
NEXT = "(count) => times.length > count || new Promise((resolve) => { window.shown = resolve; })"


def decide(page: Page) -> None:
    """Click a target, and one of its choices if it has several; wait for the paint."""
    page.locator("#board.yours .target").first.wait_for()
    before = page.evaluate("times.length")
    shape = page.locator(".target").last.locator(":scope > :not(text)").first
    box = shape.bounding_box()
    assert box
    where = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*where)
    page.wait_for_timeout(PAUSE)
    page.mouse.click(*where)
    if page.locator("#card.open").count():
        choice = page.locator("#card .choices button").first
        choice.hover()
        page.wait_for_timeout(PAUSE)
        choice.click()
    page.evaluate(NEXT, before)


def main() -> None:
    """Measure, and print the result."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "busenv.experiments.cli", "play", "--no-browser"]
        game = "--seat me --seat me --seat me --seat me --first-player 0 --seed 1 --port 0".split()
        server = subprocess.Popen(
            [*command, *game, "--folder", folder], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            times = measure(server.stdout.readline().split()[-1])
        finally:
            server.terminate()
            server.wait()
    print(
        f"{len(times)} clicks: median {statistics.median(times):.1f} ms, "
        f"slowest {max(times):.1f} ms from the click to the drawing on the screen"
    )


def measure(link: str) -> list[float]:
    """The milliseconds of each click in a game in which the host has all seats."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=SWITCHES)
        page = browser.new_page(viewport=SCREEN)  # type: ignore[arg-type]
        page.goto(link)
        page.locator("#board[data-node]").wait_for()
        page.select_option("#delay", "0")
        page.evaluate(WATCH)
        for _ in range(CLICKS):
            decide(page)
        times = page.evaluate("times")[WARM_UP:]
        browser.close()
    return times


if __name__ == "__main__":
    main()
