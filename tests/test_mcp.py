"""The server of the Model Context Protocol, with the package's own client."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from busenv.play.mcp_server import build_server
from tests.support.commands import refusal
from tests.support.play_client import PATIENCE

BUSENV = [sys.executable, "-m", "busenv", "mcp"]


async def call(client: Client, tool: str, error: bool = False, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error == error, result.content[0].text
    return result.content[0].text


def test_a_client_plays_a_game_by_tools() -> None:
    async def play() -> None:
        async with Client(build_server()) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools == {
                *("start_game", "position", "drawing", "legal_actions"),
                *("take_action", "undo", "hint"),
            }
            assert "start_game starts one" in await call(client, "position", error=True)
            text = await call(client, "start_game", seats=["me", "greedy", "random"], seed=1)
            assert "take_action" in text
            assert "last line" not in text
            assert "Its rules" in text
            start = await call(client, "position")
            assert start.startswith("You are seat 0.")
            assert start in text
            assert (await call(client, "drawing")).startswith("<svg")
            listed = await call(client, "legal_actions")
            assert start.endswith(listed)
            assert "nothing to undo" in await call(client, "undo", error=True)
            assert "not an action" in await call(client, "take_action", error=True, action="x")
            assert await call(client, "position") == start
            hint = await call(client, "hint")
            assert hint.removeprefix("planner takes ") in listed
            words = listed.splitlines()[0].split(": ", 1)[1]
            after = await call(client, "take_action", action=words)
            assert await call(client, "undo") == start
            for number in (listed.split(":")[0], int(listed.split(":")[0])):
                assert after.endswith(await call(client, "take_action", action=number))
                assert await call(client, "undo") == start
            while "Game over" not in after:
                hint = await call(client, "hint", agent="greedy")
                after = await call(client, "take_action", action=hint.split(": ", 1)[1])
            assert "seat 1 (greedy): " in after or "seat 2 (random): " in after
            assert "the game is over" in await call(client, "take_action", error=True, action="8")
            assert "the game is over" in await call(client, "hint", error=True)
            assert "the game is over" in await call(client, "legal_actions", error=True)
            assert "You are seat 0" in await call(client, "undo")
            await call(client, "start_game", seats=["me"] * 5)

    asyncio.run(play())


def test_agents_and_boards_outside_the_lists_are_refused(tmp_path: Path) -> None:
    async def play() -> None:
        mark = tmp_path / "mark"
        async with Client(build_server(["greedy", "net:city-5"])) as client:
            for seats in (["me", "greedy", f"exec:touch {mark}"], ["me", "llm:m", "greedy"]):
                text = await call(client, "start_game", error=True, seats=seats)
                assert "allowed: me, greedy" in text
            for setting in ({"board": "/etc/passwd"}, {"edition": str(mark)}, {"seed": -1}):
                seats = ["me", "me", "me"]
                text = await call(client, "start_game", error=True, seats=seats, **setting)
                assert "allowed: " in text
            assert "allowed" in await call(client, "start_game", error=True, seats=["me"])
            text = await call(client, "start_game", error=True, seats=["greedy"] * 3)
            assert "no seat is 'me'; name at least one" in text
            small = {"seats": ["me", "net:city-5", "me"], "board": "generated:small:1"}
            assert "trained on" in await call(client, "start_game", error=True, **small)
            for board in ("generated:huge:1", "generated:small:train", "generated:small:-1"):
                text = await call(client, "start_game", error=True, seats=["me"] * 3, board=board)
                assert "allowed: " in text
            seats, board = ["me", "greedy", "me"], "generated:small:7"
            assert "You are seat" in await call(client, "start_game", seats=seats, board=board)
        assert not mark.exists()

    asyncio.run(play())


def test_the_command_serves_standard_input_and_output(capsys: pytest.CaptureFixture[str]) -> None:
    async def play() -> None:
        server = StdioServerParameters(command=BUSENV[0], args=[*BUSENV[1:], "--agent", "uct:5"])
        async with Client(server) as client:
            seats = ["uct:5", "me", "random"]
            assert "You are seat 1" in await call(client, "start_game", seats=seats, seed=1)

    asyncio.run(play())
    assert "unknown agent 'unknown'" in refusal(capsys, "mcp", "--agent", "unknown")


def test_wrong_arguments_get_one_line_and_a_client_that_leaves_no_traceback() -> None:
    version = {"name": "test", "version": "1"}
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": version}
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 2, "params": {"name": "start_game", "arguments": {"seats": "me"}}},
    ]
    with subprocess.Popen(
        BUSENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        answers = []
        for request in requests:
            line = json.dumps({"jsonrpc": "2.0", "method": "tools/call", **request})
            print(line, file=process.stdin, flush=True)
            if "id" in request:
                answers.append(json.loads(process.stdout.readline()))
        texts = [answer["result"]["content"][0]["text"] for answer in answers[1:]]
        assert texts[0] == "seats is 'me'; input should be a valid list"
        process.stdout.close()
        print(line, file=process.stdin, flush=True)
        process.stdin.close()
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr.read() == ""
