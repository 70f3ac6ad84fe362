"""The replay page, in Chromium."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from busenv.experiments import cli
from busenv.experiments.replays.pages import draw_record
from playwright.sync_api import Browser, Page, sync_playwright

from busenv import Game
from busenv.board import make_board
from busenv.render.chart import WIDTH
from busenv.render.replay import Estimate, replay_page
from busenv.render.svg import draw_parts
from tests.support.play import played
from tests.support.worlds import random_board
from tests.test_render import at

Opener = Callable[[str], Page]

SWITCHES = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((path for path in map(shutil.which, names) if path), None)
    if path is None:
        if os.environ.get("BUSENV_NEED_CHROMIUM"):
            pytest.fail("BUSENV_NEED_CHROMIUM is set, but there is no Chromium on the path")
        pytest.skip("no Chromium on the path; apt-get install chromium")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=SWITCHES)
        yield started
        started.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens a page's text; afterwards it must have met no error and asked for nothing else."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page, faults, asked = context.new_page(), [], []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    file = tmp_path / "game.html"

    def open_page(text: str) -> Page:
        file.write_text(text, encoding="utf-8")
        page.goto(file.as_uri())
        return page

    yield open_page
    assert faults == []
    assert {url for url in asked if not url.startswith("data:")} == {file.as_uri()}
    context.close()


def where(page: Page) -> int:
    """The ply that the page shows, on which slider, list and words agree."""
    ply = int(page.input_value("#slider"))
    assert page.inner_text("#where").startswith(f"ply {ply} of ")
    assert page.get_attribute("#moves [aria-current]", "data-ply") == str(ply)
    return ply


def reached(page: Page, ply: int) -> None:
    """Wait until the page shows a ply."""
    page.locator(f"#moves [aria-current][data-ply='{ply}']").wait_for(state="attached")


def parts_of(game: Game) -> dict[str, str]:
    return draw_parts(game.board, game.position(), game.rules, game.last_decision)


def check_board(page: Page, game: Game) -> None:
    """The page's drawing is the drawing of the game."""
    script = """expected => Object.entries(expected).filter(([name, text]) => {
      const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
      group.innerHTML = text;
      return group.innerHTML !== document.querySelector(`[data-part="${name}"]`).innerHTML;
    }).map(([name]) => name)"""
    assert page.evaluate(script, parts_of(game)) == []


def test_keys_slider_buttons_and_list_move_through_the_game(show: Opener) -> None:
    game = played(5, seed=3)
    plies, page = len(game.history), show(replay_page(game))
    assert where(page) == 0
    check_board(page, at(game, 0))
    for key, ply in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", plies)):
        page.keyboard.press(key)
        assert where(page) == ply
    check_board(page, game)
    page.keyboard.press("ArrowRight")
    assert where(page) == plies
    page.focus("#slider")
    page.keyboard.press("ArrowLeft")
    assert where(page) == plies - 1
    page.keyboard.press("Home")
    assert where(page) == 0
    page.locator("#slider").fill("40")
    assert where(page) == 40
    check_board(page, at(game, 40))
    page.click("#moves [data-ply='61']")
    assert where(page) == 61
    check_board(page, at(game, 61))
    assert game.describe(game.history[60]) in page.inner_text("#moves [aria-current]")
    page.click(".marks button >> nth=0")
    assert at(game, where(page)).round == 1
    assert at(game, where(page) - 1).round == 0
    start = where(page)
    for name, ply in (("back", start - 1), ("forward", start), ("first", 0), ("last", plies)):
        page.click(f"#{name}")
        assert where(page) == ply
    chart = page.locator("#charts svg").first
    left, right = (float(chart.get_attribute(f"data-{side}")) for side in ("left", "right"))
    box, middle = chart.bounding_box(), (left + right) / 2 / WIDTH
    chart.click(position={"x": box["width"] * middle, "y": box["height"] / 2})
    assert abs(where(page) - plies / 2) <= 1
    chart.click(position={"x": 2, "y": 20})
    assert where(page) == 0


def test_play_runs_on_until_it_is_paused(show: Opener) -> None:
    page = show(replay_page(played(3, seed=1)))
    page.keyboard.press(" ")
    reached(page, 2)
    assert page.inner_text("#play") == "Pause"
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Play"
    assert page.evaluate("timer") is None
    page.keyboard.press("End")
    page.click("#play")
    assert where(page) == 0
    reached(page, 1)


@pytest.mark.parametrize("players", [3, 5])
def test_the_final_score_is_the_games(show: Opener, players: int) -> None:
    game = played(players, seed=4)
    page = show(replay_page(game))
    shown = [
        [int(cell) for cell in row.locator("td").all_inner_texts()]
        for row in page.locator("#result tr").all()[1:]
    ]
    places, points = game.ranking(), game.points
    assert shown == [
        [place + 1, seat, points[seat], game.deliveries[seat], game.time_stones[seat]]
        for place, seat in enumerate(sorted(range(players), key=places.__getitem__))
    ]
    page.keyboard.press("End")
    assert f"seat {places.index(0)} wins" in page.text_content("[data-part=headline]")
    for seat in range(players):
        words = page.locator(f"[data-part=player-{seat}] text").all_text_contents()
        assert str(points[seat]) in words


def test_estimates_are_shown_at_their_ply(show: Opener) -> None:
    game = played(3, seed=1)
    estimates: list[Estimate] = []
    for ply, action in enumerate(game.history):
        chance = ply / len(game.history)
        estimates.append(([chance, 1 - chance, 0.0], [(action, 0.75), (7, 0.25)]))
    page = show(replay_page(game, estimates, "tester <1>"))
    page.locator("#slider").fill("10")
    assert "Estimate of tester <1>" in page.inner_text("#estimate")
    values = [meter.evaluate("bar => bar.value") for meter in page.locator("#chances meter").all()]
    assert values == pytest.approx(estimates[10][0], abs=1e-4)
    favourites = page.inner_text("#favourites").split("\n")
    assert favourites == [f"{game.describe(game.history[10])} (played)", "75%", "pass", "25%"]
    assert page.locator("#charts svg").count() == 2
    page.keyboard.press("End")
    assert page.is_hidden("#estimate")


def test_a_game_that_goes_on_and_one_not_begun(show: Opener) -> None:
    page = show(replay_page(at(played(4, seed=1), 30)))
    page.keyboard.press("End")
    assert where(page) == 30
    assert "The game is not over" in page.inner_text("aside")
    page = show(replay_page(Game(3, seed=1)))
    page.keyboard.press("ArrowRight")
    assert where(page) == 0


def test_what_a_board_is_called_cannot_harm(show: Opener) -> None:
    name = "</script><script>throw 1</script>{{data}}"
    board = make_board(random_board(random.Random(3)) | {"name": name})
    game = Game(3, board=board, seed=1)
    game.step(game.legal_actions()[0])
    page = show(replay_page(game))
    assert name in page.title()


def test_the_page_of_a_long_game_is_small() -> None:
    longest = max((played(5, seed) for seed in range(20)), key=lambda game: len(game.history))
    assert len(replay_page(longest).encode()) < 2_000_000


def test_estimates_must_fit_the_game() -> None:
    game = at(played(3, seed=1), 2)
    with pytest.raises(ValueError, match="1 estimates; allowed: none, or one for each of the 2"):
        replay_page(game, [([], [])])
    with pytest.raises(ValueError, match="at ply 1 has 2 chances for 3 seats"):
        replay_page(game, [([], []), ([0.5, 0.5], [])])


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, out = tmp_path / "game.json", tmp_path / "game.html"
    game = played(3, seed=1)
    game.save(record)
    cli.main(["replay", str(record), "-o", str(out)])
    assert out.read_text(encoding="utf-8") == replay_page(game)
    for wrong, words in (
        (["--agent", "random"], "gives no estimates"),
        (["--board", "x"], "no bo"),
    ):
        with pytest.raises(SystemExit, match="2"):
            cli.main(["replay", str(record), "-o", str(tmp_path / "other"), *wrong])
        assert words in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_records_position_as_a_file(tmp_path: Path) -> None:
    record, out = tmp_path / "game.json", tmp_path / "game.svg"
    game = played(3, seed=1)
    game.save(record)
    draw_record(record, 20, out)
    assert out.read_text(encoding="utf-8") == at(game, 20)._repr_svg_()
    draw_record(record, None, out)
    assert out.read_text(encoding="utf-8") == game._repr_svg_()
    with pytest.raises(ValueError, match="ply is -1; allowed: 0 to"):
        draw_record(record, -1, out)
