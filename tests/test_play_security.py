"""Security of the game server: invalid requests get an error code and change nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from busenv.agents.specs import short_spec
from busenv.play.catalogue import Catalogue
from busenv.play.messages import MAX_BODY, MAX_REQUEST
from busenv.play.request_guard import is_own_host
from tests.support.play_client import Served, serving

BAD_AGENTS = ("exec:cat", "llm:gpt-4o", "py:os:system", "net:/etc/passwd", "uct:3600s", "gready")
Case = tuple[str, "str | bytes | dict[str, Any]", str]  # sender, message, expected error code


def invalid_messages(node: int, illegal: int) -> list[Case]:
    """Messages about the latest node of a game, in which it is the host's turn."""
    decide = {"type": "decide", "node": node, "action": 0}
    undo = {"type": "undo", "node": node}
    analysis = {"type": "analysis", "node": node}
    only_host: list[dict[str, Any]] = [
        undo,
        {"type": "jump", "node": node, "target": 0},
        {"type": "pause", "enabled": True},
        {"type": "delay", "seconds": 1},
        {"type": "rematch"},
    ]
    return [
        ("host", '{"type": "und', "bad_message"),
        ("host", b"\xff\x00", "bad_message"),
        ("host", "[" * 9000, "bad_message"),
        ("watch", {"type": "decide", "node": node}, "bad_message"),
        ("friend", {"type": "pause", "enabled": None}, "bad_message"),
        ("host", {**decide, "token": "x"}, "bad_message"),
        ("host", {"type": "rename", "seat": 0, "name": "\u202ex"}, "bad_message"),
        ("host", {"type": "rename", "seat": 0, "name": "x" * MAX_REQUEST}, "too_large"),
        ("host", {**decide, "action": illegal}, "illegal_action"),
        ("host", {**decide, "action": 2**31}, "illegal_action"),
        ("host", {**decide, "node": node - 1}, "stale"),
        ("host", {**undo, "node": 2**31}, "stale"),
        ("friend", decide, "not_your_turn"),
        ("watch", decide, "only_watching"),
        ("watch", analysis, "only_watching"),
        *((guest, fields, "only_host") for guest in ("friend", "watch") for fields in only_host),
        ("friend", {"type": "rename", "seat": 0, "name": "x"}, "not_your_seat"),
        ("host", {"type": "jump", "node": node, "target": node + 1}, "no_such_node"),
        ("host", {"type": "view", "node": node + 1}, "no_such_node"),
        ("host", {"type": "redo", "node": node}, "nothing_to_redo"),
        ("host", {**analysis, "agent": "uct:9s"}, "bad_message"),
    ]


def test_invalid_messages_change_nothing(served: Served) -> None:
    folder = served.server.store.folder
    earlier = {*folder.glob("*.jsonl")}
    host = served.open(link := served.begin("me", "friend", "greedy", first_player=0, seed=3))
    links = host.latest["init"]["links"]
    addresses = {"host": link, "friend": links["seats"][1], "watch": links["spectator"]}
    pages = {"host": host, **{name: served.open(addresses[name]) for name in ("friend", "watch")}}
    host.send("delay", seconds=0)
    while host.my_turn()["node"] < 1:
        host.decide_first()
    state, (file,) = host.my_turn(), {*folder.glob("*.jsonl")} - earlier
    content, before = file.read_bytes(), states(served, addresses)
    legal = {choice["action"] for target in state["targets"] for choice in target["choices"]}
    for sender, message, code in invalid_messages(state["node"], min({*range(375)} - legal)):
        text = json.dumps(message) if isinstance(message, dict) else message
        pages[sender].socket.send(text)
        answer = pages[sender].until("error")
        assert (answer["code"], bool(answer["message"])) == (code, True), text[:300]
    assert file.read_bytes() == content
    assert states(served, addresses) == before
    assert {name: page.state for name, page in pages.items()} == before
    assert host.decide(state["targets"][0]["choices"][0]["action"])["node"] == state["node"] + 1
    for page in pages.values():
        page.close()


def states(served: Served, addresses: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The state that a new page receives at each address."""
    received = {}
    for name, address in addresses.items():
        page = served.open(address)
        received[name] = page.state
        page.close()
    return received


def test_oversized_message_closes_only_its_connection(served: Served) -> None:
    link = served.begin("me", "greedy", "greedy")
    page, other = served.open(link), served.open(link)
    page.socket.send("x" * 2**17)
    with pytest.raises(ConnectionClosed):
        page.until("never")
    assert other.error_code("redo", node=other.my_turn()["node"]) == "nothing_to_redo"
    other.close()


def test_link_gives_access_to_its_own_seat_only(served: Served) -> None:
    link = served.begin("friend", "friend", "greedy", first_player=0)
    host = served.open(link)
    one, two = (served.open(link) for link in host.latest["init"]["links"]["seats"][:2])
    node, action = one.my_turn()["node"], one.first_choice
    for page in (host, two):
        assert page.error_code("decide", node=node, action=action) == "not_your_turn"
    one.decide(action)
    for token in ("", "x", "../start", link[6:-1], link[6:] + "A", "%00", served.server.key):
        with pytest.raises((ConnectionClosed, InvalidStatus)) as caught:
            served.open(f"/play/{token}")
        if isinstance(caught.value, ConnectionClosed):
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 4404
        assert served.get(f"/play/{token}/record.json")[0] == 404
    for page in (host, one, two):
        page.close()


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://127.0.0.1:1"])
def test_other_origins_are_refused(served: Served, origin: str) -> None:
    link = served.begin("me", "greedy", "greedy")
    with pytest.raises(InvalidStatus, match="403"):
        served.open(link, origin)
    body = {"seats": [{"kind": "me"}] * 3}
    status, answer = served.post(f"{served.start_link}/games", body, Origin=origin)
    assert (status, answer["code"]) == (403, "other_origin")


def test_other_host_names_are_refused(served: Served) -> None:
    link = served.begin("me", "greedy", "greedy")
    port = served.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "", "[::1"):
        for path in (link, f"{link}/record.json", served.start_link, "/static/pieces.css"):
            status, text, _ = served.get(path, Host=host)
            assert (status, json.loads(text)["code"]) == (403, "other_host")
    own = ("127.0.0.1:80", "localhost:1", "[::1]:5", "127.9.9.9")
    assert all(is_own_host(host, "127.0.0.1") for host in own)
    assert is_own_host("192.168.1.5:80", "0.0.0.0")
    assert not is_own_host("evil.example", "0.0.0.0")


def test_invalid_post_bodies_are_refused(served: Served) -> None:
    path = f"{served.start_link}/games"
    three: list[dict[str, Any]] = [{"kind": "me"}] * 3
    agent = {"kind": "agent", "spec": "greedy"}
    wrong: list[tuple[Any, int, str]] = [
        (b"{", 400, "bad_game"),
        ({"seats": three[:2]}, 400, "bad_game"),
        ({"seats": three, "rules": "/etc/passwd"}, 400, "bad_game"),
        ({"seats": three, "board": "../city.json"}, 400, "bad_game"),
        ({"seats": three, "first_player": 3}, 400, "bad_game"),
        ({"seats": three, "record": "[]"}, 400, "bad_record"),
        ({"seats": three, "extra": 1}, 400, "bad_game"),
        ({"seats": three, "seed": 2**64}, 400, "bad_game"),
        ({"seats": [*three[:2], {"kind": "agent"}]}, 400, "bad_game"),
        ({"seats": [*three[:2], agent | {"name": "\x1b[31m"}]}, 400, "bad_game"),
        (b" " * (MAX_BODY + 1), 413, "too_large"),
    ]
    wrong += [
        ({"seats": [*three[:2], agent | {"spec": spec}]}, 400, "agent_refused")
        for spec in BAD_AGENTS
    ]
    games = len(served.server.start_options()["games"])
    for body, status, code in wrong:
        actual, answer = served.post(path, body)
        assert (actual, answer["code"]) == (status, code), body
        assert answer["message"]
    form = {"Content-Type": "text/plain"}  # a form of another site can send this type
    assert served.post(path, {"seats": three}, **form)[1]["code"] == "not_json"
    assert served.post("/start/wrong/games", {"seats": three})[0] == 404
    assert len(served.server.start_options()["games"]) == games


def test_response_headers_and_unknown_paths(served: Served) -> None:
    link = served.begin("me", "greedy", "greedy")
    for path in (link, served.start_link, "/static/pieces.css", "/nowhere"):
        _, _, headers = served.get(path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
    policy = served.get(f"{link}/replay.html")[2]["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "frame-ancestors 'self' http://localhost:*" in policy
    for path in ("/static/..%2fserver.py", "/static/server.py", "/static/replay.html", "/static/x"):
        assert served.get(path)[0] == 404
    for path in ("/", "/start/", f"/start/{served.server.key[:-1]}", "/play/x", "/docs"):
        assert served.get(path)[0] == 404


def test_program_of_a_saved_game_needs_the_command_line(tmp_path: Path) -> None:
    """A saved game with a program continues only if the command line names the program."""
    spec = f"exec:touch {tmp_path / 'ran'}"
    catalogue = Catalogue(trusted={spec})
    folder = tmp_path / "games"
    with serving(folder, catalogue) as served:
        link = served.begin("me", spec, "greedy", first_player=0)
        page = served.open(link)
        assert page.latest["participants"]["seats"][1]["name"] == "exec:touch"
        assert str(tmp_path) not in json.dumps([*page.latest.values()])
        page.close()
    with serving(folder) as served:
        page = served.open(link)
        page.send("delay", seconds=0)
        for _ in range(2):
            page.decide_first()
        assert "command line" in page.until("state", lambda state: state["failure"])["failure"]
        page.close()
    assert not (tmp_path / "ran").exists()


def test_specs_on_pages_hide_paths() -> None:
    assert short_spec("net:/home/me/runs/x/model.safetensors") == "net:model"
    assert short_spec("az:runs/m.safetensors:300") == "az:m:300"
    assert short_spec("exec@2:python3 /home/me/player.py") == "exec@2:python3"
    assert short_spec("exec:player\t--key=secret") == "exec:player"
    for spec in ("uct@2:0.5s", "llm:meta-llama/Llama-3.1-8B-Instruct"):
        assert short_spec(spec) == spec
