"""The game server: whole games by messages, undo, branches, several people, restarts."""

import json
from pathlib import Path

import pytest

import busenv
from busenv.play import analysis
from tests.support.drawings import drawn_parts
from tests.support.play_client import PageClient, Served, serving


def play_to_the_end(page: PageClient, seed: int = 0) -> None:
    """Pick the first choice of varying targets until the game is over."""
    while page.my_turn()["status"] != "over":
        assert not page.state["failure"]
        targets = page.state["targets"]
        seed = (seed * 75 + 74) % 65537
        page.decide(targets[seed % len(targets)]["choices"][0]["action"])


def test_whole_game_by_messages(served: Served) -> None:
    page = served.open(link := served.begin("me", "greedy", "planner", "greedy", seed=5))
    page.send("delay", seconds=0)
    play_to_the_end(page)
    status, text, headers = served.get(f"{link}/record.json")
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    game = busenv.Game.from_record(busenv.Record.from_json(text))  # validates the result
    assert game.is_over
    assert game.seed == 5
    result = page.state["result"]
    assert (result["points"], result["ranking"]) == (game.points, game.ranking())
    assert len(page.state["variation"]) == len(game.history) + 1
    assert page.views[page.state["node"]] == drawn_parts(game, game.last_decision)
    page.close()


def test_hint_analysis_and_chart(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "CHART_SIMULATIONS", 5)
    record = busenv.Game.load(busenv.__path__[0] + "/pictures/game.json").record()
    ply = len(record.actions) - 12
    page = served.open(served.begin("me", "me", "me", "me", record=record.to_json()))
    page.send("jump", node=page.state["node"], target=ply)
    node = page.until("state")["node"]
    legal = {choice["action"] for target in page.state["targets"] for choice in target["choices"]}
    page.send("analysis", node=node)
    first = page.until("analysis")
    assert first["running"]
    assert first["best_moves"][0]["action"] in legal
    assert first["best_moves"][0]["shapes"]
    assert page.until("analysis")["simulations"] > first["simulations"] > 0
    assert sum(first["chances"]) == pytest.approx(1, abs=0.01)
    page.send("analysis", node=node - 3)  # a move of the past
    assert page.until("analysis", lambda message: message["node"] != node)["node"] == node - 3
    page.send("analysis")
    assert page.error_code("analysis", node=page.state["variation"][-1]) == "game_over"
    page.send("jump", node=node, target=page.state["variation"][-1])
    page.until("state")
    page.send("chart", enabled=True)
    chart = page.until("chart", lambda message: None not in message["chances"])
    assert len(chart["chances"]) == len(chart["variation"]) == len(page.state["variation"])
    assert all(sum(chances) == pytest.approx(1, abs=0.01) for chances in chart["chances"])
    assert chart["mistakes"]
    for mistake in chart["mistakes"]:
        index = chart["variation"].index(mistake["node"])
        before, then = (chart["chances"][k][mistake["seat"]] for k in (index - 1, index))
        assert (before, then) == (mistake["before"], mistake["after"])
        assert before > then
    assert chart["svg"].startswith("<svg")
    page.close()


def test_a_record_is_continued_from_any_position(served: Served) -> None:
    record = busenv.Game.load(busenv.__path__[0] + "/pictures/game.json").record()
    text, end = record.to_json(), len(record.actions)
    page = served.open(served.begin("me", "me", "me", "me", record=text))
    assert (page.state["node"], page.state["status"]) == (end, "over")
    page.send("jump", node=end, target=40)
    state = page.until("state")
    assert state["node"] == 40
    assert len(state["variation"]) == end + 1  # the rest can be redone
    page.decide_first()
    page.close()
    damaged = json.loads(text)
    damaged["actions"][3] = 374
    three: list[dict[str, str]] = [{"kind": "me"}] * 3
    for seats, bad, code in (
        ([*three, *three[:1]], json.dumps(damaged), "bad_record"),
        (three, text, "bad_game"),
    ):
        body = {"seats": seats, "record": bad}
        status, answer = served.post(f"{served.start_link}/games", body)
        assert (status, answer["code"]) == (400, code)


def test_options_of_the_start_page_are_valid(served: Served) -> None:
    status, text, _ = served.get(f"{served.start_link}/options")
    options = json.loads(text)
    assert status == 200
    assert [edition["name"] for edition in options["editions"]] == [*busenv.EDITIONS]
    for agent in options["agents"]:
        busenv.make_agent(agent["spec"])
    link = served.begin(*options["seats"], rules="condensed", first_player=3)
    saved = json.loads(served.get(f"{served.start_link}/options")[1])["games"]
    assert link in [game["link"] for game in saved]


@pytest.mark.parametrize("kind", [int, str])
def test_seeds_up_to_2_to_the_64(served: Served, kind: type) -> None:
    seed = 2**64 - 1
    link = served.begin("me", "me", "me", seed=kind(seed))
    assert json.loads(served.get(f"{link}/record.json")[1])["seed"] == seed


def test_restarted_server_restores_all_games(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        page = served.open(link := served.begin("me", "greedy", "greedy", seed=4))
        page.send("delay", seconds=0)
        for _ in range(3):
            page.decide_first()
        page.send("undo", node=page.my_turn()["node"])
        page.until("state")
        page.send("rename", seat=0, name="Ada")
        page.until("participants", lambda message: message["seats"][0]["name"] == "Ada")
        page.send("pause", enabled=True)
        page.until("state")
        state, nodes = page.decide_first(), page.nodes
        assert state["paused"]
        page.send("undo", node=state["node"])
        state = page.until("state")
        assert (state["paused"], state["status"]) == (True, "person")
        page.close()
    (file,) = tmp_path.glob("*.jsonl")
    with file.open("ab") as open_file:
        open_file.write(b'{"parent": 3, "act')  # an incomplete line, as a killed process leaves
    foreign = tmp_path / "0123456789abcdef.jsonl"
    foreign.write_text("no game\nno newline")
    with serving(tmp_path) as served:
        assert len(served.server.errors) == 1
        assert "0123456789abcdef" in served.server.errors[0]
        assert foreign.read_text() == "no game\nno newline"
        page = served.open(link)
        assert page.nodes == nodes
        assert page.latest["participants"]["seats"][0]["name"] == "Ada"
        for name in ("node", "variation", "targets", "status", "paused", "can_undo", "can_redo"):
            assert page.state[name] == state[name]
        page.send("pause", enabled=False)
        page.decide_first()
        page.close()
