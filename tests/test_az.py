"""Search agents of both kinds, and the search guided by a network."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busenv import Game, Phase
from busenv.agents import make_agent
from busenv.agents.az_agent import AzAgent
from busenv.agents.search_agent import SearchAgent
from busenv.core.state import MAX_PLAYERS
from busenv.networks.compiled_network import read_weights
from busenv.networks.inference import make_policy
from busenv.networks.logits import POINTS
from busenv.networks.model_files import save_model
from busenv.observation import observe_games
from busenv.search.az_search import AzSettings, make_az_search
from busenv.search.sequential_halving import improved_policy, policy_chances
from busenv.search.solver import all_seats
from busenv.search.tree import Tree, make_tree, set_root
from busenv.search.tree_search import begin_search, root_weights, simulate
from tests.support.networks import CITY, decisive_network
from tests.support.searches import grow_tree


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "small.safetensors"
    save_model(decisive_network(), CITY, path, {"network": "seats", "width": 16})
    return path


@pytest.fixture(params=["uct", "az"])
def kind(request: pytest.FixtureRequest, model: Path) -> Callable[..., SearchAgent]:
    """Builds a search agent of a kind from a budget, threads (such as "@2") and a seed."""

    def build(budget: str, threads: str = "", seed: int = 1) -> SearchAgent:
        name = f"az{threads}:{model}" if request.param == "az" else f"uct{threads}"
        agent = make_agent(f"{name}:{budget}", seed)
        assert isinstance(agent, SearchAgent)
        return agent

    return build


@pytest.mark.parametrize("budget", ["8", "0.001s"])
@pytest.mark.parametrize("threads", ["", "@2"])
def test_search_agents_play_whole_games_repeatably(
    kind: Callable[..., SearchAgent], budget: str, threads: str
) -> None:
    played, agent = [], kind(budget, threads)
    for players in (3, 3, 5):
        agent.reset(4)
        game = Game(players, seed=1)
        while not game.is_over:
            game.step(agent.act(game))
        played.append(game.history)
    agent.close()
    assert played[0] == played[1] or budget.endswith("s")
    for decide in (agent.act, agent.estimate):
        with pytest.raises(ValueError, match="the game is over"):
            decide(game)


def test_searches_of_many_games_do_not_depend_on_threads(kind: Callable[..., SearchAgent]) -> None:
    games = [in_the_middle(3 + k % 3, 8 * k) for k in range(12)]
    batch, policies = np.concatenate([game.arrays()[0] for game in games]), []
    for threads in ("", "@2", "@3"):
        agent = kind("20", threads, 5)
        policies.append(agent.action_probabilities(batch, CITY))
        agent.close()
    assert (policies[0] == policies[1]).all()
    assert (policies[0] == policies[2]).all()
    np.testing.assert_allclose(policies[0].sum(axis=1), 1, rtol=1e-5)
    for game, row in zip(games, policies[0], strict=True):
        assert set(np.flatnonzero(row)) <= set(game.legal_actions())
    assert (kind("20", seed=6).action_probabilities(batch, CITY) != policies[0]).any()


@pytest.mark.parametrize("budget", ["1000000.0s", "999999999"])
def test_forced_decisions_are_not_searched(kind: Callable[..., SearchAgent], budget: str) -> None:
    game, rng = Game(4, seed=1), random.Random(2)
    while len(game.legal_actions()) > 1:
        game.step(rng.choice(game.legal_actions()))
    agent = kind(budget)
    assert [agent.act(game)] == game.legal_actions()
    assert agent.choose(game.arrays()[0], CITY).tolist() == game.legal_actions()


def test_search_continues_when_its_memory_is_full(
    kind: Callable[..., SearchAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "busenv.agents.search_agent.make_tree", lambda nodes, edges: make_tree(10, 90)
    )
    agent, game = kind("100"), in_the_middle(plies=20)
    for _ in range(12):
        game.step(agent.act(game))
    assert 5 < agent._trees[0].used[0] <= 10


def grown(game: Game, simulations: int, **settings: Any) -> tuple[Tree, Any]:
    """The tree of a search with an untrained network, and the search."""
    search = make_az_search(AzSettings(**settings), read_weights(decisive_network()))
    return grow_tree(game, search, simulations), search


def in_the_middle(players: int = 4, plies: int = 80) -> Game:
    game, rng = Game(players, seed=3), random.Random(5)
    while len(game.history) < plies or len(game.legal_actions()) < 4:
        game.step(rng.choice(game.legal_actions()))
    return game


def test_priors_and_values_are_those_of_the_network_by_seat() -> None:
    game = in_the_middle()
    tree, _ = grown(game, 0, score_weight=0.25, score_scale=8.0)
    shares = make_policy(decisive_network())(game.arrays()[0], CITY, 1.0)[0]
    edges = tree.edges[: tree.nodes[0]["edges"]]
    assert edges["action"].tolist() == game.legal_actions()
    np.testing.assert_allclose(edges["prior"], shares[edges["action"]], atol=1e-5)
    rows, _ = observe_games(game.arrays()[0], CITY)
    values = decisive_network()(torch.from_numpy(rows))[1][0].detach().numpy().astype(float)
    chances = np.exp(values[:4]) / np.exp(values[:4]).sum()
    points = values[MAX_PLAYERS : MAX_PLAYERS + 4] * POINTS
    margin = np.clip(0.5 + (points - points.mean()) / 16, 0, 1)
    expected = np.roll(0.75 * chances + 0.25 * margin, game.current_player)
    np.testing.assert_allclose(tree.nodes[0]["values"][:4], expected, atol=1e-5)
    np.testing.assert_allclose(tree.wins[:4], np.roll(chances, game.current_player), atol=1e-5)


@pytest.mark.parametrize(
    ("budget", "num_playouts", "weight"),
    [
        ({"simulations": 200}, 0, 0.0),
        ({"simulations": 250}, 1, 0.15),
        ({"simulations": 300}, 1, 0.3),
        ({"simulations": 350}, 3, 0.45),
        ({"simulations": 400}, 4, 0.6),
        ({"simulations": 500}, 4, 0.6),
        ({"seconds": 0.01}, 0, 0.0),
        ({"seconds": 0.02}, 4, 0.6),
    ],
)
def test_long_searches_also_play_out_to_the_end(
    budget: dict[str, Any], num_playouts: int, weight: float
) -> None:
    """The root's value is a mean of the network's and of the results of playouts."""
    agent, game = AzAgent(decisive_network(), CITY, seed=1, **budget), in_the_middle()
    agent.act(game)
    values = agent._trees[0].nodes[0]["values"][:4]
    network_only, _ = grown(game, 1)
    mixed = values - (1 - weight) * network_only.nodes[0]["values"][:4]
    assert (abs(mixed) < 1e-6).all() == (num_playouts == 0)
    assert 0 <= mixed.min() <= mixed.max() <= weight + 1e-6
    assert agent._settings.num_playouts == num_playouts


def test_playouts_without_the_network_count_wins() -> None:
    """With weight 0 for the network, a chance to win is a share of the playouts."""
    tree, _ = grown(in_the_middle(3), 20, num_playouts=4, playout_weight=1.0, score_weight=0.0)
    nodes = tree.nodes[: tree.used[0]]
    won = 4 * nodes["values"][nodes["edges"] > 0, :3]
    assert len(won) > 10
    assert (won.sum(axis=1) == 4).all()
    assert (won == won.round()).all()
    assert (won.max(axis=0) > 0).all()


def test_a_search_does_not_depend_on_the_previous_search() -> None:
    tree, search = grown(in_the_middle(4, 90), 50)
    set_root(tree, in_the_middle().arrays()[0])
    tree.rng_state[0] = 0
    begin_search(tree, search, CITY.array)
    simulate(tree, search, CITY.array, 50)
    fresh, _ = grown(in_the_middle(), 50)
    count = fresh.used[1]
    assert tree.used[1] == count
    assert tree.edges[:count].tobytes() == fresh.edges[:count].tobytes()


def test_tree_nodes_have_choices_and_consistent_visit_counts() -> None:
    game = in_the_middle()
    tree, _ = grown(game, 400)
    nodes, edges = tree.nodes[: tree.used[0]], tree.edges[: tree.used[1]]
    for node in nodes:
        if node["game"]["phase"] == Phase.OVER or not node["edges"]:
            continue
        own = edges[node["first"] : node["first"] + node["edges"]]
        assert len(own) > 1
        assert own["visits"].sum() == node["visits"]
        assert own["prior"].sum() == pytest.approx(1, abs=1e-4)
        tried = own[own["visits"] > 0]
        assert ((tried["total"] > 0) & (tried["total"] < tried["visits"])).all()
    assert nodes[0]["visits"] == 400
    assert tree.wins.tolist()[:4] != [0.0] * 4
    assert tree.wins[:4].sum() == pytest.approx(tree.wins[MAX_PLAYERS])


@pytest.mark.parametrize(("simulations", "visits"), [(8, [1, 1, 3, 3]), (2, [0, 0, 1, 1])])
def test_sequential_halving_allocates_the_simulations(simulations: int, visits: list[int]) -> None:
    tree, search = grown(in_the_middle(), simulations, max_considered_actions=4)
    edges = tree.edges[: tree.nodes[0]["edges"]]
    assert sorted(edges["visits"].tolist())[-4:] == visits
    tried = {int(k) for k in np.flatnonzero(edges["visits"])}
    assert tried == set(np.argsort(-search.logits[: len(edges)])[: len(tried)].tolist())


def test_the_improved_policy_follows_the_mean_values() -> None:
    tree, search = grown(in_the_middle(), 32, value_scale=1.0, root_prior_visits=1e-9)
    edges = tree.edges[: tree.nodes[0]["edges"]]
    policies = np.zeros(CITY.num_actions, np.float32)
    improved_policy(tree, search, policies)
    assert policies.sum() == pytest.approx(1, abs=1e-4)
    ratio = np.log(policies[edges["action"]] / edges["prior"])
    tried = edges["visits"] > 0
    means = edges["total"][tried] / edges["visits"][tried]
    assert np.corrcoef(ratio[tried], means)[0, 1] > 0.99
    assert np.ptp(ratio[~tried]) < 1e-3  # untried actions have the value of the position


def test_the_improved_policy_weighs_a_value_by_its_visits() -> None:
    """The improved policy rises with the visits of a value; dropped actions are not played."""
    tree, search = grown(in_the_middle(), 32)
    edges = tree.edges[: tree.nodes[0]["edges"]]
    once, often = np.flatnonzero(edges["visits"])[:2]
    edges["visits"][[once, often]] = 1, 20
    edges["total"][[once, often]] = 0.9, 18.0
    policies, weights = (np.zeros(CITY.num_actions, np.float32) for _ in range(2))
    improved_policy(tree, search, policies)
    ratio = np.log(policies[edges["action"]] / edges["prior"])
    untried = ratio[edges["visits"] == 0][0]
    assert untried < ratio[once] < ratio[often]
    root_weights(tree, search, weights)
    assert weights[edges["action"][often]] > 0
    assert weights[edges["action"][once]] == 0


def test_the_chances_are_those_of_the_actions_that_the_improved_policy_plays() -> None:
    tree, search = grown(in_the_middle(), 32)
    edges = tree.edges[: tree.nodes[0]["edges"]]
    tried = np.flatnonzero(edges["visits"])
    wins = tree.nodes["wins"][edges["node"][tried]]
    assert wins.sum(axis=1) == pytest.approx(edges["visits"][tried])
    policy, chances = (np.zeros(n, np.float32) for n in (CITY.num_actions, MAX_PLAYERS))
    improved_policy(tree, search, policy)
    policy_chances(tree, policy, chances)
    means = wins / wins.sum(axis=1, keepdims=True)
    expected = np.average(means, axis=0, weights=policy[edges["action"][tried]])
    assert chances == pytest.approx(expected, abs=1e-5)
    assert chances != pytest.approx(tree.wins[:MAX_PLAYERS] / tree.wins[MAX_PLAYERS], abs=1e-3)
    tree.nodes[0]["proven"] = all_seats(4)  # the returns of the root count
    policy_chances(tree, policy, chances)
    assert chances == pytest.approx(tree.wins[:MAX_PLAYERS] / tree.wins[MAX_PLAYERS])


def test_an_estimate_has_the_chances_of_the_actions_that_may_be_played() -> None:
    agent, game = make_agent("az:city-4:64", seed=1), in_the_middle()
    assert isinstance(agent, SearchAgent)
    chances, shares = agent.estimate(game)
    (tree,), weights = agent._trees, np.zeros(CITY.num_actions, np.float32)
    weights[[action for action, _ in shares]] = [share for _, share in shares]
    expected = np.zeros(MAX_PLAYERS)
    policy_chances(tree, weights, expected)
    assert chances == pytest.approx(expected[:4], abs=1e-6)
    assert sum(chances) == pytest.approx(1)


def test_the_tree_is_reused_within_a_game(kind: Callable[..., SearchAgent]) -> None:
    agent, rng = kind("200"), random.Random(2)
    reused = forced = 0
    game, greedy = Game(4, seed=3), make_agent("greedy", seed=1)
    while not game.is_over:
        action = agent.act(game)
        if len(game.legal_actions()) > 1:
            reused += agent._trees[0].nodes["visits"][0] > 200
        else:
            forced += 1
        game.step(action if rng.random() < 0.7 else greedy.act(game))
    assert forced > 0
    assert reused > 40
    for first_player in (0, 1):  # other games; both have an empty history
        agent.act(Game(3, first_player=first_player))
        assert agent._trees[0].nodes["visits"][0] == 200


def test_a_policy_of_ppo_guides_a_search_that_plays_leaves_out() -> None:
    """City-2 has no values for every seat."""
    agent, game = make_agent("az:city-2:400"), Game(3, seed=1)
    chances, best = agent.estimate(game)
    assert sum(chances) == pytest.approx(1)
    assert {action for action, _ in best} <= set(game.legal_actions())
    rng = random.Random(3)
    while not game.is_over:
        game.step(rng.choice(game.legal_actions()))
    winner = game.ranking().index(0)
    while game.is_over or len(game.legal_actions()) == 1:
        game.undo()
    assert agent.estimate(game)[0][winner] > 0.99
