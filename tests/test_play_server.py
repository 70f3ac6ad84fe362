"""Games in the browser, on the server's side: whole games by messages, taken back, branched, of
several people, and after a restart."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import busenv
from busenv import encode, load_board
from busenv.experiments.play.game_session import Place, Table
from busenv.experiments.play.game_store import Header, new_tokens
from busenv.experiments.play.messages import Chair
from busenv.game.actions import Building
from busenv.render.svg import draw_map, draw_panels
from tests.support.playing import PageClient, Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("games")) as server:
        yield server


def play_to_the_end(page: PageClient, seed: int = 0) -> None:
    """Decide by the first choice of one spot or another until the game is over."""
    while not page.my_turn()["over"]:
        assert not page.state["trouble"]
        spots = page.state["spots"]
        seed = (seed * 75 + 74) % 65537
        page.decide(spots[seed % len(spots)]["choices"][0]["action"])


def test_a_whole_game_by_messages_ends_as_the_rules_have_it(served: Served) -> None:
    page = served.open(link := served.begin("me", "greedy", "planner", "greedy", seed=5))
    page.send("pace", seconds=0)
    play_to_the_end(page)
    status, text, headers = served.get(f"{link}/record.json")
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    game = busenv.Game.from_record(busenv.Record.from_json(text))  # which checks the result
    assert game.is_over
    assert game.seed == 5
    result = page.state["result"]
    assert (result["points"], result["ranking"]) == (game.points, game.ranking())
    line = [page.nodes[node] for node in page.state["line"]]
    assert [node["action"] for node in line[1:]] == game.history
    assert page.nodes[page.state["node"]]["points"] == game.points
    parts = draw_map(game.board, game.position(), game.last_decision)
    parts |= draw_panels(game.board, game.position(), game.rules, game.last_decision)
    assert page.views[page.state["node"]] == parts
    status, text, headers = served.get(f"{link}/replay.html")
    assert status == 200
    assert "Final score" in text
    assert "sandbox" in headers["content-security-policy"]
    page.close()


def test_taking_back_keeps_the_main_line_and_branches(served: Served) -> None:
    page = served.open(served.begin("me", "greedy", "greedy", first_player=0, seed=1))
    page.send("pace", seconds=0)
    first = page.my_turn()["node"]
    choices = [choice["action"] for spot in page.state["spots"] for choice in spot["choices"]]
    page.decide(choices[0])
    second = page.my_turn()["node"]
    page.decide(page.state["spots"][0]["choices"][0]["action"])
    page.my_turn()
    line, node = page.state["line"], page.state["node"]
    assert page.refused("redo", node=node) == "nothing_to_redo"
    page.send("undo", node=node)
    assert page.until("state")["node"] == second
    page.send("undo", node=second)
    back = page.until("state")
    assert (back["node"], back["line"], back["undo"], back["redo"]) == (first, line, False, True)
    assert page.refused("undo", node=first) == "nothing_to_undo"
    page.send("redo", node=first)
    assert page.until("state")["node"] == second
    page.send("go", node=second, to=first)
    page.until("state")
    branch = page.decide(choices[1])["node"]
    assert page.nodes[branch]["parent"] == first
    assert branch not in line
    page.my_turn()
    main = [0]
    while children := [n for n, found in page.nodes.items() if found["parent"] == main[-1]]:
        main.append(min(children))
    assert main == line
    page.send("go", node=page.state["node"], to=first)
    page.until("state")
    assert page.decide(choices[0])["node"] == line[first + 1]  # known already: no branch of its own
    agents = next(n for n in line if page.nodes[n]["turn"] not in (0, -1))
    page.send("go", node=page.my_turn()["node"], to=agents)
    there = page.until("state")
    assert (there["node"], there["paused"], there["thinking"]) == (agents, True, False)
    page.send("pause", on=False)
    assert page.until("state")["thinking"]
    page.my_turn()
    page.close()


def test_two_people_and_a_spectator(served: Served) -> None:
    host = served.open(served.begin("me", "friend", "greedy", first_player=0, seed=2))
    links = host.newest["hello"]["links"]
    friend, spectator = served.open(links["seats"][1]), served.open(links["watch"])
    assert links["seats"][0] is links["seats"][2] is None
    assert [p.newest["hello"]["you"]["role"] for p in (host, friend, spectator)] == [
        "host", "seat", "watch",
    ]  # fmt: skip
    assert friend.newest["hello"]["links"] is None
    host.until("who", lambda who: who["watching"] == 1)
    assert [seat["here"] for seat in host.newest["who"]["seats"]] == [1, 1, 0]
    node, action = host.state["node"], host.state["spots"][0]["choices"][0]["action"]
    assert friend.state["spots"] == spectator.state["spots"] == []
    assert friend.refused("decide", node=node, action=action) == "not_your_turn"
    assert spectator.refused("decide", node=node, action=action) == "only_watching"
    for kind in ("undo", "redo", "hint"):
        assert spectator.refused(kind, node=node) == "only_watching"
    for kind in ("pause", "analysis"):
        assert spectator.refused(kind, on=True) == "only_watching"
    assert spectator.refused("pace", seconds=1) == "only_watching"
    assert spectator.refused("name", seat=0, name="x") == "not_your_seat"
    assert friend.refused("again") == "only_host"
    host.send("pace", seconds=0)
    for _ in range(2):
        host.decide(host.my_turn()["spots"][0]["choices"][0]["action"])
    assert friend.my_turn()["turn"] | {"ask": ""} == {
        "seat": 1, "kind": "friend", "yours": True, "phase": "SETUP_BUILDINGS", "ask": "",
    }  # fmt: skip
    spectator.until("state", lambda state: state["node"] == friend.state["node"])
    assert host.refused("decide", node=friend.state["node"], action=action) == "not_your_turn"
    friend.send("name", seat=1, name="<b>Bo</b>")
    who = spectator.until("who", lambda who: who["seats"][1]["name"] != "player 1")
    assert who["seats"][1]["name"] == "<b>Bo</b>"
    friend.close()
    host.until("who", lambda who: who["seats"][1]["here"] == 0)
    friend = served.open(links["seats"][1])  # comes back to where the game stands
    assert friend.my_turn()["node"] == spectator.state["node"]
    host.send("again")
    moved = friend.until("moved")["link"]
    assert moved not in links["seats"]
    assert served.open(moved).newest["hello"]["you"] == {"role": "seat", "seats": [1]}
    for page in (host, friend, spectator):
        page.close()


def test_hint_analysis_and_graph(served: Served) -> None:
    record = busenv.Game.load(busenv.__path__[0] + "/pictures/game.json").record()
    ply = len(record.actions) - 12
    page = served.open(served.begin("me", "me", "me", "me", record=record.to_json(), ply=ply))
    node = page.my_turn()["node"]
    legal = {choice["action"] for spot in page.state["spots"] for choice in spot["choices"]}
    for agent in ("uct:50", "greedy"):
        page.send("hint", node=node, agent=agent)
        hint = page.until("hint")
        assert hint["favourites"][0]["action"] in legal
        assert hint["favourites"][0]["shapes"]
        assert len(hint["chances"]) == (4 if agent == "uct:50" else 0)
    page.send("analysis", on=True)
    first = page.until("analysis")
    assert first["running"]
    assert page.until("analysis")["simulations"] > first["simulations"] > 0
    assert sum(first["chances"]) == pytest.approx(1, abs=0.01)
    page.decide(first["favourites"][0]["action"])
    after = page.state["node"]
    assert page.until("analysis", lambda found: found["node"] != node)["node"] == after
    page.send("analysis", on=False)
    page.send("go", node=after, to=page.state["line"][-1])
    page.until("state")
    page.send("graph", on=True, agent="uct:5")
    graph = page.until("graph", lambda found: not found["running"])
    assert len(graph["chances"]) == len(graph["line"]) == len(page.state["line"])
    assert all(sum(chances) == pytest.approx(1, abs=0.01) for chances in graph["chances"])
    for lost in graph["lost"]:
        index = graph["line"].index(lost["node"])
        before, then = (graph["chances"][k][lost["seat"]] for k in (index - 1, index))
        assert before - then == pytest.approx(lost["lost"], abs=0.001)
    assert graph["svg"].startswith("<svg")
    page.send("graph", on=True, agent="planner")
    assert page.until("error")["name"] == "no_estimate"
    assert page.refused("hint", node=page.state["node"]) == "game_over"
    page.close()


def test_a_record_is_looked_at_and_set_up_at_any_ply(served: Served) -> None:
    record = busenv.Game.load(busenv.__path__[0] + "/pictures/game.json").record()
    text, key = record.to_json(), served.hall.key
    status, found = served.post(f"/start/{key}/preview", {"record": text, "ply": 40})
    assert status == 200
    assert (found["players"], found["plies"], found["ply"]) == (4, len(record.actions), 40)
    assert found["view"]["base"] is None
    page = served.open(served.begin("me", "me", "me", "me", record=text, ply=40))
    assert page.my_turn()["node"] == 40
    assert len(page.state["line"]) == len(record.actions) + 1  # the rest is there to be redone
    assert page.views[40] == found["view"]["parts"]
    page.close()
    damaged = json.loads(text)
    damaged["actions"][3] = 374
    for wrong, name in ((json.dumps(damaged), "bad_record"), ("{", "bad_record")):
        status, refused = served.post(f"/start/{key}/preview", {"record": wrong})
        assert (status, refused["error"]) == (400, name)
    body = {"seats": [{"kind": "me"}] * 3, "record": text}
    status, refused = served.post(f"/start/{key}/games", body)
    assert (status, refused["error"]) == (400, "bad_game")
    body = {"record": text, "ply": len(record.actions) + 1}
    assert served.post(f"/start/{key}/preview", body)[1]["error"] == "bad_game"


def test_the_start_page_offers_what_can_be_begun(served: Served) -> None:
    status, text, _ = served.get(f"/start/{served.hall.key}/choices")
    found = json.loads(text)
    assert status == 200
    assert [edition["name"] for edition in found["editions"]] == [*busenv.EDITIONS]
    for agent in found["agents"]:
        served.hall.offers.check_agent(agent["spec"])
        busenv.make_agent(agent["spec"])
    link = served.begin(*found["seats"], rules="condensed", first_player=3)
    listed = json.loads(served.get(f"/start/{served.hall.key}/choices")[1])["games"]
    assert link in [game["link"] for game in listed]


def test_a_server_that_was_stopped_goes_on_with_all_its_games(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        page = served.open(link := served.begin("me", "greedy", "greedy", seed=4))
        page.send("pace", seconds=0)
        for _ in range(3):
            page.decide(page.my_turn()["spots"][0]["choices"][0]["action"])
        page.send("undo", node=page.my_turn()["node"])
        page.until("state")
        page.send("name", seat=0, name="Ada")
        page.until("who", lambda who: who["seats"][0]["name"] == "Ada")
        state, nodes = page.my_turn(), page.nodes
        page.close()
    (file,) = tmp_path.glob("*.jsonl")
    with file.open("ab") as open_file:
        open_file.write(b'{"parent": 3, "act')  # cut off by a kill
    (tmp_path / "0123456789abcdef.jsonl").write_text("no game\n")
    with serving(tmp_path) as served:
        assert len(served.hall.faults) == 1
        assert "0123456789abcdef" in served.hall.faults[0]
        page = served.open(link)
        assert page.nodes == nodes
        assert page.newest["who"]["seats"][0]["name"] == "Ada"
        for name in ("node", "line", "spots", "undo", "redo"):
            assert page.my_turn()[name] == state[name]
        page.decide(page.state["spots"][0]["choices"][0]["action"])
        page.close()


def _at_a_table() -> tuple[Table, Place, list[dict[str, Any]]]:
    """A game of one person in which two decisions were made and one was taken back; who began it;
    and what was kept."""
    board, chairs = load_board("city"), [Chair(kind="me") for _ in range(3)]
    record = busenv.Game(3, board=board, first_player=0, seed=1).record().to_dict()
    header = Header(id="0" * 16, begun="", record=record, seats=chairs, tokens=new_tokens(chairs))
    kept: list[dict[str, Any]] = []
    table = Table(header, board, kept.append)
    me = table.places[header.tokens.host]
    for site in (0, 1):
        table.decide(me, table.node, encode(board, "build", site, Building.HOUSE))
    table.undo(me, table.node)
    return table, me, kept


@pytest.mark.parametrize(
    "deed",
    [
        lambda table, me: table.pause(me, on=True),
        lambda table, me: table.undo(me, table.node),
        lambda table, me: table.redo(me, table.node),
        lambda table, me: table.go(me, table.node, 0),
        lambda table, me: table.rename(me, 0, "Ann"),
        lambda table, me: table.decide(me, table.node, table.tree.nodes[2].action + 1),
    ],
    ids=["pause", "undo", "redo", "go", "rename", "decide"],
)
def test_what_cannot_be_written_down_has_not_happened(
    deed: Callable[[Table, Place], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, me, kept = _at_a_table()

    def how_it_stands() -> tuple[Any, ...]:
        line = table.tree.line(table.node)
        return table.node, table.paused, table.version, table.news, line, [*table.seats]

    def full(_: dict[str, Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = how_it_stands()
    with monkeypatch.context() as disk:
        disk.setattr(table, "_keep", full)
        with pytest.raises(OSError, match="No space"):
            deed(table, me)
    assert how_it_stands() == before
    count = len(kept)
    deed(table, me)
    assert how_it_stands() != before
    assert len(kept) == count + 1
