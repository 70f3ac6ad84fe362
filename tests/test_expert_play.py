"""Self-play of expert iteration: players of the seats, samples, and policy-only learning."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busenv.agents import make_agent
from busenv.agents.networks.compiled_network import Weights, make_workspace, read_weights
from busenv.agents.networks.inference import make_policy
from busenv.agents.networks.inputs import Inputs
from busenv.agents.search.search import pass_forced
from busenv.core.jit import kernel
from busenv.core.rules.step import step
from busenv.train.expert_iteration import expert_selfplay
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.expert_iteration.expert_selfplay import (
    POLICY_TEMPERATURE,
    GameSpecs,
    SelfPlayPayload,
    draw_games,
    play_on_threads,
    statistics,
)
from busenv.train.expert_iteration.learner import (
    ENTROPY_COEF,
    GAE_LAMBDA,
    Learner,
    add_advantages,
)
from busenv.train.expert_iteration.samples import SAMPLE, make_batch
from busenv.train.expert_iteration.selfplay_players import (
    BOTS,
    GREEDY,
    LEARNER,
    PAST,
    PLANNER,
    UCT,
    SelfPlayConfig,
    assign_seats,
    make_players,
)
from tests.support.networks import CITY, decisive_network, small_network
from tests.support.training import RULES, SMALL_EXPERT


def small_weights(seed: int) -> Weights:
    return read_weights(small_network(seed=seed))


def play(
    weights: Weights, seed: int, threads: int = 1, **settings: Any
) -> tuple[list[np.ndarray], GameSpecs]:
    """Samples by game, and the specs of the games."""
    no_opponents = {"past_share": 0.0, "bot_share": 0.0}
    config = SMALL_EXPERT.changed({**no_opponents, "temperature_moves": 10, **settings})
    selfplay = SelfPlayConfig(*(getattr(config, name) for name in SelfPlayConfig._fields))
    games = draw_games(config, RULES, CITY, config.past_share, np.random.default_rng(seed))
    payload = SelfPlayPayload(weights, small_weights(2), selfplay, CITY)
    return play_on_threads(games, payload, threads), games


@pytest.mark.parametrize("simulations", [(500, 4, 4), (4, 500, 4), (4, 4, 500)])
def test_trees_have_space_for_the_longest_search(simulations: tuple[int, int, int]) -> None:
    full, fast, bot = simulations
    config, weights = SelfPlayConfig(full, fast, 0.5, 10, bot, False), small_weights(1)
    trees = make_players(weights, weights, config).trees
    assert all(len(tree.nodes) > 2 * max(simulations) for tree in trees)


def test_games_do_not_depend_on_threads_and_only_the_learner_has_policy_targets() -> None:
    settings = {"games": 12, "past_share": 0.3, "bot_share": 0.3}
    parts, games = play(small_weights(1), 5, 1, **settings)
    again, _ = play(small_weights(1), 5, 2, **settings)
    assert [part.tobytes() for part in parts] == [part.tobytes() for part in again]
    samples, means = np.concatenate(parts), statistics(parts, games)
    assert samples.dtype == SAMPLE
    assert (samples["win_probs"].sum(axis=1) > 0.99).all()
    assert samples["has_value_target"].all()
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
        play_on_threads(games, None, 2)  # type: ignore[arg-type]
    assert not finished
    interrupted.set()


def test_policy_only_games_do_not_depend_on_threads() -> None:
    settings = {"games": 12, "policy_only": True}
    parts, again = (play(small_weights(1), 5, threads, **settings)[0] for threads in (1, 2))
    assert [part.tobytes() for part in parts] == [part.tobytes() for part in again]


def test_policy_only_samples_hold_action_probability_and_advantage() -> None:
    """Compared with a plain implementation in numpy. Opponents' decisions are not samples; without
    opponents each action leads to the next sample."""
    network = decisive_network(8)
    weights = read_weights(network)
    parts, games = play(
        weights, 5, 2, games=12, policy_only=True, past_share=0.2, bot_share=0.5, bots=tuple(BOTS)
    )
    parts = np.split(add_advantages(parts), np.cumsum([len(part) for part in parts])[:-1])
    policy, mirrors = make_policy(weights), set()
    for samples, owners, count in zip(parts, games.seat_owner, games.num_players, strict=True):
        states, actions = samples["game"].copy(), samples["actions"][:, 0].astype(np.int64)
        assert (owners[samples["game"]["seat"]] == LEARNER).all()
        is_mirror = bool((owners[:count] == LEARNER).all())
        mirrors.add(is_mirror)
        assert (samples["has_value_target"] == is_mirror).all()
        probs = policy(states, CITY, POLICY_TEMPERATURE)[np.arange(len(samples)), actions]
        np.testing.assert_allclose(samples["action_prob"], probs, rtol=1e-4)
        with torch.no_grad():
            values = network(torch.from_numpy(make_batch(samples, CITY, 0.0, Inputs()).rows))[1]
        win_probs = values[:, :count].softmax(dim=1).numpy()
        for seat in range(count):
            slot = (seat - states["seat"].astype(int)) % count
            expected = win_probs[np.arange(len(samples)), slot]
            np.testing.assert_allclose(samples["win_probs"][:, seat], expected, atol=1e-4)
        for seat in np.flatnonzero(owners[:count] == LEARNER):
            own = samples[samples["game"]["seat"] == seat]
            returns = np.append(own["win_probs"][:, seat], own["winner"][0] == seat)
            advantage = 0.0
            for k in range(len(own))[::-1]:
                advantage = returns[k + 1] - returns[k] + GAE_LAMBDA * advantage
                assert own["advantage"][k] == pytest.approx(advantage, abs=1e-5)
        if is_mirror:
            play_on(states, CITY.array, actions, make_workspace(weights))
            assert (states[:-1] == samples["game"][1:]).all()
    assert mirrors == {True, False}


def test_policy_only_learning_follows_advantages() -> None:
    """Actions with an advantage above the mean become more probable, others less. The first update
    is on the policy that played, so the loss is the entropy bonus."""
    network = decisive_network(8)
    weights = read_weights(network)
    samples = add_advantages(play(weights, 6, 2, games=12, players=(4,), policy_only=True)[0])
    states, taken = samples["game"].copy(), (np.arange(len(samples)), samples["actions"][:, 0])
    before = make_policy(weights)(states, CITY, POLICY_TEMPERATURE)
    only_policy = {"policy_only": True, "value_weight": 0.0, "score_weight": 0.0}
    learner = Learner(network, CITY, SMALL_EXPERT.changed(only_policy))
    first = learner.step(samples, 1e-3)
    entropy = -(before * np.log(np.where(before > 0, before, 1))).sum(axis=1).mean()
    assert first["train/policy_loss"] == pytest.approx(-ENTROPY_COEF * entropy, abs=1e-4)
    assert first["train/entropy_loss"] == pytest.approx(-entropy, abs=1e-4)
    assert first["train/approx_kl"] == pytest.approx(0, abs=1e-5)
    assert first["train/clip_fraction"] == 0
    for _ in range(10):
        last = learner.step(samples, 1e-3)
    assert last["train/approx_kl"] > 1e-4
    assert last["train/learning_rate"] == 1e-3
    assert last["train/grad_norm"] > 0
    after = make_policy(read_weights(network))(states, CITY, POLICY_TEMPERATURE)
    better = samples["advantage"] > samples["advantage"].mean()
    change = np.log(after[taken] / before[taken])
    assert change[better].mean() > 0.01 > -0.01 > change[~better].mean()


def test_a_policy_only_run_learns_in_bfloat16_from_its_last_games(tmp_path: Path) -> None:
    changes = {"policy_only": True, "precision": "bfloat16", "decisions": 10**6}
    run = ExpertRun(SMALL_EXPERT.changed(changes), tmp_path)
    weight = run.network.shared.weight.clone()
    scalars = run.step().scalars
    assert run.decisions > 100
    assert all(np.isfinite(value) for value in scalars.values())
    assert not run.network.shared.weight.equal(weight)
    run.step()
    assert [path.name for path in (tmp_path / "replay").iterdir()] == ["000001.safetensors"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teacher": "greedy"}, "allowed with it: teacher='' and no offline_data"),
        ({"offline_data": ("runs/a/replay",)}, "allowed with it: teacher='' and no offline_data"),
        ({"past_share": 0.5, "bot_share": 0.5}, "past_share and bot_share add up to 1; allowed"),
    ],
)
def test_policy_only_excludes_teachers_and_needs_games_without_opponents(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        SMALL_EXPERT.changed({"policy_only": True, **changes})


@kernel
def play_on(games, board, actions, work):  # type: ignore[no-untyped-def]
    """Take an action and the forced ones that follow in each game."""
    for i in range(games.shape[0]):
        step(games[i], board[0], actions[i])
        pass_forced(games[i], board[0], work.bits)


@pytest.mark.parametrize("bot", ["planner", "greedy"])
def test_bots_in_self_play_act_as_the_agents_of_their_names(bot: str) -> None:
    """The agent's action mostly leads to the next sample; random tie breaks prevent equality."""
    weights = small_weights(1)
    parts, games = play(weights, 7, games=9, bot_share=1.0, bots=(bot,), full_search_share=1.0)
    same: dict[str, list[float]] = {"planner": [], "greedy": []}
    for samples, owners in zip(parts, games.seat_owner, strict=True):
        theirs = np.flatnonzero(owners[samples["game"]["seat"][:-1]] == BOTS[bot])
        for name, matches in same.items():
            states = samples["game"][theirs].copy()
            actions = make_agent(name).choose(states, CITY)
            play_on(states, CITY.array, actions, make_workspace(weights))
            matches += [a == b for a, b in zip(states, samples["game"][theirs + 1], strict=True)]
    assert len(same[bot]) > 200
    other = "greedy" if bot == "planner" else "planner"
    assert np.mean(same[bot]) > 0.65 > 0.5 > np.mean(same[other])


def test_every_game_has_a_seat_of_the_learner() -> None:
    counts = np.resize((3, 4, 5), 3000)
    config = SMALL_EXPERT.changed(
        {"bot_share": 0.3, "all_opponents_share": 0.75, "bots": tuple(BOTS)}
    )
    owners = assign_seats(counts, config, 0.2, np.random.default_rng(2))
    present = np.arange(5) < counts[:, None]
    assert ((owners == LEARNER) & present).any(axis=1).all()
    for kind, share in ((PAST, 0.2), (UCT, 0.1), (PLANNER, 0.1), (GREEDY, 0.1)):
        assert ((owners == kind) & present).any(axis=1).mean() == pytest.approx(share, abs=0.03)
    seats = ((owners != LEARNER) & present).sum(axis=1)
    assert (seats == counts - 1)[seats > 0].mean() == pytest.approx(0.75, abs=0.03)
