"""Measure the time from a click to the changed drawing on the screen, in Chromium.

`python -m tests.support.click_latency` starts a server in another process, plays a game in which
one person has all seats, and prints the median and maximum of 100 clicks in milliseconds. Run it on
an idle machine.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

from tests.support.browser_player import SWITCHES, Player

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


def main() -> None:
    """Measure, and print the result."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "busenv", "play", "--no-browser"]
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
        me = Player(browser.new_context(viewport=SCREEN), []).join(link)  # type: ignore[arg-type]
        me.page.evaluate(WATCH)
        for click in range(CLICKS):
            me.my_turn()
            me.page.wait_for_timeout(PAUSE)
            me.choose(me.targets()[-1])
            me.page.evaluate(NEXT, click)
        times = me.page.evaluate("times")[WARM_UP:]
        browser.close()
    return times


if __name__ == "__main__":
    main()
