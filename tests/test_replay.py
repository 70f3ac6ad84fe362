"""The replay page, in Chromium."""

import io
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from busenv import Game, cli
from busenv.evaluation.replay_files import write_replay
from busenv.game.board import make_board
from busenv.render import game_png
from busenv.render.chart import BOTTOM, TOP, WIDTH, draw_chart
from busenv.render.pieces import SEAT_COLOURS
from busenv.render.replay import Estimate, replay_page
from tests.support.commands import refusal
from tests.support.drawings import drawn_parts
from tests.support.play import played
from tests.support.positions import at_ply
from tests.support.ratings import rated_game
from tests.support.worlds import random_board

Opener = Callable[[str], Page]


def page_of(game: Game, **extras: Any) -> str:
    """A game's replay page."""
    now, positions = at_ply(game, 0), []
    for action in game.history:
        positions.append(now.position())
        now.step(action)
    positions.append(now.position())
    return replay_page(game.board, game.rules, positions, game.history, **extras)


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens the text of a page; afterwards checks for errors and for requests of other files."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page, errors, requests = context.new_page(), [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    file = tmp_path / "game.html"

    def open_page(text: str) -> Page:
        file.write_text(text, encoding="utf-8")
        page.goto(file.as_uri())
        return page

    yield open_page
    assert errors == []
    assert {url for url in requests if not url.startswith("data:")} == {file.as_uri()}
    context.close()


def where(page: Page) -> int:
    """The ply that the page shows; slider, list and text agree."""
    ply = int(page.input_value("#slider"))
    assert page.inner_text("#ply").startswith(f"ply {ply} of ")
    assert page.get_attribute("#moves [aria-current]", "data-ply") == str(ply)
    return ply


def reached(page: Page, ply: int) -> None:
    """Wait until the page shows a ply."""
    page.locator(f"#moves [aria-current][data-ply='{ply}']").wait_for(state="attached")


def check_board(page: Page, game: Game, ply: int) -> None:
    """The page's drawing is the drawing of the game after some plies."""
    script = """expected => Object.entries(expected).filter(([name, text]) => {
      const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
      group.innerHTML = text;
      return group.innerHTML !== document.querySelector(`[data-part="${name}"]`).innerHTML;
    }).map(([name]) => name)"""
    mover = at_ply(game, ply - 1).current_player if ply else -1
    last = (mover, game.history[ply - 1]) if ply else None
    assert page.evaluate(script, drawn_parts(at_ply(game, ply), last)) == []


def test_keys_slider_buttons_and_list_move_through_the_game(show: Opener) -> None:
    game = played(5, seed=3)
    plies, page = len(game.history), show(page_of(game))
    assert where(page) == 0
    check_board(page, game, 0)
    for key, ply in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", plies)):
        page.keyboard.press(key)
        assert where(page) == ply
    check_board(page, game, plies)
    page.keyboard.press("ArrowRight")
    assert where(page) == plies
    page.focus("#slider")
    page.keyboard.press("ArrowLeft")
    assert where(page) == plies - 1
    page.keyboard.press("Home")
    assert where(page) == 0
    page.locator("#slider").fill("40")
    assert where(page) == 40
    check_board(page, game, 40)
    page.click("#moves [data-ply='61']")
    assert where(page) == 61
    check_board(page, game, 61)
    assert game.describe(game.history[60]) in page.inner_text("#moves [aria-current]")
    page.click(".round-buttons button >> nth=0")
    assert at_ply(game, where(page)).round == 1
    assert at_ply(game, where(page) - 1).round == 0
    start = where(page)
    for name, ply in (("back", start - 1), ("forward", start), ("first", 0), ("end", plies)):
        page.click(f"#{name}")
        assert where(page) == ply
    chart = page.locator("#charts svg").first
    left, right = (float(chart.get_attribute(f"data-{side}")) for side in ("left", "right"))
    box, middle = chart.bounding_box(), (left + right) / 2 / WIDTH
    chart.click(position={"x": box["width"] * middle, "y": box["height"] / 2})
    assert abs(where(page) - plies / 2) <= 1
    chart.click(position={"x": 2, "y": 20})
    assert where(page) == 0


def test_play_advances_until_it_is_paused(show: Opener) -> None:
    page = show(page_of(played(3, seed=1)))
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
def test_the_final_score_is_that_of_the_game(show: Opener, players: int) -> None:
    game = played(players, seed=4)
    page = show(page_of(game))
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
    assert f"seat {places.index(0)} wins" in page.inner_text("#headline")
    assert page.inner_text("#turn") == str(places.index(0))
    assert page.inner_text("#named") == ""
    for seat in range(players):
        words = page.locator(f"[data-part=player-{seat}] text").all_text_contents()
        assert str(points[seat]) in words


def test_names_of_players_are_shown_and_escaped(show: Opener) -> None:
    game = played(3, seed=4)
    names = ["anna", "<b>bob</b>", "uct:" + "9" * 80]
    page = show(page_of(game, names=names, note="Forfeited by seat 1 at ply 3: silent"))
    seats = sorted(range(3), key=game.ranking().__getitem__)
    assert [
        page.locator("#result .player span[title]").nth(k).get_attribute("title") for k in range(3)
    ] == [names[seat] for seat in seats]
    assert page.inner_text("#named") == f"({names[game.first_player]})"
    assert "silent" in page.inner_text("aside")
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


def test_estimates_are_shown_at_their_ply(show: Opener) -> None:
    game = played(3, seed=1)
    estimates: list[Estimate] = []
    for ply, action in enumerate(game.history):
        chance = ply / len(game.history)
        shares = [(action, 0.75), (7, 0.246), (0, 0.004)]
        estimates.append(([chance, 1 - chance, 0.0], shares))
    page = show(page_of(game, estimates=estimates, agent="tester <1>"))
    page.locator("#slider").fill("10")
    assert "Estimate of tester <1>" in page.inner_text("#estimate")
    values = [meter.evaluate("bar => bar.value") for meter in page.locator("#chances meter").all()]
    assert values == pytest.approx(estimates[10][0], abs=1e-4)
    best_moves = page.inner_text("#best-moves").split("\n")
    assert best_moves == [f"{game.describe(game.history[10])} ✓", "75%", "pass", "25%"]
    assert page.locator("#charts svg").count() == 2
    page.keyboard.press("End")
    assert page.is_hidden("#estimate")


def test_on_a_phone_the_city_fills_the_width_and_the_panels_stand_below(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "game.html"
    file.write_text(page_of(played(4, seed=1)), encoding="utf-8")
    boxes = {}
    for width in (390, 1280):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        boxes[width] = [page.locator(f"#{name} svg").bounding_box() for name in ("city", "panels")]
        page.close()
    city, panels = boxes[390]
    assert city["width"] > 370
    assert panels["width"] > 370
    assert panels["y"] >= city["y"] + city["height"]
    city, panels = boxes[1280]
    assert panels["x"] >= city["x"] + city["width"]
    assert panels["y"] == pytest.approx(city["y"], abs=1)


def test_curves_of_equal_value_are_drawn_side_by_side() -> None:
    curves = [[0, 0, 1, 2], [0, 0, 0, 2], [None, None, 1, 1]]
    chart = draw_chart("x", curves, 0, 2, rounds={}, ranking=[1, 0, 2])
    paths = re.findall(r'<path d="([^"]+)" class="line" stroke="(#\w+)"', chart)
    assert [colour for _, colour in paths] == [*SEAT_COLOURS[:3]]
    heights = [
        [float(y) for y in re.findall(r"[MV](?:[\d.]+ )?([\d.]+)H", way)] for way, _ in paths
    ]
    middle = (TOP + BOTTOM) / 2
    assert heights == [
        [BOTTOM - 1.5, middle - 1.5, TOP - 1.5], [BOTTOM + 1.5, BOTTOM, TOP + 1.5],
        [middle + 1.5, middle],
    ]  # fmt: skip
    assert paths[2][0].startswith(f"M{44 + (426 - 44) * 2 / 3:.1f} ")
    labels = re.findall(r'r="9" fill="(#\w+)"', chart)
    assert labels == [SEAT_COLOURS[seat] for seat in (1, 0, 2)]


def test_unfinished_and_new_games_are_shown(show: Opener) -> None:
    page = show(page_of(at_ply(played(4, seed=1), 30)))
    page.keyboard.press("End")
    assert where(page) == 30
    assert "The game is not over" in page.inner_text("aside")
    page = show(page_of(Game(3, seed=1)))
    page.keyboard.press("ArrowRight")
    assert where(page) == 0


def test_the_name_of_a_board_is_escaped(show: Opener) -> None:
    name = "</script><script>throw 1</script>{{data}}"
    board = make_board(random_board(random.Random(3)) | {"name": name})
    game = Game(3, board=board, seed=1)
    game.step(game.legal_actions()[0])
    page = show(page_of(game))
    assert name in page.title()


def test_replay_writes_a_page_and_refuses_invalid_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, out = tmp_path / "game.json", tmp_path / "game.html"
    game = played(3, seed=1)
    game.save(record)
    cli.main(["replay", str(record), "-o", str(out)])
    assert capsys.readouterr().out == f"Replay: {out}\n"
    assert out.read_text(encoding="utf-8") == page_of(game)
    for wrong, words in (
        (["--agent", "random"], "gives no estimates"),
        (["--board", "x"], "no bo"),
    ):
        assert words in refusal(capsys, "replay", str(record), "-o", str(tmp_path / "x"), *wrong)
    assert not (tmp_path / "x").exists()


def test_replay_writes_an_animation_with_a_frame_for_each_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, out = tmp_path / "game.json", tmp_path / "game.gif"
    game = at_ply(played(3, seed=1), 3)
    game.save(record)
    cli.main(["replay", str(record), "--gif", str(out)])
    assert capsys.readouterr().out == f"Replay: {out}\n"
    with Image.open(out) as animation:
        durations = []
        for frame in range(animation.n_frames):
            animation.seek(frame)
            durations.append(animation.info["duration"])
        shown = np.asarray(animation.convert("RGB"), float)
    assert durations == [120, 120, 120, 3000]
    with Image.open(io.BytesIO(game_png(game))) as drawing:
        end = np.asarray(drawing.convert("RGB").resize((720, 480)), float)
    assert np.abs(shown - end).mean() < 3
    wrong = tmp_path / "game.png"
    assert "allowed: FILE.gif" in refusal(capsys, "replay", str(record), "--gif", str(wrong))
    assert not wrong.exists()
    assert "remove --agent" in refusal(
        capsys, "replay", str(record), "--gif", str(out), "--agent", "uct:10"
    )


def test_pages_of_a_rated_game_name_its_agents(tmp_path: Path) -> None:
    game = rated_game(7)
    games, out = tmp_path / "games.jsonl", tmp_path / "game.html"
    games.write_text(f"{json.dumps(game)}\n")
    write_replay(games, out)
    names = re.findall(r'<span title="(\w+)">', out.read_text(encoding="utf-8"))
    assert sorted(names) == sorted(game["agents"])
    write_replay(f"{games}:7", out, names=["anna", "bob", "cy"])
    assert '<span title="anna">' in out.read_text(encoding="utf-8")
