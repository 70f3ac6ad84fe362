"""`busenv play`: stopped and resumed, with invalid options; `busenv.play` in a notebook."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from busenv import Game, Rules, load_board
from busenv.cli import INTERRUPTED
from busenv.common.runs import lock_folder
from busenv.game.board import BOARDS
from busenv.game.rules import as_rules
from busenv.play import agent_pool, notebook, play
from busenv.play.agent_pool import AgentPool
from busenv.play.catalogue import analyst_of
from busenv.play.launch import addresses, local_address, make_catalogue
from tests.support.commands import refusal
from tests.support.play_client import PATIENCE, PageClient
from tests.support.programs import children, runs


@contextmanager
def command(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process, and the link that it prints."""
    start = [sys.executable, "-m", "busenv", "play", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        [*start, "--folder", str(folder), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().split()[-1]
        assert link.startswith("http://127.0.0.1:"), (link, process.stderr)
        yield process, link
    finally:
        process.kill()
        process.communicate()


def seed_of(link: str) -> int:
    """The seed in the record of a game."""
    with urllib.request.urlopen(f"{link}/record.json", timeout=PATIENCE) as answer:
        return json.load(answer)["seed"]


def test_ctrl_c_stops_the_server_with_one_line_and_its_games_resume(tmp_path: Path) -> None:
    seats = [word for seat in ("me", "me", "greedy") for word in ("--seat", seat)]
    with command(tmp_path, *seats, "--seed", "7") as (process, link):
        assert seed_of(link) == 7
        page = PageClient(link)
        page.decide_first()
        page.decide_first()
        assert len(page.nodes) > 2
        started_processes = children(process.pid)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=PATIENCE)
        assert printed == "busenv: stopped\n"
        assert process.returncode == INTERRUPTED
        assert time.monotonic() - started < 10  # about 2 on an idle machine
        while any(map(runs, started_processes)):
            assert time.monotonic() - started < PATIENCE
            time.sleep(0.05)
        nodes = page.nodes
    with command(tmp_path) as (_, start):
        address = start.partition("/start/")[0] + "/play/" + link.rpartition("/")[2]
        assert nodes.items() <= PageClient(address).nodes.items()


def test_strangers_that_open_connections_do_not_stop_the_game(tmp_path: Path) -> None:
    with command(tmp_path, *("--seat", "me") * 3) as (_, link), ExitStack() as stack:
        page, port = PageClient(link), int(re.findall(r":(\d+)/", link)[0])
        for _ in range(600):
            last = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
        with suppress(ConnectionResetError):
            assert last.recv(1) == b""  # closed; an open connection would time out
        page.decide_first()
        assert len(page.nodes) > 1
        page.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seat", "me"], "1 seats; allowed: 3, 4 or 5"),
        (["--seed", "7"], "first player and seed need 3 to 5 seats"),
        (["--seat", "me", "--seat", "me", "--seat", "gready"], "gready.*did you mean.*greedy"),
        (["--seat", "me", "--seat", "bob"], "seat 'bob' is not me, friend or an agent: unknown"),
        (["--seat", "me"] * 3 + ["--first-player", "4"], "allowed: 0 to 2"),
        (["--board", "nowhere"], "no board 'nowhere'"),
        (["--rules", "mine"], "unknown rules 'mine'"),
        (["--port", "99999"], "port is 99999; allowed: 0 to 65535"),
        (["--host", ""], "host is empty; allowed: an address of this machine"),
    ],
)
def test_invalid_options_are_one_line_errors(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["play", "--no-browser", "--folder", str(tmp_path / "games")]
    assert re.search(message, refusal(capsys, *command, *options))
    assert not (tmp_path / "games").exists()


def test_a_port_or_folder_in_use_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["play", "--no-browser", "--folder", str(tmp_path), "--port"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen at 127.0.0.1, port {port}" in refusal(capsys, *command, port)
    with lock_folder(tmp_path):
        assert "is in use by another process" in refusal(capsys, *command, "0")


def test_the_catalogue_contains_agents_of_the_command_line() -> None:
    catalogue = make_catalogue(["me", "exec:cat", "greedy"], "splotter-1999", "city")
    catalogue.check_agent("exec:cat", load_board("city"))
    assert catalogue.to_dict()["seats"] == ["me", "exec:cat", "greedy"]
    assert catalogue.to_dict()["editions"][0]["name"] == "splotter-1999"


def test_a_board_and_rules_with_names_of_others_are_offered_beside_them(tmp_path: Path) -> None:
    city = json.loads((BOARDS / "city.json").read_text())
    del city["sites"][-1]
    board, rules = tmp_path / "map.json", tmp_path / "condensed.json"
    board.write_text(json.dumps(city))
    rules.write_text(json.dumps({**as_rules("condensed").to_dict(), "bus_limit": 3}))
    catalogue = make_catalogue([], rules, board)
    assert [*catalogue.boards][:2] == ["city (custom)", "city"]
    assert catalogue.boards["city"].fingerprint == load_board("city").fingerprint
    assert next(iter(catalogue.rules)) == "condensed (custom)"
    assert catalogue.rules["condensed"] == as_rules("condensed")


def test_a_call_to_a_cold_worker_may_be_cancelled() -> None:
    """Its process is not replaced: it finishes loading, and answers the next call."""

    async def cancel_and_call() -> tuple[bool, int]:
        pool = AgentPool(1)
        executor = pool._workers[0].executor
        first = asyncio.create_task(pool.call(agent_pool.act, "uct:2", "", Game(seed=1)))
        await asyncio.sleep(0.1)
        first.cancel()
        action = await pool.call(agent_pool.act, "uct:2", "", Game(seed=1))
        is_same = pool._workers[0].executor is executor
        await pool.close()
        return is_same, action

    is_same, action = asyncio.run(cancel_and_call())
    assert is_same
    assert action in Game(seed=1).legal_actions()


def test_addresses_of_the_server() -> None:
    assert local_address("0.0.0.0", 80) == "http://127.0.0.1:80"
    assert local_address("::1", 80) == "http://[::1]:80"
    assert addresses("127.0.0.1", 80) == []
    assert addresses("10.1.2.3", 80) == ["http://10.1.2.3:80"]


def test_a_notebook_cell_shows_a_playable_game(tmp_path: Path) -> None:
    frame = play("me", "uct:7", "greedy", first_player=0, seed=5, folder=tmp_path, height=700)
    assert (frame.width, frame.height) == ("100%", 700)
    origin = frame.src.partition("/play/")[0]
    page = PageClient(frame.src)
    assert seed_of(frame.src) == 5
    page.decide_first()
    page.close()
    custom = [Rules(bus_limit=limit) for limit in (7, 8)]
    for rules in custom:  # the same server with the latest rules
        link = play("me", "me", "me", folder=tmp_path, rules=rules).src
        assert link.startswith(f"{origin}/play/")
    assert f"{origin}/start/" in play(folder=tmp_path).src
    saved = [json.loads(path.read_text().splitlines()[0]) for path in tmp_path.glob("*.jsonl")]
    assert sorted(header["record"]["rules"]["bus_limit"] for header in saved) == [5, 7, 8]
    catalogue = notebook._servers[tmp_path.resolve()][0].catalogue
    catalogue.check_agent("uct:7", load_board("city"))  # of the first game
    with pytest.raises(ValueError, match="2 seats"):
        play("me", "greedy", folder=tmp_path)


@pytest.mark.parametrize("board", ["city", "generated:small:5"])
def test_analysts_can_play_the_board(board: str) -> None:
    game = Game(board=board)
    (estimate,) = agent_pool.estimate(f"{analyst_of(game.board)}:4", "", [game])
    assert len(estimate.chances) == game.num_players
