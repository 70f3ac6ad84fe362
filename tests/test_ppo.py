"""PPO: advantages along each seat's trajectory, self-play games, the two updates."""

from __future__ import annotations

import copy
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch

from busenv import Board, Game
from busenv.agents import make_agent
from busenv.agents.networks.mlp import build_network, mask_logits
from busenv.core.state import FIRST_BUILD, OVER
from busenv.observation import observe_games
from busenv.train.config import PPOConfig
from busenv.train.league import draw_seat_owners
from busenv.train.ppo import PPO, clipped_policy_loss, trajectory_advantages, uses_bfloat16
from busenv.train.selfplay import Decisions, SelfPlayGames, join, play_rollout
from tests.support.networks import CITY
from tests.support.play import paid
from tests.support.training import DEVICES

CONFIG = PPOConfig(width=8, batch_size=64, precision="float32", device="cpu")


@pytest.mark.parametrize(
    ("agents", "rewards", "values", "gamma", "gae_lambda", "expected"),
    [
        # Without discount and with lambda 1 an advantage is the rest of the agent's rewards.
        (
            [0, 1, 2, 0, 1],
            [2, 4, 33, 8, 16],
            [1, 2, 3, 4, 5],
            1,
            1,
            [2 + 8 - 1, 4 + 16 - 2, 33 - 3, 8 - 4, 16 - 5],
        ),
        (
            [0, 1, 0, 1],
            [2, 0, 8, 3],
            [1, 7, 4, 6],
            0.5,
            0.25,
            [(2 + 0.5 * 4 - 1) + 0.125 * 4, (0 + 0.5 * 6 - 7) + 0.125 * -3, 8 - 4, 3 - 6],
        ),
        ([], [], [], 1, 1, []),
    ],
)
def test_gae_follows_each_agents_trajectory(
    agents: list[int],
    rewards: list[float],
    values: list[float],
    gamma: float,
    gae_lambda: float,
    expected: list[float],
) -> None:
    arrays = np.array(agents, np.int64), np.array(rewards, float), np.array(values, np.float32)
    assert trajectory_advantages(*arrays, float(gamma), float(gae_lambda)).tolist() == expected


def test_the_surrogate_loss_is_clipped_on_the_side_that_gains() -> None:
    old, advantages = torch.zeros(4), torch.tensor([1.0, 1.0, -1.0, -1.0])
    log_probs = torch.tensor([2.0, 0.5, 2.0, 0.5]).log().requires_grad_()
    loss, divergence, clip_fraction = clipped_policy_loss(log_probs, old, advantages, 0.2)
    assert float(clip_fraction) == 1
    assert float(clipped_policy_loss(log_probs, old, advantages, 0.6)[2]) == 0.5
    assert float(loss.detach()) == pytest.approx(-(1.2 + 0.5 - 2.0 - 0.8) / 4)
    loss.backward()
    assert log_probs.grad is not None
    assert (log_probs.grad != 0).tolist() == [False, True, True, False]
    ratio = log_probs.detach().exp()
    assert float(divergence) == pytest.approx(float((ratio - 1 - ratio.log()).mean()))


def new_games(players: list[int], reward: str = "margin", unit: float = 1.0) -> SelfPlayGames:
    counts = np.array(players, np.int64)
    return SelfPlayGames(
        CITY,
        "capstone-2024",
        reward=reward,
        unit=unit,
        num_players=counts,
        first_players=counts - 1,
    )


@pytest.mark.parametrize("reward", ["margin", "win", "deliveries"])
def test_self_play_skips_forced_decisions_and_sums_all_rewards(reward: str) -> None:
    games = new_games([3, 4, 5], reward, unit=2.0)
    agent = make_agent("random", 3)
    while (running := games.running()).size:
        _, masks = observe_games(games.states[running], CITY)
        assert (masks.sum(axis=1) > 1).all()
        games.step(running, agent.choose(games.states[running], games.board))
    for i, players in enumerate((3, 4, 5)):
        end = Game.from_state(games.states[i : i + 1], "capstone-2024", CITY)
        assert end.is_over
        expected = np.array(paid(end, reward)) / 2
        assert games.cumulative_rewards[i, :players] == pytest.approx(expected)


def returns_of(decisions: Decisions) -> np.ndarray:
    """Without discount: the sum of a seat's later rewards."""
    zeros = np.zeros_like(decisions.values)
    return trajectory_advantages(decisions.trajectories, decisions.rewards, zeros, 1.0, 1.0)


def test_a_rollout_holds_the_decisions_of_the_learner_only() -> None:
    games, players = new_games([4, 4, 3, 5]), (4, 4, 3, 5)
    seat_owner = np.array([[0] * 5, [1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 2]])
    asked: list[int] = []

    class Spy:
        needs_history = False

        def __init__(self, number: int) -> None:
            self.number, self.inner = number, make_agent("random", number)

        def reset(self, seed: int) -> None:
            self.inner.reset(seed)

        def choose_trusted(self, games, board):  # type: ignore[no-untyped-def]
            asked.append(self.number)
            return self.inner.choose(games, board)

    spies: Any = [Spy(1), Spy(2)]
    decisions = play_rollout(build_network("mlp", CITY, 8), games, seat_owner, spies, 1)
    assert set(decisions.trajectories.tolist()) == {
        5 * i + seat for i in range(4) for seat in range(players[i]) if seat_owner[i, seat] == 0
    }
    assert set(asked) == {1, 2}
    returns = returns_of(decisions)
    for i, seat in {(0, 0), (1, 1), (3, 3)}:  # from a seat's first decision: all its rewards
        first = np.flatnonzero(decisions.trajectories == 5 * i + seat)[0]
        assert returns[first] == pytest.approx(games.cumulative_rewards[i, seat], abs=1e-4)
    assert decisions.masks[np.arange(len(decisions.actions)), decisions.actions].all()


def test_parts_of_a_rollout_are_joined_in_order() -> None:
    network, bots = build_network("mlp", CITY, 8), [make_agent("random")]
    unplayed = [new_games([3, 4]), new_games([5, 3, 4])]
    owners = np.array([[0, 1, 0, 1, 0]] * 5)
    parts = [
        (part, play_rollout(network, part, owners[: len(part.states)], bots, seed))
        for seed, part in enumerate(copy.deepcopy(unplayed))
    ]
    assert all((games.states["phase"] != OVER).all() for games in unplayed)
    states, decisions = join(parts)
    assert states["players"].tolist() == [3, 4, 5, 3, 4]
    assert (states["phase"] == OVER).all()
    rewards = np.concatenate([part.cumulative_rewards[:, 0] for part, _ in parts])
    returns = returns_of(decisions)
    for i in range(5):
        first = np.flatnonzero(decisions.trajectories == 5 * i)[0]
        assert returns[first] == pytest.approx(rewards[i], abs=1e-4)


def test_minibatches_have_every_decision_once_an_epoch() -> None:
    ppo = PPO(build_network("mlp", CITY, 8), CONFIG)
    batches = [rows.tolist() for rows in ppo._minibatches(30, 8, 2, np.random.default_rng(0))]
    assert [len(rows) for rows in ppo._minibatches(41, 10, 1, np.random.default_rng(0))] == [
        9, 8, 8, 8, 8,
    ]  # fmt: skip
    assert max(map(len, batches)) <= 8
    for epoch in (batches[:4], batches[4:]):
        assert sorted(chain.from_iterable(epoch)) == [*range(30)]


def test_every_game_has_a_seat_of_the_learner() -> None:
    players = np.array([3, 4, 5] * 200)
    seat_owner = draw_seat_owners(players, 2, 0.4, np.random.default_rng(0))
    present = np.arange(5) < players[:, None]
    assert ((seat_owner == 0) & present).any(axis=1).all()
    assert set(seat_owner.flatten().tolist()) == {0, 1, 2}
    one_seat = ((seat_owner == 0) & present).sum(axis=1) == 1
    assert 0.4 < one_seat.mean() < 0.7
    others = [
        set(row[seats & (row > 0)].tolist()) for row, seats in zip(seat_owner, present, strict=True)
    ]
    copies = np.array([len(kinds) == 1 for kinds in others])
    assert (one_seat & copies).mean() > 0.4
    last_opponent = seat_owner.max(axis=1, where=present, initial=0) == 2
    assert (one_seat & copies & last_opponent).mean() > 0.15
    assert not draw_seat_owners(players, 2, 0.0, np.random.default_rng(0)).any()
    assert not draw_seat_owners(players, 0, 0.4, np.random.default_rng(0)).any()
    learner = draw_seat_owners(players, 1, 1.0, np.random.default_rng(0)) == 0
    assert ((learner & present).sum(axis=1) == 1).all()


def rollout(ppo: PPO, teacher: str = "", temperature: float = 1.0) -> Decisions:
    agent = make_agent(teacher) if teacher else None
    owners = np.zeros((6, 5), np.int64)
    return play_rollout(
        ppo.network, new_games([4] * 6), owners, [], 0, teacher=agent, temperature=temperature
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_ppo_updates_lower_policy_and_value_losses(precision: str, device: str) -> None:
    torch.set_num_threads(1)
    config = PPOConfig(
        width=16, batch_size=256, epochs=4, entropy_coef=0.0, precision=precision, device=device
    )
    ppo = PPO(build_network("mlp", CITY, 16), config)
    decisions, rng = rollout(ppo), np.random.default_rng(0)
    first, *_, last = [ppo.update(decisions, 0.0, rng) for _ in range(6)]
    assert last["train/policy_gradient_loss"] < first["train/policy_gradient_loss"] < 0
    assert last["train/value_loss"] < first["train/value_loss"]
    assert first["train/approx_kl"] < last["train/approx_kl"] < 1
    assert all(parameter.dtype == torch.float32 for parameter in ppo.network.parameters())


def test_the_learning_rate_falls_to_a_twentieth() -> None:
    ppo, rng = PPO(build_network("mlp", CITY, 8), CONFIG), np.random.default_rng(0)
    decisions = rollout(ppo)
    for progress, share in ((0.0, 1.0), (0.5, 0.5), (1.0, 0.05)):
        scalars = ppo.update(decisions, progress, rng)
        assert scalars["train/learning_rate"] == pytest.approx(share * CONFIG.learning_rate)
        assert ppo.optimizer.param_groups[0]["lr"] == scalars["train/learning_rate"]
        assert scalars["train/grad_norm"] > 0


@pytest.mark.parametrize("supported", [True, False])
def test_precision_is_chosen_by_the_setting_and_the_processor(
    supported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: supported)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert uses_bfloat16("auto", cpu) == supported
    assert not uses_bfloat16("auto", gpu)
    assert uses_bfloat16("bfloat16", cpu)
    assert not uses_bfloat16("float32", cpu)


def test_a_teacher_plays_half_of_the_games_and_the_network_the_rest() -> None:
    ppo = PPO(build_network("mlp", CITY, 32), CONFIG)
    ppo.network.get_parameter("policy.2.weight").data *= 1e7  # probabilities far from uniform
    decisions = rollout(ppo, "uct:4", temperature=0.0)
    trajectories, _, observations, masks, actions, *_, teaching = map(torch.from_numpy, decisions)
    with torch.no_grad():
        favourites = mask_logits(ppo.network(observations)[0], masks).argmax(dim=1)
    assert (actions == torch.where(trajectories < 15, teaching.argmax(dim=1), favourites)).all()
    torch.testing.assert_close(teaching.sum(dim=1), torch.ones(len(teaching)))
    assert not teaching[~masks].any()


@pytest.mark.parametrize("relative_types", [False, True])
def test_a_teachers_actions_are_taken_in_its_games(
    relative_types: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LastLegal:
        def reset(self, seed: int) -> None:
            pass

        def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
            policies = np.zeros((len(games), board.num_actions), np.float32)
            policies[np.arange(len(games)), last_legal(games)] = 1
            return policies

    def last_legal(games: np.ndarray) -> np.ndarray:
        _, masks = observe_games(games, CITY)
        return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)

    def recorded(self: SelfPlayGames, indices: np.ndarray, actions: np.ndarray) -> None:
        rows = indices < 2
        taken.append((actions[rows], last_legal(self.states[indices[rows]])))
        step(self, indices, actions)

    step, taken = SelfPlayGames.step, list[tuple[np.ndarray, np.ndarray]]()
    monkeypatch.setattr(SelfPlayGames, "step", recorded)
    network = build_network("mlp", CITY, 8, relative_types=relative_types)
    teacher: Any = LastLegal()
    play_rollout(network, new_games([3] * 4), np.zeros((4, 5), np.int64), [], 0, teacher=teacher)
    actions, expected = map(np.concatenate, zip(*taken, strict=True))
    np.testing.assert_array_equal(actions, expected)
    builds = (actions >= FIRST_BUILD) & (actions < CITY.array["first_street"][0])
    assert builds.sum() > 10


def test_imitation_targets_are_squared_probabilities_of_legal_actions() -> None:
    ppo, one = PPO(build_network("mlp", CITY, 8), CONFIG), np.zeros(1, np.int64)
    teaching = np.zeros((1, CITY.num_actions), np.float32)
    teaching[0, 3:5] = 0.8, 0.2
    observation = np.zeros((1, len(ppo.network.scale)), np.uint8)
    empty = np.zeros(1, np.float32)
    decisions = Decisions(
        one, np.array([2.0]), observation, teaching > 0, one + 3, empty, empty, teaching
    )
    with torch.no_grad():
        logits, values = ppo.network(torch.from_numpy(observation))
    probabilities = logits[0, 3:5].softmax(dim=0)
    expected = -(16 * probabilities[0].log() + probabilities[1].log()) / 17
    losses = _first_step(ppo, decisions)
    assert losses["train/imitation_loss"] == pytest.approx(float(expected), rel=1e-5)
    assert losses["train/value_loss"] == pytest.approx(float((values - 2) ** 2), rel=1e-5)


def test_imitation_updates_lower_policy_and_value_losses() -> None:
    torch.set_num_threads(1)
    ppo, rng = PPO(build_network("mlp", CITY, 32), CONFIG), np.random.default_rng(0)
    decisions = rollout(ppo, "greedy")
    first, *_, last = [ppo.imitate(decisions, rng) for _ in range(15)]
    assert last["train/imitation_loss"] < 0.8 * first["train/imitation_loss"]
    assert last["train/value_loss"] < first["train/value_loss"]


def _first_step(ppo: PPO, decisions: Decisions) -> dict[str, float]:
    """The losses before the first update."""
    ppo._step = lambda loss: torch.zeros(())  # type: ignore[method-assign]
    return ppo.imitate(decisions, np.random.default_rng(0))
