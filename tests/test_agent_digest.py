"""Digests of agents: what changes them, and that versions follow the decisions."""

import hashlib
import shutil
from pathlib import Path

import pytest

from busenv import Game
from busenv.agents import make_agent
from busenv.evaluation.agent_digest import PLAY_VERSIONS, agent_digest
from busenv.networks.model_files import model_path

# SHA-256 of the actions of one game between copies, by spec, version and number of players.
DECISIONS = {
    ("greedy", 1, 4): "42fe7627f7efd499",
    ("planner", 1, 3): "518180c679002e11",
    ("planner", 1, 4): "860f5e2ef6cdca3a",
    ("planner", 1, 5): "444a8efd311e4ba4",
    ("uct:30", 1, 4): "4e798812a71970ba",
    ("net:city-4", 1, 4): "fe51dff4bc20ba78",
    ("az:city-4:8", 2, 4): "f60895be1af23404",
}


@pytest.mark.parametrize(("spec", "version", "players"), DECISIONS)
def test_versions_follow_the_decisions(spec: str, version: int, players: int) -> None:
    """If this fails, the agent plays otherwise: increment its version, and store the new hash."""
    assert PLAY_VERSIONS[spec.partition(":")[0]] == version
    agents = [make_agent(spec, seed) for seed in range(players)]
    game = Game(players, first_player=0, seed=0)
    while not game.is_over:
        game.step(agents[game.current_player].act(game))
    actions = ",".join(map(str, game.history))
    assert hashlib.sha256(actions.encode()).hexdigest()[:16] == DECISIONS[spec, version, players]


def test_digests_depend_on_what_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = ["greedy", "planner", "uct:100", "uct:101", "uct@2:100", "uct:100s", "net:city-4"]
    specs += ["net@0.5:city-4", "net:city-3", "az:city-4:100", "az:city-3:100"]
    digests = [agent_digest(spec) for spec in specs]
    assert len({*digests}) == len(specs)

    copy, weights = tmp_path / "copy.safetensors", model_path("city-4")
    shutil.copy(weights, copy)
    shutil.copy(weights.with_suffix(".json"), copy.with_suffix(".json"))
    assert agent_digest(f"net:{copy}") == agent_digest("net:city-4")
    copy.write_bytes(copy.read_bytes() + b" ")
    assert agent_digest(f"net:{copy}") != agent_digest("net:city-4")

    before = agent_digest("uct:100")
    monkeypatch.setitem(PLAY_VERSIONS, "uct", 2)
    assert agent_digest("uct:100") != before
