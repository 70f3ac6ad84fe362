"""Several people and lost connections on the game page in Chromium."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from tests.support.browser_player import FIXED_START, Player
from tests.support.play_client import Served, serving


def test_two_people_and_a_spectator_on_the_page(
    served: Served, player: Callable[..., Player]
) -> None:
    host = player(permissions=["clipboard-read", "clipboard-write"])
    host.join(served.origin + served.begin("me", "friend", "greedy", **FIXED_START))
    host.page.click("#invite")
    links = [field.input_value() for field in host.page.locator("#links-list input").all()]
    host.page.click("#links-list button >> nth=0")
    host.page.locator("#links-list button", has_text="Copied").wait_for()
    assert host.page.evaluate("navigator.clipboard.readText()") == links[0]
    host.page.click("#links form button")
    friend, watcher = player().join(links[0]), player().join(links[1])
    name = "<img src=x onerror=alert(1)>"
    friend.page.click(".rename")
    friend.page.locator(".chip input").fill(name[:5])
    player().join(links[1])  # does not end the edit
    host.page.locator(".chip", has_text="2 watching").wait_for()
    friend.page.keyboard.type(name[5:])
    friend.page.keyboard.press("Enter")
    for one in (host, friend, watcher):
        one.page.locator(".chip", has_text=name).wait_for()
        assert one.page.locator(".chip img").count() == 0
    assert friend.targets() == []
    for site in ("site-0", "site-1"):
        host.my_turn()
        host.choose(site)
    friend.my_turn()
    assert host.targets() == []
    friend.choose("site-2")
    for one in (host, watcher):
        one.wait_for_node(3)
        assert name in one.page.inner_text(".headline")
    assert watcher.page.is_hidden("#undo")
    assert watcher.page.is_hidden("#invite")
    assert friend.page.is_hidden("#undo")
    assert "Speed" not in friend.page.inner_text(".controls")
    host.page.click("#undo")
    friend.wait_for_notice("took back")
    watcher.wait_for_node(2)


def test_lost_connection_is_restored(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context()
    with serving(tmp_path) as served:
        me = Player(context, []).join(served.origin + served.begin("me", "greedy", "greedy"))
        me.my_turn()
        me.choose(me.targets()[0])
        node, rows = me.node(), me.rows()
        port = served.port
    me.page.locator("#offline", has_text="Connection lost").wait_for()
    assert me.targets() == []
    with serving(tmp_path, port=port):
        me.page.locator("#offline").wait_for(state="hidden")
        me.my_turn()
        assert me.rows()[: len(rows)] == rows
        me.choose(me.targets()[0])
        assert me.node() > node
        context.close()
