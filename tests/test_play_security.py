"""What must not come from a page: each is refused by name, and changes nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

import busenv
from busenv.experiments.play.catalogue import (
    ANALYSTS,
    Offers,
    for_analysis,
    helpers_of,
    short_spec,
)
from busenv.experiments.play.messages import LARGEST_BODY, LONGEST_MESSAGE, Refusal
from busenv.experiments.play.request_guard import is_own_host
from tests.support.playing import PageClient, Served, serving

MESSAGES = 5000
AT_ONCE = 50
VALID = (  # by the schema; most are refused for another reason
    {"type": "decide", "node": 0, "action": 8},
    {"type": "undo", "node": 0},
    {"type": "go", "node": 0, "to": 0},
    {"type": "pause", "on": True},
    {"type": "pace", "seconds": 1.5},
    {"type": "hint", "node": 0, "agent": "greedy"},
    {"type": "analysis", "on": True, "agent": None},
    {"type": "view", "nodes": [0]},
    {"type": "name", "seat": 0, "name": "Ada"},
    {"type": "again"},
)
STRANGE: tuple[Any, ...] = (
    None, True, "", "x", "0", -1, 1.5, 2**40, 1e300, [], [1], {}, {"node": 0}, "\x00", "a" * 300,
)  # fmt: skip
BAD_AGENTS = {
    "exec:cat": "agent_refused",
    "exec@5:python3 -c pass": "agent_refused",
    "net:/etc/passwd": "agent_refused",
    "net:../models/city-2": "agent_refused",
    "net:city-2.safetensors": "agent_refused",
    "ppo:runs/demo/model.safetensors": "agent_refused",
    "az:C:\\model:100": "agent_refused",
    "az:nobody:100": "no_such_agent",
    "net:nobody": "no_such_agent",
    "net:__init__": "agent_refused",
    "uct:999999999": "agent_refused",
    "uct:3600s": "agent_refused",
    "uct@99:100": "agent_refused",
    "gready": "no_such_agent",
    "uct:": "no_such_agent",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("games")) as server:
        yield server


Case = tuple[str, "str | bytes", str]  # who sends, what, the name of the refusal


def make_cases(rng: random.Random, illegal: list[int], nodes: int) -> Iterator[Case]:
    """Messages without end, each with the name by which it is to be refused."""
    node = nodes - 1

    def text(**fields: Any) -> str:
        return json.dumps(fields)

    def other_node() -> int:
        return rng.choice([k for k in range(2 * nodes) if k != node] + [2**31])

    kinds: list[Callable[[], Case]] = [
        lambda: ("host", _cut_off(rng), "bad_json"),
        lambda: ("host", rng.randbytes(rng.randint(0, 40)), "bad_json"),
        lambda: (rng.choice(["host", "friend", "watch"]), _mistyped(rng), "bad_message"),
        lambda: ("host", "[" * rng.randint(300, 9000), "bad_json"),
        lambda: ("host", text(type="name", seat=0, name="x" * LONGEST_MESSAGE), "too_large"),
        lambda: ("host", text(type="name", seat=0, name=rng.choice("\x1b\u202e\x00") + "x"),
                 "bad_message"),
        lambda: ("host", text(type="decide", node=node, action=rng.choice(illegal)),
                 "illegal_action"),
        lambda: ("host", text(type="decide", node=other_node(), action=0), "stale"),
        lambda: ("friend", text(type="decide", node=node, action=rng.randrange(375)),
                 "not_your_turn"),
        lambda: ("watch", text(type="decide", node=node, action=rng.randrange(375)),
                 "only_watching"),
        lambda: ("watch", text(type=rng.choice(["undo", "redo", "hint"]), node=node),
                 "only_watching"),
        lambda: ("watch", text(type=rng.choice(["pause", "analysis"]), on=True), "only_watching"),
        lambda: ("host", text(type="decide", node=node, action=0, token="x", seat=1),
                 "bad_message"),
        lambda: ("friend", text(type="name", seat=rng.choice([0, 2, 3, 4]), name="x"),
                 "not_your_seat"),
        lambda: ("friend", text(type="again"), "only_host"),
        lambda: ("friend", text(type="go", node=node, to=nodes + rng.randrange(99)),
                 "no_such_node"),
        lambda: ("host", text(type="view", nodes=[0, nodes + rng.randrange(99)]), "no_such_node"),
        lambda: ("host", text(type=rng.choice(["undo", "redo"]), node=other_node()), "stale"),
        lambda: ("host", text(type="redo", node=node), "nothing_to_redo"),
        lambda: _bad_agent(rng, node),
    ]  # fmt: skip
    while True:
        yield rng.choice(kinds)()


def _cut_off(rng: random.Random) -> str:
    whole = json.dumps(rng.choice(VALID))
    return whole[: rng.randrange(len(whole))]


def _mistyped(rng: random.Random) -> str:
    """A message by no schema: a field is missing, of another type, or one too many."""
    fields = dict(rng.choice(VALID[:8]))
    name = rng.choice([key for key in fields if key != "agent"])
    how = rng.randrange(3)
    if how == 0:
        del fields[name]
    elif how == 1:
        fields[name] = rng.choice([{"a": 1}, None, "\x00"])
    else:
        fields[rng.choice(["x", "seat", "__proto__", "request"])] = rng.choice([-1, "1", [], {}])
    return json.dumps(fields)


def _bad_agent(rng: random.Random, node: int) -> Case:
    spec, name = rng.choice([*BAD_AGENTS.items()])
    asked: dict[str, Any] = rng.choice(
        [
            {"type": "hint", "node": node},
            {"type": "analysis", "on": True},
            {"type": "graph", "on": True},
        ]
    )
    return "host", json.dumps({**asked, "agent": spec}), name


def test_5000_messages_are_refused_by_name_and_change_nothing(served: Served) -> None:
    host = served.open(served.begin("me", "friend", "greedy", first_player=0, seed=3))
    links = host.newest["hello"]["links"]
    pages = {"host": host, "friend": served.open(links["seats"][1])}
    pages["watch"] = served.open(links["watch"])
    host.send("pace", seconds=0)
    while host.my_turn()["node"] < 1:
        host.decide(host.state["spots"][0]["choices"][0]["action"])
    state, (file,) = host.my_turn(), served.hall.store.folder.glob("*.jsonl")
    kept = file.read_bytes()
    legal = {choice["action"] for spot in state["spots"] for choice in spot["choices"]}
    illegal = [k for k in (*range(380), 2**31) if k not in legal]
    cases = make_cases(random.Random(1), illegal, state["node"] + 1)
    names: dict[str, int] = {}
    for _ in range(MESSAGES // AT_ONCE):
        some = [next(cases) for _ in range(AT_ONCE)]
        for sender, message, _ in some:
            pages[sender].socket.send(message)
        for sender, message, name in some:
            found = pages[sender].until("error")
            assert (found["name"], bool(found["words"])) == (name, True), message[:300]
            names[name] = names.get(name, 0) + 1
    assert sum(names.values()) == MESSAGES
    assert len(names) >= 13
    assert file.read_bytes() == kept
    for page in pages.values():
        assert {**page.state, "pace": 0} == {**page.state, "pace": 0, "version": state["version"]}
        assert page.state["node"] == state["node"]
    again = served.open(
        served.hall.for_host(served.hall.find(links["watch"][6:])[0])["links"]["watch"]
    )
    assert (again.state["version"], again.state["node"]) == (state["version"], state["node"])
    assert {**host.state, "news": None} == {**state, "news": None}
    assert host.decide(state["spots"][0]["choices"][0]["action"])["node"] == state["node"] + 1
    for page in (*pages.values(), again):
        page.close()


def test_a_message_beyond_all_size_ends_its_connection_only(served: Served) -> None:
    link = served.begin("me", "greedy", "greedy")
    page, other = served.open(link), served.open(link)
    page.socket.send("x" * 2**17)
    with pytest.raises(ConnectionClosed):
        page.until("never")
    assert other.refused("redo", node=other.my_turn()["node"]) == "nothing_to_redo"
    other.close()


def test_a_link_leads_to_its_own_chair_only(served: Served) -> None:
    link = served.begin("friend", "friend", "greedy", first_player=0)
    host = served.open(link)
    one, two = (served.open(link) for link in host.newest["hello"]["links"]["seats"][:2])
    node, action = one.my_turn()["node"], one.state["spots"][0]["choices"][0]["action"]
    for page in (host, two):
        assert page.refused("decide", node=node, action=action) == "not_your_turn"
    one.decide(action)
    for token in ("", "x", "../start", link[6:-1], link[6:] + "A", "%00", served.hall.key):
        with pytest.raises((ConnectionClosed, InvalidStatus)) as found:
            served.open(f"/play/{token}")
        if isinstance(found.value, ConnectionClosed):
            assert found.value.rcvd is not None
            assert found.value.rcvd.code == 4404
        assert served.get(f"/play/{token}/record.json")[0] == 404
    for page in (host, one, two):
        page.close()


@pytest.mark.parametrize(
    "origin",
    ["", "null", "http://evil.example", "http://127.0.0.1:1", "http://localhost", "file://"],
)
def test_another_origins_page_is_refused(served: Served, origin: str) -> None:
    link = served.begin("me", "greedy", "greedy")
    with pytest.raises(InvalidStatus, match="403"):
        served.open(link, Origin=origin)
    body = {"seats": [{"kind": "me"}] * 3}
    for path in (f"/start/{served.hall.key}/games", f"/start/{served.hall.key}/preview"):
        status, answer = served.post(path, body, Origin=origin)
        assert (status, answer["error"]) == (403, "other_origin")


def test_another_hosts_name_is_refused(served: Served) -> None:
    link = served.begin("me", "greedy", "greedy")
    for host in (
        "evil.example",
        f"evil.example:{served.port}",
        "127.0.0.1.evil.example",
        "",
        "[::1",
    ):
        for path in (
            link,
            f"{link}/record.json",
            f"/start/{served.hall.key}",
            "/static/pieces.css",
        ):
            status, text, _ = served.get(path, Host=host)
            assert (status, json.loads(text)["error"]) == (403, "other_host")
    own = ("127.0.0.1:80", "localhost:1", "[::1]:5", "127.9.9.9")
    assert all(is_own_host(host, "127.0.0.1") for host in own)
    assert not is_own_host("192.168.1.5:80", "127.0.0.1")
    assert is_own_host("192.168.1.5:80", "0.0.0.0")
    assert not is_own_host("evil.example", "0.0.0.0")


def test_what_is_posted_is_refused_by_name(served: Served) -> None:
    path = f"/start/{served.hall.key}/games"
    three: list[dict[str, Any]] = [{"kind": "me"}] * 3
    agent = {"kind": "agent", "spec": "greedy"}
    wrong: list[tuple[Any, int, str]] = [
        (b"{", 400, "bad_json"),
        (b"\xff", 400, "bad_json"),
        ([], 400, "bad_game"),
        ({"seats": three[:2]}, 400, "bad_game"),
        ({"seats": three * 2}, 400, "bad_game"),
        ({"seats": three, "rules": "nobody's"}, 400, "bad_game"),
        ({"seats": three, "rules": "/etc/passwd"}, 400, "bad_game"),
        ({"seats": three, "board": "../city.json"}, 400, "bad_game"),
        ({"seats": three, "first_player": 3}, 400, "bad_game"),
        ({"seats": three, "seed": -1}, 400, "bad_game"),
        ({"seats": three, "seed": 1.5}, 400, "bad_game"),
        ({"seats": three, "record": 5}, 400, "bad_game"),
        ({"seats": three, "record": "[]"}, 400, "bad_record"),
        ({"seats": three, "extra": 1}, 400, "bad_game"),
        ({"seats": [*three[:2], {"kind": "agent"}]}, 400, "bad_game"),
        ({"seats": [*three[:2], {"kind": "me", "spec": "greedy"}]}, 400, "bad_game"),
        ({"seats": [*three[:2], agent | {"name": "\x1b[31m"}]}, 400, "bad_game"),
        (b" " * (LARGEST_BODY + 1), 413, "too_large"),
    ]
    wrong += [
        ({"seats": [*three[:2], agent | {"spec": spec}]}, 400, name)
        for spec, name in BAD_AGENTS.items()
    ]
    games = len(served.hall.choices()["games"])
    for body, status, name in wrong:
        found, answer = served.post(path, body)
        assert (found, answer["error"]) == (status, name), body
        assert answer["words"]
    form = {"Content-Type": "text/plain"}  # which a form of another site could send
    assert served.post(path, {"seats": three}, **form)[1]["error"] == "not_json"
    assert served.post("/start/wrong/games", {"seats": three})[0] == 404
    assert len(served.hall.choices()["games"]) == games


def test_pages_run_nothing_but_their_own_script(served: Served) -> None:
    link = served.begin("me", "greedy", "greedy")
    for path in (link, f"/start/{served.hall.key}", "/static/pieces.css", "/nowhere"):
        _, _, headers = served.get(path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
    for path in ("/static/..%2fserver.py", "/static/server.py", "/static/replay.html", "/static/x"):
        assert served.get(path)[0] == 404
    for path in ("/", "/start/", f"/start/{served.hall.key[:-1]}", "/play/x", "/docs"):
        assert served.get(path)[0] == 404


def test_names_and_records_reach_replay_pages_escaped(served: Served) -> None:
    evil = "<script>alert(1)</script>"[:40]
    chairs = [{"kind": "me", "name": evil}, *[{"kind": "agent", "spec": "greedy"}] * 2]
    link = served.post(f"/start/{served.hall.key}/games", {"seats": chairs})[1]["link"]
    text = served.get(f"{link}/replay.html")[1]
    assert evil not in text
    assert "&lt;script&gt;alert(1)" in text
    record = json.loads(busenv.Game(3, seed=1).record().to_json())
    record["board"]["name"] = evil
    text = json.dumps(record)
    link = served.begin("me", "me", "me", record=text)
    assert evil not in served.get(f"{link}/replay.html")[1]


def test_who_may_not_be_run_by_a_page_is_not_run_from_a_file_either(tmp_path: Path) -> None:
    """A game with a program at a seat goes on only when the command line names it again."""
    spec = f"exec:touch {tmp_path / 'ran'}"
    offers = Offers(trusted={spec})
    folder = tmp_path / "games"
    with serving(folder, offers) as served:
        link = served.begin("me", spec, "greedy", first_player=0)
        page = served.open(link)
        assert page.newest["who"]["seats"][1]["name"] == "exec:touch"
        assert str(tmp_path) not in json.dumps([*page.newest.values()])
        page.close()
    with serving(folder) as served:
        page = served.open(link)
        page.send("pace", seconds=0)
        for _ in range(2):
            page.decide(page.my_turn()["spots"][0]["choices"][0]["action"])
        assert "command line" in page.until("state", lambda state: state["trouble"])["trouble"]
        page.close()
    assert not (tmp_path / "ran").exists()


def test_specs_as_pages_know_them() -> None:
    assert short_spec("net:/home/me/runs/x/model.safetensors") == "net:model"
    assert short_spec("az:runs/m.safetensors:300") == "az:m:300"
    assert short_spec("exec@2:python3 /home/me/player.py") == "exec@2:python3"
    assert short_spec("uct@2:0.5s") == "uct@2:0.5s"
    assert helpers_of(["exec:cat", "net:/x/y", "uct:77", None]) == [
        *ANALYSTS,
        "uct:77",
        "planner",
        "greedy",
    ]
    assert for_analysis("uct:1000", 0.4) == "uct:0.4s"
    assert for_analysis("uct@2:5s", 0.4) == "uct@2:0.4s"
    assert for_analysis("az@2:city-3:300", 0.4) == "az@2:city-3:0.4s"
    assert for_analysis("net:city-2", 0.4) == "net:city-2"
    with pytest.raises(Refusal):
        Offers().check_agent("exec:cat")
    Offers(trusted={"exec:cat"}).check_agent("exec:cat")


def test_the_client_of_these_tests_would_notice_a_change(served: Served) -> None:
    """A message that is in order is done: the 5,000 are refused for what is wrong in them."""
    page: PageClient = served.open(served.begin("me", "me", "me", first_player=0))
    for message in VALID[:1]:
        page.socket.send(json.dumps(message))
        assert page.until("state")["node"] == 1
    page.close()
