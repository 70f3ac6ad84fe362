"""`busenv play` as a process: killed and started again, stopped, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from busenv.experiments.cli import main
from busenv.experiments.common.keyboard_interrupt import STATUS
from busenv.experiments.play.launch import addresses, make_offers, new_game, own_address
from tests.support.playing import PATIENCE, PageClient


@contextmanager
def command(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process, and the link that it shows."""
    start = [sys.executable, "-m", "busenv.experiments.cli", "play", "--no-browser", "--port", "0"]
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


def open_page(link: str) -> PageClient:
    origin, _, _ = link.partition("/play/")
    return PageClient(f"ws{link.removeprefix('http')}/socket", origin, {})


def test_a_killed_server_goes_on_where_it_was(tmp_path: Path) -> None:
    seats = [word for seat in ("me", "greedy", "greedy") for word in ("--seat", seat)]
    with command(tmp_path, *seats, "--seed", "7") as (process, link):
        page = open_page(link)
        page.send("pace", seconds=0.05)
        for _ in range(4):
            page.decide(page.my_turn()["spots"][0]["choices"][0]["action"])
        process.send_signal(signal.SIGKILL)  # while the others are about to decide
        seen, node = page.nodes, page.state["node"]
        process.wait()
    with command(tmp_path) as (process, start):
        assert "/start/" in start
        again = open_page(start.partition("/start/")[0] + "/play/" + link.rpartition("/")[2])
        assert again.newest["hello"]["game"]["seed"] == "7"
        assert {k: again.nodes[k] for k in seen} == seen
        assert again.my_turn()["node"] >= node
        again.decide(again.state["spots"][0]["choices"][0]["action"])
        other = [sys.executable, "-m", "busenv.experiments.cli", "play", "--no-browser"]
        done = subprocess.run(
            [*other, "--folder", str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 2
        assert "is in use" in done.stderr
        again.close()


def test_ctrl_c_ends_the_server_in_one_line(tmp_path: Path) -> None:
    seats = [word for seat in ("me", "friend", "greedy") for word in ("--seat", seat)]
    with command(tmp_path, *seats) as (process, link):
        page = open_page(link)
        children = _children(process.pid)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
        assert told == "busenv: stopped\n"
        assert process.returncode == STATUS
        assert time.monotonic() - started < 10  # two are promised on a machine with time
        while any(_runs(child) for child in children):
            assert time.monotonic() - started < PATIENCE
            time.sleep(0.05)
        del page


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--seat", "me"], "1 seats; allowed: 3, 4 or 5"),
        (["--seat", "me", "--seat", "me", "--seat", "gready"], "gready.*did you mean.*greedy"),
        (["--seat", "me"] * 3 + ["--first-player", "4"], "allowed: 0 to 2"),
        (["--board", "nowhere"], "no board 'nowhere'"),
        (["--rules", "mine"], "unknown rules 'mine'"),
    ],
)
def test_what_cannot_be_played_is_told_in_a_sentence(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["play", "--no-browser", "--folder", str(tmp_path / "games"), *words])
    assert re.search(told, capsys.readouterr().err)
    assert not (tmp_path / "games").exists()


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(SystemExit, match="2"):
            main(["play", "--no-browser", "--folder", str(tmp_path), "--port", port])
    assert f"cannot listen at 127.0.0.1, port {port}" in capsys.readouterr().err


def test_the_command_line_names_what_pages_may_not() -> None:
    offers = make_offers(["me", "exec:cat", "greedy"], "splotter-1999", "city")
    offers.check_agent("exec:cat")
    assert offers.choices()["seats"] == ["me", "exec:cat", "greedy"]
    assert offers.choices()["editions"][0]["name"] == "splotter-1999"
    chairs = new_game(["me", "friend", "exec:cat"], 2, 5).seats
    assert [(chair.kind, chair.spec) for chair in chairs] == [
        ("me", None), ("friend", None), ("agent", "exec:cat"),
    ]  # fmt: skip
    assert own_address("0.0.0.0", 80) == "http://127.0.0.1:80"
    assert own_address("::1", 80) == "http://[::1]:80"
    assert addresses("127.0.0.1", 80) == []
    assert addresses("10.1.2.3", 80) == ["http://10.1.2.3:80"]
