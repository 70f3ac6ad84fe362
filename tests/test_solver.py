"""Proven results in the search tree, compared with an exhaustive search in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from busenv import Game, Phase
from busenv.agents.az_agent import AzAgent
from busenv.agents.search_agent import SearchAgent
from busenv.agents.uct_agent import UctAgent
from busenv.core.state import MAX_PLAYERS
from busenv.heuristics.evaluation import WEIGHTS
from busenv.networks.compiled_network import read_weights
from busenv.search.az_search import AzSettings, make_az_search
from busenv.search.sequential_halving import improved_policy
from busenv.search.solver import back_up_proof, is_decided
from busenv.search.tree import Tree, make_tree, reroot, set_root
from busenv.search.tree_search import begin_search, root_weights, simulate
from busenv.search.uct_search import UctSettings, make_uct_search
from tests.support.networks import CITY, decisive_network
from tests.support.searches import grow_tree

MAX_POSITIONS = 250  # of an exhaustive search

Outcomes = set[tuple[float, ...]]  # returns of all seats


class Exhaustive:
    """All results of optimal play (max^n) from positions, over all choices between equals.

    results: by history; those that the seat to decide can reach or force upon itself at best.
    """

    def __init__(self, win_weight: float, scale: float) -> None:
        self.win_weight, self.scale = win_weight, scale
        self.results: dict[tuple[int, ...], Outcomes] = {}

    def search(self, game: Game) -> Outcomes:
        """Return the results from a position; OverflowError when there are too many positions."""
        if (history := tuple(game.history)) in self.results:
            return self.results[history]
        if len(self.results) >= MAX_POSITIONS:
            raise OverflowError
        if game.is_over:
            results = {self._returns(game)}
        else:
            seat, children = game.current_player, []
            for action in game.legal_actions():
                game.step(action)
                children.append(self.search(game))
                game.undo()
            least = max(min(result[seat] for result in child) for child in children)
            results = {result for child in children for result in child if result[seat] >= least}
        self.results[history] = results
        return results

    def _returns(self, game: Game) -> tuple[float, ...]:
        points, mean = game.points, sum(game.points) / game.num_players
        margins = [min(max(0.5 + (p - mean) / self.scale, 0), 1) for p in points]
        wins = [rank == 0 for rank in game.ranking()]
        return tuple(
            round(self.win_weight * win + (1 - self.win_weight) * margin, 9)
            for win, margin in zip(wins, margins, strict=True)
        )


def make_search(kind: str, scale: float) -> Any:
    if kind == "uct":
        return make_uct_search(UctSettings(margin_scale=scale), WEIGHTS, CITY.num_actions)
    return make_az_search(AzSettings(score_scale=scale / 2), read_weights(decisive_network()))


def late_positions(
    win_weight: float, scale: float, games: int
) -> Iterator[tuple[Game, Exhaustive]]:
    """The earliest positions of random games whose exhaustive search is small, and later ones."""
    for seed in range(games):
        game, rng = Game(3 + seed % 3, seed=seed), random.Random(seed)
        while not game.is_over:
            game.step(rng.choice(game.legal_actions()))
        exhaustive = Exhaustive(win_weight, scale)
        while len(exhaustive.results) < MAX_POSITIONS:
            game.undo()
            if len(game.legal_actions()) > 1:
                try:
                    exhaustive.search(game.clone())
                except OverflowError:
                    break
                yield game.clone(), exhaustive


def check_proofs(tree: Tree, at: int, game: Game, *, exhaustive: Exhaustive, forced: bool) -> int:
    """Compare the proven returns of a subtree; return their number."""
    node, results = tree.nodes[at], exhaustive.results[tuple(game.history)]
    proven = [seat for seat in range(game.num_players) if node["proven"] >> seat & 1]
    for seat in proven:
        assert [result[seat] for result in results] == pytest.approx(
            [node["values"][seat]] * len(results), abs=1e-5
        )
    count, length = len(proven), len(game.history)
    for edge in tree.edges[node["first"] : node["first"] + node["edges"]]:
        if edge["node"] >= 0:
            game.step(int(edge["action"]))
            while forced and not game.is_over and len(game.legal_actions()) == 1:
                game.step(game.legal_actions()[0])
            child = int(edge["node"])
            count += check_proofs(tree, child, game, exhaustive=exhaustive, forced=forced)
            while len(game.history) > length:
                game.undo()
    return count


@pytest.mark.parametrize(("kind", "scale"), [("uct", 1.0), ("az", 12.0)])
def test_proofs_agree_with_exhaustive_search(kind: str, scale: float) -> None:
    """With the small scale of `uct`, many returns are the highest possible, and many are equal."""
    win_weight, decided, count = 0.6 if kind == "uct" else 0.8, [0] * 6, 0
    search = make_search(kind, scale)
    for game, exhaustive in late_positions(win_weight, scale, 45):
        tree = grow_tree(game, search, 300)
        count += check_proofs(tree, 0, game.clone(), exhaustive=exhaustive, forced=kind == "az")
        if not is_decided(tree):
            continue
        seat, weights = game.current_player, np.zeros(CITY.num_actions, np.float32)
        decided[game.num_players] += 1
        root_weights(tree, search, weights)
        assert np.count_nonzero(weights) == 1
        best = max(result[seat] for result in exhaustive.results[tuple(game.history)])
        history = (*game.history, int(weights.argmax()))
        assert min(result[seat] for result in exhaustive.results[history]) == pytest.approx(
            best, abs=1e-5
        )
    assert min(decided[3:]) >= 5
    assert count > 1000


@pytest.mark.parametrize("kind", ["uct", "az"])
def test_a_proven_root_has_the_winner_and_its_children_stay_proven(kind: str) -> None:
    solved, solved_later, search = 0, 0, make_search(kind, 12.0)
    for game, exhaustive in late_positions(0.6 if kind == "uct" else 0.8, 12.0, 20):
        tree, policy = grow_tree(game, search, 300), np.zeros(CITY.num_actions, np.float32)
        root, everyone = tree.nodes[0], (1 << game.num_players) - 1
        if root["proven"] != everyone:
            continue
        solved += 1
        ((*returns,),) = exhaustive.results[tuple(game.history)]
        expected = np.eye(MAX_PLAYERS)[np.argmax(returns)]
        assert (tree.wins[:MAX_PLAYERS] == tree.wins[MAX_PLAYERS] * expected).all()
        if kind == "az":
            improved_policy(tree, search, policy)
            assert policy.sum() == pytest.approx(1, abs=1e-4)
        for edge in tree.edges[: root["edges"]].copy():
            child = tree.nodes[edge["node"]]
            if child["edges"] == 0:
                continue
            later = make_tree(3000, 60_000)  # of the next decision
            reroot(tree, int(edge["node"]), later)
            assert later.nodes[0]["proven"] == child["proven"]
            begin_search(later, search, CITY.array)
            simulate(later, search, CITY.array, 300)
            if child["proven"] == everyone:
                solved_later += 1
                assert later.wins[MAX_PLAYERS] == later.wins.max() == 1
    assert solved > 10
    assert solved_later > 10


@pytest.fixture(params=["uct", "az"])
def build(request: pytest.FixtureRequest) -> Callable[..., SearchAgent]:
    """Builds an agent of a kind."""

    def make(**settings: Any) -> SearchAgent:
        if request.param == "uct":
            return UctAgent(seed=1, **settings)
        return AzAgent(decisive_network(), CITY, seed=1, **settings)

    return make


def test_agents_stop_at_proven_results(build: Callable[..., SearchAgent]) -> None:
    """With one thread or two, a budget in simulations or seconds, and in batches."""
    agents = [build(simulations=500), build(simulations=500, threads=2), build(seconds=1e6)]
    stopped = 0
    for game, exhaustive in late_positions(0.7, 12.0, 6):
        if len(exhaustive.results) > 60 or game.phase not in (Phase.PICK_UP, Phase.SET_DOWN):
            continue
        for agent in agents:
            chances, favourites = agent.estimate(game)
            assert favourites[0][1] == pytest.approx(1)
            assert sum(chances) == pytest.approx(1)
            assert agent.action_probabilities(game.arrays()[0], CITY).max() == pytest.approx(1)
        assert agents[0].simulated < 500
        stopped += 1
    assert stopped > 3


def children_of_one_node(proven: list[int], values: list[list[float]], seat: int) -> Tree:
    """A tree of a root whose seat decides between children with proven returns, three players."""
    tree, game = make_tree(10, 10), Game(3).arrays()[0]
    set_root(tree, game)
    tree.nodes["game"]["seat"][0] = seat
    tree.nodes["edges"][0] = len(values)
    for k, (bits, returns) in enumerate(zip(proven, values, strict=True)):
        tree.edges["node"][k], tree.edges["visits"][k] = k + 1, 3
        tree.nodes["game"][k + 1] = game
        tree.nodes["proven"][k + 1], tree.nodes["values"][k + 1, :3] = bits, returns
    return tree


@pytest.mark.parametrize(
    ("proven", "values", "expected"),
    [
        ([7, 7], [[0.3, 0.5, 0.2], [0.4, 0.1, 0.5]], 0b111),  # the second is best
        ([7, 7], [[0.4, 0.5, 0.1], [0.4, 0.1, 0.5]], 0b001),  # two are best and differ for others
        ([7, 7], [[0.4, 0.1, 0.3], [0.4, 0.1, 0.5]], 0b011),  # the two best differ for seat 2 only
        ([7, 7], [[0.4, 0.1, 0.5], [0.4, 0.1, 0.5]], 0b111),
        ([7, 5], [[0.3, 0.5, 0.2], [0.4, 0.1, 0.5]], 0b101),
        ([7, 6], [[0.9, 0.0, 0.1], [0.4, 0.1, 0.5]], 0b000),  # a win by less than is possible
        ([7, 6], [[1.0, 0.0, 0.1], [0.4, 0.1, 0.5]], 0b001),  # the highest return
        ([7, 0], [[0.3, 0.5, 0.2], [0.0, 0.0, 0.0]], 0b000),
    ],
)  # fmt: skip
def test_back_up_proof_of_children(
    proven: list[int], values: list[list[float]], expected: int
) -> None:
    tree = children_of_one_node(proven, values, 0)
    assert back_up_proof(tree, 0, 0, True) == (expected > 0)
    assert tree.nodes[0]["proven"] == expected
    best = max(values, key=lambda returns: returns[0])
    for seat in range(3):
        if expected >> seat & 1:
            assert tree.nodes[0]["values"][seat] == pytest.approx(best[seat])
    assert tree.edges[0]["total"] == pytest.approx(3 * values[0][0])
    assert not back_up_proof(tree, 0, 0, True)  # no further proof
