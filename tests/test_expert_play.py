"""Self-play of expert iteration: who plays, what is kept of it, and what it teaches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from busenv.agents import make_agent
from busenv.agents.networks.compiled_mlp import make_workspace, read_weights
from busenv.agents.networks.evaluation_features import NO_EVAL_WEIGHTS
from busenv.agents.networks.inference import make_policy
from busenv.agents.networks.mlp import SeatsMlp, build_network
from busenv.agents.search.az_search import AzSettings
from busenv.agents.search.search import pass_forced
from busenv.core.jit import kernel
from busenv.core.rules.step import step
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.expert_iteration.learner import ENTROPY, Learner
from busenv.train.expert_iteration.policy_selfplay import DECAY, TEMPERATURE
from busenv.train.expert_iteration.search_selfplay import SelfPlay, statistics
from busenv.train.expert_iteration.selfplay_players import (
    BOTS,
    GREEDY,
    LEARNER,
    PAST,
    PLANNER,
    UCT,
    SelfPlayConfig,
    draw_owners,
)
from busenv.train.expert_iteration.training_rows import ROW, unpack
from tests.support.expert import CITY, RULES, SMALL, small_weights


def test_games_do_not_depend_on_threads_and_only_the_learner_is_imitated() -> None:
    found = []
    for threads in (1, 2):
        play = SelfPlay(
            CITY, RULES, (3, 4, 5), SelfPlayConfig(4, 2, 0.5, 10, 3), AzSettings(), threads
        )
        drawn = play.draw(12, 0.3, 0.3, 0.5, ("uct",), np.random.default_rng(5))
        found.append(play.play(drawn, small_weights(1), small_weights(2)))
    assert [rows.tobytes() for rows in found[0]] == [rows.tobytes() for rows in found[1]]
    one, told = np.concatenate(found[0]), statistics(found[0], drawn)
    assert one.dtype == ROW
    assert (one["chances"].sum(axis=1) > 0.99).all()
    assert one["telling"].all()
    assert told["games/samples"] * 12 == pytest.approx(len(one))
    assert told["games/rounds"] > 2
    unpacked = unpack(one, CITY, 0.5, NO_EVAL_WEIGHTS)
    assert (unpacked.masks.sum(axis=1) > 1).all()
    numbers = np.repeat(np.arange(12), [len(rows) for rows in found[0]])
    own = drawn.owners[numbers, one["game"]["seat"]] == LEARNER
    assert 0.2 < own.mean() < 0.9
    np.testing.assert_allclose(unpacked.policy.sum(axis=1), own, rtol=1e-5)
    others = one[~own]
    assert (others["chances"].argmax(axis=1) == others["winner"]).all()
    assert (others["chances"].max(axis=1) == 1).all()


def decisive_network() -> SeatsMlp:
    """One that has learned nothing, and yet prefers some actions, at tables of any kind."""
    network = build_network("seats", CITY, 8, 1)
    assert isinstance(network, SeatsMlp)
    with torch.no_grad():
        for layer in (network.policy[-1], network.value[-1]):
            layer.weight.mul_(1000)
    return network


def test_rows_of_who_plays_alone_tell_what_was_taken_and_gained() -> None:
    """Against the same, written plainly in numpy; each seat's chain is its own, and nothing of
    others' decisions is kept. With no others, what was taken leads from row to row."""
    network = decisive_network()
    play = SelfPlay(
        CITY, RULES, (3, 4, 5), SelfPlayConfig(4, 2, 0.5, 10, 3, True), AzSettings(), 2
    )
    drawn = play.draw(12, 0.2, 0.5, 0.5, tuple(BOTS), np.random.default_rng(5))
    weights = read_weights(network)
    played = play.play(drawn, weights, small_weights(2))
    policy, telling = make_policy(weights, CITY), set()
    for rows, owners, count in zip(played, drawn.owners, drawn.counts, strict=True):
        games, taken = rows["game"].copy(), rows["actions"][:, 0].astype(np.int64)
        assert (owners[rows["game"]["seat"]] == LEARNER).all()
        among = bool((owners[:count] != LEARNER).any())
        telling.add(among)
        assert (rows["telling"] != among).all()
        likely = policy(games, TEMPERATURE)
        np.testing.assert_allclose(rows["chance"], likely[np.arange(len(rows)), taken], rtol=1e-4)
        with torch.no_grad():
            thought = network(torch.from_numpy(unpack(rows, CITY, 0.0, NO_EVAL_WEIGHTS).inputs))[1]
        chances = thought[:, :count].softmax(dim=1).numpy()
        for seat in range(count):
            slot = (seat - games["seat"].astype(int)) % count
            expected = chances[np.arange(len(rows)), slot]
            np.testing.assert_allclose(rows["chances"][:, seat], expected, atol=1e-4)
        for seat in np.flatnonzero(owners[:count] == LEARNER):
            chain = rows[rows["game"]["seat"] == seat]
            values = np.append(chain["chances"][:, seat], chain["winner"][0] == seat)
            following = 0.0
            for k in range(len(chain))[::-1]:
                following = values[k + 1] - values[k] + DECAY * following
                assert chain["advantage"][k] == pytest.approx(following, abs=1e-5)
        if not among:
            play_on(games, CITY.array, taken, make_workspace(weights))
            assert (games[:-1] == rows["game"][1:]).all()
    assert telling == {True, False}


def test_who_plays_alone_draws_at_its_temperature() -> None:
    """What was taken is as likely, by its logarithm, as it is on average at that temperature."""
    weights = read_weights(decisive_network())
    play = SelfPlay(CITY, RULES, (4,), SelfPlayConfig(4, 2, 0.5, 10, 3, True), AzSettings(), 2)
    drawn = play.draw(30, 0.0, 0.0, 0.5, ("uct",), np.random.default_rng(5))
    rows = np.concatenate(play.play(drawn, weights, weights))
    likely = make_policy(weights, CITY)(rows["game"].copy(), TEMPERATURE).astype(float)
    logs = np.log(np.where(likely > 0, likely, 1))
    mean = (likely * logs).sum(axis=1)
    spread = np.sqrt((likely * (logs - mean[:, None]) ** 2).sum(axis=1))
    off = np.log(rows["chance"]) - mean
    assert spread.mean() > 0.3
    assert abs(off.sum()) < 4 * np.sqrt((spread**2).sum())


def test_who_plays_alone_learns_from_who_wins() -> None:
    """What led to more than was expected is chosen more often, and less often what led to less. The
    first step is from the policy that played: all that it loses is entropy."""
    play = SelfPlay(CITY, RULES, (4,), SelfPlayConfig(4, 2, 0.5, 10, 3, True), AzSettings(), 2)
    network = decisive_network()
    weights = read_weights(network)
    drawn = play.draw(12, 0.0, 0.0, 0.5, ("uct",), np.random.default_rng(6))
    rows = np.concatenate(play.play(drawn, weights, weights))
    games, one = rows["game"].copy(), (np.arange(len(rows)), rows["actions"][:, 0])
    before = make_policy(weights, CITY)(games, TEMPERATURE)
    learner = Learner(network, CITY, 0.0, 0.0, 0.0, alone=True)
    first = learner.step(rows, 1e-3)
    entropy = -(before * np.log(np.where(before > 0, before, 1))).sum(axis=1).mean()
    assert first["train/policy_loss"] == pytest.approx(-ENTROPY * entropy, abs=1e-4)
    assert first["train/policy_divergence"] == pytest.approx(0, abs=1e-5)
    for _ in range(10):
        last = learner.step(rows, 1e-3)
    assert last["train/policy_divergence"] > 1e-4
    after = make_policy(read_weights(network), CITY)(games, TEMPERATURE)
    better = rows["advantage"] > rows["advantage"].mean()
    change = np.log(after[one] / before[one])
    assert change[better].mean() > 0.01 > -0.01 > change[~better].mean()


def test_a_run_alone_learns_in_bfloat16_and_keeps_its_last_games_only(tmp_path: Path) -> None:
    config = SMALL.changed({"policy_only": True, "precision": "bfloat16", "decisions": 10**6})
    run = ExpertRun(config, tmp_path)
    weight = run.network.shared.weight.clone()
    scalars = run.step().scalars
    assert run.decisions > 100
    assert all(np.isfinite(value) for value in scalars.values())
    assert not run.network.shared.weight.equal(weight)
    run.step()
    assert [path.name for path in (tmp_path / "replay").iterdir()] == ["000001.npy"]


def test_who_plays_alone_has_no_teacher_and_meets_nobody_in_some_games() -> None:
    for changes, message in (
        ({"teacher": "greedy"}, "allowed with it: teacher='' and no offline_data"),
        ({"offline_data": ("runs/one/replay",)}, "allowed with it: teacher='' and no offline_data"),
        ({"past_share": 0.5, "bot_share": 0.5}, "past_share and bot_share add up to 1; allowed"),
    ):
        with pytest.raises(ValueError, match=message):
            SMALL.changed({"policy_only": True, **changes})


@kernel
def play_on(games, board, actions, work):  # type: ignore[no-untyped-def]
    """Take an action in each game, and what is forced then."""
    for i in range(games.shape[0]):
        step(games[i], board[0], actions[i])
        pass_forced(games[i], board[0], work)


@pytest.mark.parametrize("bot", ["planner", "greedy"])
def test_seats_of_bots_play_as_these_do(bot: str) -> None:
    """Mostly it leads to what was decided next; ties, a quarter or so, are broken by chance."""
    weights = small_weights(1)
    play = SelfPlay(CITY, RULES, (3, 4, 5), SelfPlayConfig(4, 2, 1.0, 10, 3), AzSettings(), 1)
    drawn = play.draw(9, 0.0, 1.0, 0.5, (bot,), np.random.default_rng(7))
    same: dict[str, list[float]] = {"planner": [], "greedy": []}
    for rows, owners in zip(play.play(drawn, weights, weights), drawn.owners, strict=True):
        theirs = np.flatnonzero(owners[rows["game"]["seat"][:-1]] == BOTS[bot])
        for name, found in same.items():
            games = rows["game"][theirs].copy()
            play_on(
                games, CITY.array, make_agent(name).choose(games, CITY), make_workspace(weights)
            )
            found += [a == b for a, b in zip(games, rows["game"][theirs + 1], strict=True)]
    assert len(same[bot]) > 200
    other = "greedy" if bot == "planner" else "planner"
    assert np.mean(same[bot]) > 0.65 > 0.5 > np.mean(same[other])


def test_owners_of_seats_leave_one_to_the_learner() -> None:
    counts = np.resize((3, 4, 5), 3000)
    owners = draw_owners(counts, 0.2, 0.3, 0.75, tuple(BOTS), np.random.default_rng(2))
    there = np.arange(5) < counts[:, None]
    assert ((owners == LEARNER) & there).any(axis=1).all()
    for kind, share in ((PAST, 0.2), (UCT, 0.1), (PLANNER, 0.1), (GREEDY, 0.1)):
        assert ((owners == kind) & there).any(axis=1).mean() == pytest.approx(share, abs=0.03)
    seats = ((owners != LEARNER) & there).sum(axis=1)
    assert (seats == counts - 1)[seats > 0].mean() == pytest.approx(0.75, abs=0.03)
