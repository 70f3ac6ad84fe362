"""`busenv show`: games in words, lists of games, drawings."""

import json
import re
from pathlib import Path

import pytest

from busenv import Game, cli
from busenv.cli.replay_commands import list_games
from busenv.common.runs import RunError
from busenv.evaluation.narration import load_recorded_game
from busenv.render import game_svg
from busenv.render.phrases import count
from tests.support.commands import refusal
from tests.support.golden import FOLDER, GAMES
from tests.support.play import played
from tests.support.positions import at_ply
from tests.support.ratings import forfeited, rated_game


def golden(name: str, players: int, rules: str, seed: int) -> Game:
    """A golden game (tests.support.golden), from the action ids in its text."""
    game = Game(players, rules, seed=seed)
    for action in re.findall(r"legal: +(\d+) ", (FOLDER / f"{name}.txt").read_text("utf-8")):
        game.step(int(action))
    return game


@pytest.mark.parametrize("setup", [setup for *setup, _ in GAMES])
def test_show_narrates_golden_games(
    setup: list, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    game = golden(*setup)
    game.save(tmp_path / "game.json")
    cli.main(["show", str(tmp_path / "game.json")])
    text = capsys.readouterr().out
    lines = text.splitlines()
    decisions = [line.strip() for line in lines if line.startswith("    seat ")]
    assert [line.partition(": ")[2] for line in decisions] == [
        game.describe(action) for action in game.history
    ]
    assert [line for line in lines if line.startswith("Round ")] == [
        f"Round {number + 1}" for number in range(game.round)
    ]
    assert (
        sum(bool(re.search(r"→ seat \d has \d+ bus", line)) for line in lines)
        == sum(game.position().buses) - setup[1]
    )
    winner = game.ranking().index(0)
    assert lines[-1].startswith(f"Ranking: seat {winner} ({count(game.points[winner], 'point')}), ")
    assert not re.search(r"\b1 (points|buses|passengers|deliveries)", text)


@pytest.fixture
def games_file(tmp_path: Path) -> Path:
    """Two games of a rating, numbers 12 (forfeited) and 7."""
    games = forfeited(rated_game(7), plies=30, number=12), rated_game(7)
    path = tmp_path / "games.jsonl"
    path.write_text("".join(f"{json.dumps(game)}\n" for game in games))
    return path


def test_show_narrates_a_game_of_a_rating(games_file: Path, capsys: pytest.CaptureFixture) -> None:
    cli.main(["show", f"{games_file}:7"])
    text = capsys.readouterr().out
    assert "\nseat 0: greedy\nseat 1: random\n" in text
    assert "\nOver: " in text
    cli.main(["show", f"{games_file}:12"])
    forfeit = json.loads(games_file.read_text().splitlines()[0])["forfeit"]
    words = f"\nForfeited by seat {forfeit['seat']} at ply 30: no answer\nRanking: "
    assert words in capsys.readouterr().out


def test_a_games_file_with_one_game_needs_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    games = [rated_game(number) for number in (7, 8)]
    path = tmp_path / "games.jsonl"
    path.write_text("".join(f"{json.dumps(game)}\n" for game in games))
    with pytest.raises(RunError, match=r"holds 2 games, numbered 7 to 8; name one, such as .*:7$"):
        load_recorded_game(path)
    path.write_text(f"{json.dumps(games[1])}\n")
    assert load_recorded_game(path) == load_recorded_game(f"{path}:8")
    assert load_recorded_game(path).agents == tuple(games[1]["agents"])
    cli.main(["show", str(path)])
    assert "\nOver: " in capsys.readouterr().out
    path.write_text("")
    with pytest.raises(RunError, match="is not one game; it holds no games"):
        load_recorded_game(path)


def test_sources_without_a_game_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "games.jsonl").write_text("")
    (tmp_path / "words.json").write_text("hello")
    for source, message in (
        ("nowhere.json", "nowhere.json"),
        ("nowhere.jsonl:3", "nowhere.jsonl"),
        (f"{tmp_path / 'games.jsonl'}:3", "has no game 3; it holds no games"),
        (str(tmp_path / "words.json"), "not a game record"),
    ):
        assert message in refusal(capsys, "show", source)
    Game(seed=1).save(tmp_path / "new.json")
    error = refusal(capsys, "show", str(tmp_path / "new.json"), "--ply", "5")
    assert "--ply needs --draw" in error


def test_show_lists_a_games_file(games_file: Path, capsys: pytest.CaptureFixture) -> None:
    cli.main(["show", str(games_file)])
    head, first, second, empty, hint = capsys.readouterr().out.splitlines()
    game = json.loads(games_file.read_text().splitlines()[1])
    winner = ["seat", str(game["ranking"].index(0))]
    assert head.split() == ["game", "rounds", "winner", "agents", "by", "seat"]
    rounds = str(game["record"]["result"]["rounds"])
    assert first.split() == ["7", rounds, *winner, *", ".join(game["agents"]).split()]
    assert second.split()[:4] == ["12", "cut", "off", "seat"]
    assert (
        head.index("agents by seat")
        == first.index(game["agents"][0])
        == second.index(game["agents"][0])
    )
    assert empty == ""
    assert hint == f"Show one in words: busenv show {games_file}:7"
    error = refusal(capsys, "show", str(games_file), "--draw", "a.svg")
    assert "is not one game; it holds 2 games, numbered 7 to 12" in error
    assert "busenv show 'a run/b.jsonl:12'" in list_games([{**game, "number": 12}], "a run/b.jsonl")
    assert list_games([], "a.jsonl") == "a.jsonl has no games\n"


def test_show_draws_positions_as_svg_or_png(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    game, record = played(3, seed=1), tmp_path / "game.json"
    game.save(record)
    svg, png = str(tmp_path / "a.svg"), str(tmp_path / "a.png")
    for ply, words in ((20, ["--ply", "20"]), (len(game.history), [])):
        cli.main(["show", str(record), *words, "--draw", svg])
        assert Path(svg).read_text(encoding="utf-8") == game_svg(at_ply(game, ply))
    cli.main(["show", str(record), "--draw", png])
    assert Path(png).read_bytes().startswith(b"\x89PNG")
    for words, message in (
        (["--draw", svg, "--ply", "-1"], "ply is -1; allowed: 0 to"),
        (["--draw", str(tmp_path / "a.gif")], "a.gif'; allowed: FILE.svg or FILE.png"),
    ):
        assert message in refusal(capsys, "show", str(record), *words)
    assert not (tmp_path / "a.gif").exists()
