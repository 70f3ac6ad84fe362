"""Self-play by a guided search: players of the seats, and samples."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from busenv.agents import make_agent
from busenv.core import kernels
from busenv.networks.compiled_network import Weights, read_weights
from busenv.networks.inputs import Inputs
from busenv.search.tree_search import pass_forced
from busenv.train.expert_iteration import expert_selfplay
from busenv.train.expert_iteration.expert_selfplay import (
    BOTS,
    GREEDY,
    LEARNER,
    PLANNER,
    UCT,
    GameSpecs,
    SearchPlay,
    SelfPlayPayload,
    assign_seats,
    draw_games,
    make_players,
    run_games,
    statistics,
)
from busenv.train.expert_iteration.samples import SAMPLE, make_batch
from tests.support.networks import CITY, small_network
from tests.support.training import RULES, SMALL_EXPERT


def small_weights(seed: int) -> Weights:
    return read_weights(small_network(seed=seed))


def play(
    weights: Weights, seed: int, threads: int = 1, **settings: Any
) -> tuple[list[np.ndarray], GameSpecs]:
    """Samples by game, and the specs of the games."""
    config = SMALL_EXPERT.changed({"bot_share": 0.0, **settings})
    search = SearchPlay(*(getattr(config, name) for name in SearchPlay._fields))
    games = draw_games(config, config.games, RULES, CITY, np.random.default_rng(seed))
    return run_games(games, SelfPlayPayload(weights, search, CITY), threads), games


@pytest.mark.parametrize("simulations", [(500, 4, 4), (4, 500, 4), (4, 4, 500)])
def test_trees_have_space_for_the_longest_search(simulations: tuple[int, int, int]) -> None:
    full, fast, bot = simulations
    config, weights = SearchPlay(full, fast, 0.5, bot), small_weights(1)
    trees = make_players(weights, config).trees
    assert all(len(tree.nodes) > 2 * max(simulations) for tree in trees)


def test_games_do_not_depend_on_threads_and_only_the_search_has_policy_targets() -> None:
    settings = {"games": 12, "bot_share": 0.5}
    parts, games = play(small_weights(1), 5, 1, **settings)
    again, _ = play(small_weights(1), 5, 2, **settings)
    assert [part.tobytes() for part in parts] == [part.tobytes() for part in again]
    samples, means = np.concatenate(parts), statistics(parts, games)
    assert samples.dtype == SAMPLE
    assert (samples["win_probs"].sum(axis=1) > 0.99).all()
    assert means["games/samples"] * 12 == pytest.approx(len(samples))
    assert means["games/rounds"] > 2
    batch = make_batch(samples, CITY, 0.5, Inputs())
    assert (batch.masks.sum(axis=1) > 1).all()
    numbers = np.repeat(np.arange(12), [len(part) for part in parts])
    own = games.seat_owner[numbers, samples["game"]["seat"]] == LEARNER
    assert 0.2 < own.mean() < 0.9
    np.testing.assert_allclose(batch.policy.sum(axis=1), own, rtol=1e-5)
    others = samples[~own]
    assert (others["win_probs"].argmax(axis=1) == others["winner"]).all()
    assert (others["win_probs"].max(axis=1) == 1).all()


def test_an_interruption_does_not_wait_for_games(monkeypatch: pytest.MonkeyPatch) -> None:
    started, interrupted, finished = threading.Event(), threading.Event(), []

    def play_part(games: GameSpecs, _: SelfPlayPayload) -> list[np.ndarray]:
        if games.first_players[0] == 0:  # the first game
            assert started.wait(60)
            raise KeyboardInterrupt
        started.set()
        finished.append(interrupted.wait(20))
        return [np.zeros(0, SAMPLE)]

    monkeypatch.setattr(expert_selfplay, "play_games", play_part)
    games = GameSpecs(*(np.arange(2) for _ in GameSpecs._fields))
    with pytest.raises(KeyboardInterrupt):
        run_games(games, None, 2)  # type: ignore[arg-type]
    assert not finished
    interrupted.set()


@pytest.mark.parametrize("bot", ["planner", "greedy"])
def test_bots_in_self_play_act_as_the_agents_of_their_names(bot: str) -> None:
    """The agent's action mostly leads to the next sample; random tie breaks prevent equality."""
    weights = small_weights(1)
    parts, games = play(weights, 7, games=9, bot_share=1.0, bots=(bot,), full_search_share=1.0)
    same: dict[str, list[float]] = {"planner": [], "greedy": []}
    bits = np.zeros((CITY.num_actions + 63) // 64, np.uint64)
    for samples, owners in zip(parts, games.seat_owner, strict=True):
        theirs = np.flatnonzero(owners[samples["game"]["seat"][:-1]] == BOTS[bot])
        for name, matches in same.items():
            states = samples["game"][theirs].copy()
            actions = make_agent(name).choose(states, CITY)
            assert kernels.step_games(states, CITY.array, actions) == -1
            for state in states:
                pass_forced(state, CITY.array[0], bits)
            matches += [a == b for a, b in zip(states, samples["game"][theirs + 1], strict=True)]
    assert len(same[bot]) > 200
    other = "greedy" if bot == "planner" else "planner"
    assert np.mean(same[bot]) > 0.65 > 0.5 > np.mean(same[other])


def test_every_game_has_a_seat_of_the_search() -> None:
    counts = np.resize((3, 4, 5), 3000)
    config = SMALL_EXPERT.changed({"bot_share": 0.3, "bots": tuple(BOTS)})
    owners = assign_seats(counts, config, np.random.default_rng(2))
    present = np.arange(5) < counts[:, None]
    assert ((owners == LEARNER) & present).any(axis=1).all()
    for kind, share in ((UCT, 0.1), (PLANNER, 0.1), (GREEDY, 0.1)):
        assert ((owners == kind) & present).any(axis=1).mean() == pytest.approx(share, abs=0.03)
    seats = ((owners != LEARNER) & present).sum(axis=1)
    assert (seats == counts - 1)[seats > 0].mean() == pytest.approx(0.5, abs=0.05)
