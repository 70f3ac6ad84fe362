"""PPO on the vector environment: line-ups, rollouts, advantages, updates."""

import importlib.util
from itertools import chain, pairwise, product
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from busenv import load_board
from busenv.core.bots import GREEDY
from busenv.core.state import MAX_PLAYERS
from busenv.networks.factory import build_network
from busenv.train import compute_gae, policies
from busenv.train.config import PPOConfig
from busenv.train.policies import (
    compiled_policy,
    forward,
    masked_log_probs,
    sample,
    torch_policy,
    uses_bfloat16,
)
from busenv.train.ppo import (
    LEARNER,
    Games,
    LineUps,
    Rollout,
    _minibatches,
    compute_gradients,
    make_rollout,
    play_rollout,
    rollout_gae,
    update,
)
from busenv.train.ppo_loss import Decisions
from busenv.train.ppo_run import find_device
from tests.support.training import DEVICES

CPU, PAST = torch.device("cpu"), 3
SETTINGS = PPOConfig(steps=40, batch_size=128, reward_unit=2.0, threads=1)


def random_rollout(steps: int, games: int, rng: np.random.Generator) -> Rollout:
    """A rollout with random seats, rewards, values, ends and decisions of others; no rows."""
    rollout = make_rollout(steps, games, 0, 0, CPU)
    shape = steps, games
    rollout.seats[:] = torch.from_numpy(rng.integers(0, 4, shape))
    rollout.is_learners[:] = torch.from_numpy(rng.random(shape) < 0.8)
    rollout.terminations[:] = torch.from_numpy(rng.random(shape) < 0.1)
    rollout.rewards[:] = torch.from_numpy(rng.integers(-3, 4, (*shape, MAX_PLAYERS)))
    rollout.values[:] = torch.from_numpy(rng.integers(-3, 4, shape))
    rollout.next_values[:] = torch.from_numpy(rng.integers(-3, 4, games))
    rollout.next_seats[:] = torch.from_numpy(rng.integers(0, 4, games))
    rollout.is_bootstrapped[:] = torch.from_numpy(rng.random(games) < 0.5)
    return rollout


def slow_gae(rollout: Rollout, gamma: float, gae_lambda: float) -> np.ndarray:
    """Advantages by their definition, one trajectory at a time; nan where there is none."""
    seats, ends, rewards, values = (
        tensor.numpy()
        for tensor in (rollout.seats, rollout.terminations, rollout.rewards, rollout.values)
    )
    steps, games = seats.shape
    advantages = np.full((steps, games), np.nan)
    for game in range(games):
        starts = [0, *(np.flatnonzero(ends[:, game]) + 1), steps]
        for start, end in pairwise(starts):
            for seat in range(MAX_PLAYERS):
                own = [
                    t
                    for t in range(start, end)
                    if seats[t, game] == seat and rollout.is_learners[t, game]
                ]
                is_over = end > start and bool(ends[end - 1, game])
                bootstraps = bool(rollout.is_bootstrapped[game]) and (
                    int(rollout.next_seats[game]) == seat
                )
                last = 0.0
                for k in reversed(range(len(own))):
                    t = own[k]
                    until = own[k + 1] if k + 1 < len(own) else end
                    if k + 1 < len(own):
                        following = values[own[k + 1], game]
                    elif is_over:
                        following = 0.0
                    elif bootstraps:
                        following = float(rollout.next_values[game])
                    else:
                        continue
                    reward = rewards[t:until, game, seat].sum()
                    last = reward + gamma * following - values[t, game] + gamma * gae_lambda * last
                    advantages[t, game] = last
    return advantages


@pytest.mark.parametrize(("gamma", "gae_lambda"), [(1.0, 1.0), (0.5, 0.25), (0.9, 0.0)])
def test_gae_is_that_of_every_seat_alone(gamma: float, gae_lambda: float) -> None:
    rollout = random_rollout(50, 12, np.random.default_rng(0))
    advantages, has_advantage = rollout_gae(rollout, gamma, gae_lambda)
    wanted = slow_gae(rollout, gamma, gae_lambda)
    assert (has_advantage.numpy() == ~np.isnan(wanted)).all()
    assert 0 < int(has_advantage.sum()) < int(rollout.is_learners.sum())
    taken = advantages.numpy()[has_advantage.numpy()]
    np.testing.assert_allclose(taken, wanted[~np.isnan(wanted)], rtol=1e-5, atol=1e-5)


def test_gae_of_numpy_arrays_is_that_of_tensors() -> None:
    rollout = random_rollout(30, 8, np.random.default_rng(2))
    names = "values", "rewards", "seats", "terminations", "next_values", "next_seats"
    arrays = {name: getattr(rollout, name).numpy() for name in names}
    advantages, has_advantage = compute_gae(**arrays, gamma=0.9, gae_lambda=0.5)
    rollout.is_learners[:] = True  # the defaults
    rollout.is_bootstrapped[:] = True
    wanted, wanted_has_advantage = rollout_gae(rollout, 0.9, 0.5)
    np.testing.assert_allclose(advantages, wanted, rtol=1e-6, atol=1e-6)
    assert (has_advantage == wanted_has_advantage.numpy()).all()
    assert advantages.dtype == np.float32
    stored = {"terminations": np.uint8, "seats": np.int8, "next_seats": np.uint8}
    others = arrays | {name: arrays[name].astype(dtype) for name, dtype in stored.items()}
    assert (compute_gae(**others, gamma=0.9, gae_lambda=0.5)[0] == advantages).all()
    for name in ("seats", "next_seats"):
        wrong = arrays | {name: np.full_like(arrays[name], 5)}
        with pytest.raises(ValueError, match=f"{name} has another seat than 0 to 4, the columns"):
            compute_gae(**wrong, gamma=0.9, gae_lambda=0.5)
    wrong = arrays | {"seats": np.full_like(arrays["seats"], -1)}
    is_learners = np.zeros((30, 8), bool)  # so no seat matters
    _, has_advantage = compute_gae(**wrong, gamma=0.9, gae_lambda=0.5, is_learners=is_learners)
    assert not has_advantage.any()
    arrays["rewards"] = arrays["rewards"][..., 0]
    with pytest.raises(ValueError, match=r"\(30, 8\).* rewards of every seat"):
        compute_gae(**arrays, gamma=0.9, gae_lambda=0.5)


def test_a_draw_is_legal_and_follows_the_policy() -> None:
    masks = torch.tensor([[True, False, True, False, True]]).repeat(40_000, 1)
    logits = torch.tensor([[0.0, 9.0, 1.0, 9.0, -1.0]]).repeat(40_000, 1)
    log_probs = masked_log_probs(logits, masks)
    drawn = sample(log_probs, torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn, minlength=5) / len(drawn)
    assert shares[[1, 3]].tolist() == [0, 0]
    torch.testing.assert_close(shares, log_probs[0].exp(), rtol=0, atol=0.01)


def make_games(games: int, line_ups: LineUps, generator: torch.Generator, **settings: Any) -> Games:
    env = gymnasium.make_vec(
        "busenv/BusSelfPlay-v0", num_envs=games, reward="margin", relative_types=True,
        skip_forced=True, copy=False, **settings,
    )  # fmt: skip
    games = Games(env, line_ups)
    games.reset(3, generator)
    return games


def test_line_ups_have_a_learner_and_the_shares_of_the_settings() -> None:
    weights = torch.tensor([0.0, 1.0, 3.0])  # of owners 1, 2 and 3
    owners = LineUps(weights).draw(20_000, 3, torch.Generator().manual_seed(0))
    learners = owners == LEARNER
    assert learners[:, :3].any(dim=1).all()
    assert not (owners == 1).any()
    share = float((owners == 3).sum() / (owners > 0).sum())
    assert abs(share - 0.75) < 0.02
    alone = float((learners.sum(dim=1) == 1).float().mean())
    # Games with one opponent's copies, and those in which all four other seats are drawn.
    assert abs(alone - (0.4 + 0.6 * 0.5**4)) < 0.02
    none = LineUps(weights, opponent_share=0.0).draw(10, 4, torch.Generator())
    assert not none.any()


def test_the_learner_has_a_seat_in_games_of_every_number_of_players() -> None:
    line_ups = LineUps(torch.ones(2), opponent_share=1.0)
    games = make_games(300, line_ups, torch.Generator(), num_players=(3, 5))
    present = torch.arange(MAX_PLAYERS) < torch.from_numpy(games.batch.games["players"])[:, None]
    assert ((games.owners == LEARNER) & present).any(dim=1).all()


def test_games_that_restart_within_a_step_are_refused() -> None:
    with pytest.raises(ValueError, match="autoreset_mode is 'SameStep'; allowed: 'NextStep'"):
        make_games(2, LineUps(torch.ones(2)), torch.Generator(), autoreset_mode="SameStep")


def test_a_rollout_records_the_learners_decisions_and_all_rewards() -> None:
    generator = torch.Generator().manual_seed(0)
    network = build_network("mlp", load_board("city"), 16, 0, relative_types=True)
    other = build_network("mlp", load_board("city"), 16, 1, relative_types=True)
    weights = torch.tensor([0.0, 1.0, 1.0])
    games = make_games(24, LineUps(weights), generator)
    batch: Any = games.env.unwrapped.batch
    rollout = make_rollout(40, 24, *games.sizes, CPU)
    past = compiled_policy(other, generator)
    opponents = {PAST: lambda *decisions: past(*decisions)[0]}
    policy = compiled_policy(network, generator)
    settings, totals, ended = SETTINGS, torch.zeros(24, MAX_PLAYERS), 0
    began = torch.zeros(24, dtype=torch.bool)
    for _ in range(8):
        play_rollout(games, policy, opponents, rollout, settings=settings, generator=generator)
        learners = rollout.is_learners
        rows, masks = rollout.observations[learners], rollout.masks[learners]
        logits, values = forward(network, rows, False)
        log_probs = masked_log_probs(logits, masks)
        actions = rollout.actions[learners]
        assert masks.gather(1, actions[:, None]).all()
        taken = log_probs.gather(1, actions[:, None])[:, 0]
        torch.testing.assert_close(rollout.log_probs[learners], taken, rtol=0, atol=1e-4)
        torch.testing.assert_close(rollout.values[learners], values[:, 0], rtol=0, atol=1e-4)
        # Compiled bots decide within the steps: the other rows are a past self's or a reset's.
        assert 0.3 < float(learners.float().mean()) < 0.95
        for t in range(40):
            totals += settings.reward_unit * rollout.rewards[t]
            over = rollout.terminations[t]
            for i in over.nonzero()[:, 0].tolist():
                # The first game of a row began before; `final_games` is still this game.
                if began[i] and not rollout.terminations[t + 1 :, i].any():
                    final = batch.final_games[i]
                    points = final["deliveries"][:4] - final["stones"][:4].astype(np.float64)
                    margins = points - (points.sum() - points) / 3
                    np.testing.assert_allclose(totals[i, :4], margins, atol=1e-4)
                    ended += 1
            totals[over] = 0.0
            began |= over
    assert ended > 20
    owners = set(games.owners[:, :4].unique().tolist())
    assert owners == {LEARNER, GREEDY, PAST}


def test_minibatches_have_every_decision_once_an_epoch() -> None:
    generator, indices = torch.Generator().manual_seed(0), torch.arange(100, 130)
    settings = PPOConfig(batch_size=8, epochs=2)
    batches = [rows.tolist() for rows in _minibatches(indices, settings, generator)]
    assert [len(rows) for rows in batches] == [8, 8, 7, 7] * 2
    for epoch in (batches[:4], batches[4:]):
        assert sorted(chain.from_iterable(epoch)) == [*range(100, 130)]
    assert batches[:4] != batches[4:]


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_updates_learn_from_advantages_and_returns(device: str, bfloat16: bool) -> None:
    """Losses on one rollout fall, and its rewarded actions become more likely."""
    torch.set_num_threads(1)
    generator = torch.Generator(device).manual_seed(0)
    network = build_network("mlp", load_board("city"), 32, 0, relative_types=True).to(device)
    weights = torch.ones(1, device=device)
    games = make_games(16, LineUps(weights, opponent_share=0.0), generator, device=device)
    rollout = make_rollout(40, 16, *games.sizes, torch.device(device))
    settings = SETTINGS.changed({"precision": "bfloat16" if bfloat16 else "float32"})
    policy = torch_policy(network, generator, bfloat16)
    play_rollout(games, policy, {}, rollout, settings=settings, generator=generator)
    passes = rollout.actions == 7
    rollout.rewards.zero_()
    seats = torch.nn.functional.one_hot(rollout.seats, MAX_PLAYERS)
    rollout.rewards.add_(seats * passes[:, :, None])
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    settings = settings.changed({"gamma": 0.0, "gae_lambda": 0.0, "epochs": 4, "entropy_coef": 0.0})
    rows, masks = rollout.observations[passes], rollout.masks[passes]

    def chance() -> torch.Tensor:
        logits, _ = forward(network, rows, bfloat16)
        return masked_log_probs(logits, masks)[:, 7].exp().mean()

    before = chance()
    first, *_, last = [
        update(network, optimizer, rollout, settings=settings, generator=generator)
        for _ in range(6)
    ]
    assert last["value_loss"] < 0.8 * first["value_loss"]
    assert first["explained_variance"] == pytest.approx(0, abs=0.01)  # untrained values
    assert chance() > 1.2 * before
    assert first["decisions"] <= 40 * 16
    assert first["grad_norm"] > 0
    assert all(parameter.dtype == torch.float32 for parameter in network.parameters())


def test_pieces_of_a_minibatch_add_up_to_its_gradients() -> None:
    rng, size = np.random.default_rng(0), 11
    network = build_network("mlp", load_board("city"), 16, 0, relative_types=True)
    shape = size, network.scale.shape[0]
    masks = torch.from_numpy(rng.random((size, load_board("city").num_actions)) < 0.3)
    minibatch = Decisions(
        torch.from_numpy((rng.integers(0, 2, shape) * rng.integers(0, 2, shape)).astype(np.uint8)),
        masks,
        masks.float().argmax(dim=1),
        *torch.from_numpy(rng.normal(size=(3, size)).astype(np.float32)),
    )
    whole, wanted = compute_gradients(network, minibatch, minibatch_size=size, settings=SETTINGS)
    pieces = [
        compute_gradients(network, piece, minibatch_size=size, settings=SETTINGS)
        for piece in minibatch.split(3)
    ]
    torch.testing.assert_close(sum(scalars for _, scalars in pieces), wanted)
    for gradient, *parts in zip(whole, *(parts for parts, _ in pieces), strict=True):
        torch.testing.assert_close(sum(parts), gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("supported", [True, False])
def test_precision_is_chosen_by_the_setting_and_the_processor(
    supported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = {"avx512bf16": supported, "amx-bf16": False}
    monkeypatch.setattr(policies, "get_host_cpu_features", lambda: features)
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert uses_bfloat16("auto", cpu) == supported
    assert not uses_bfloat16("auto", gpu)
    assert uses_bfloat16("bfloat16", cpu)
    assert not uses_bfloat16("float32", cpu)


def test_a_gpu_is_used_if_its_environment_plays_all_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, others = PPOConfig(bots=("greedy",)), PPOConfig(bots=("greedy", "planner"))
    assert find_device(compiled.changed({"device": "cpu"})).type == "cpu"
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    for installed, available in product((False, True), repeat=2):
        monkeypatch.setattr(importlib.util, "find_spec", lambda _, found=installed: found or None)
        monkeypatch.setattr(torch.cuda, "is_available", lambda result=available: result)
        assert find_device(compiled).type == ("cuda" if installed and available else "cpu")
        assert find_device(others).type == "cpu"
    with pytest.raises(ValueError, match="bots has 'planner'; allowed on a GPU: random, greedy"):
        find_device(others.changed({"device": "cuda"}))
