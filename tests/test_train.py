"""Learning from every seat: advantages along each seat's own chain, and what a rollout holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from busenv import load_board
from busenv.agents import make_agent
from busenv.agents.networks.inference import make_forward
from busenv.agents.networks.mlp import build_network, mask_logits
from busenv.core.state import OVER
from busenv.train.league import draw_seat_owners
from busenv.train.ppo import SeatPPO, imitate
from busenv.train.ppo_selfplay import Decisions, join, play_games
from busenv.train.rollout import ImitationBatch, Rollout, seat_advantages
from busenv.train.selfplay_games import SelfPlayGames

CITY = load_board("city")


def advantages(
    seats: list[int], rewards: list[list[float]], values: list[float], gamma: float, lam: float
) -> list[float]:
    """Of one game: who decided, and the reward of each seat after each decision."""
    steps = len(seats)
    cumulative = np.concatenate([np.zeros((1, 5)), np.cumsum(np.array(rewards, float), axis=0)])
    out = np.zeros(steps, np.float32)
    seat_advantages(
        np.zeros(steps, np.int64),
        np.array(seats),
        cumulative[np.arange(steps), seats],
        cumulative[-1:],
        np.array(values, np.float32),
        gamma,
        lam,
        out,
    )
    return out.tolist()


def test_rewards_reach_the_seat_that_earned_them() -> None:
    # Seats 0, 1, 2, 0, 1 decide; the game ends with the last decision.
    found = advantages(
        [0, 1, 2, 0, 1],
        [[0, 0, 0, 0, 0], [2, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 4, 0, 0, 0], [8, 16, 32, 0, 0]],
        [1, 2, 3, 4, 5],
        gamma=1,
        lam=1,
    )
    # Seat 0: 2 comes before its second decision, 8 at the end. Seat 1: 4, then 16. Seat 2: 1 + 32.
    assert found == [2 + 8 - 1, 4 + 16 - 2, 1 + 32 - 3, 8 - 4, 16 - 5]


def test_discount_and_lambda_run_along_the_chain() -> None:
    found = advantages(
        [0, 1, 0, 1],
        [[0, 0, 0, 0, 0], [2, 0, 0, 0, 0], [0, 0, 0, 0, 0], [8, 3, 0, 0, 0]],
        [1, 7, 4, 6],
        gamma=0.5,
        lam=0.25,
    )
    last, other = 8 - 4, 3 - 6
    assert found == [
        (2 + 0.5 * 4 - 1) + 0.5 * 0.25 * last,
        (0 + 0.5 * 6 - 7) + 0.5 * 0.25 * other,
        last,
        other,
    ]


def new_games(players: list[int], reward: str = "margin", unit: float = 1.0) -> SelfPlayGames:
    counts = np.array(players, np.int64)
    return SelfPlayGames(load_board("city"), "capstone-2024", reward, unit, counts, counts - 1)


def finished(decisions: Decisions, games: SelfPlayGames) -> Rollout:
    rng, device = np.random.default_rng(0), torch.device("cpu")
    return Rollout(decisions, games.cumulative_rewards, 1.0, 1.0, rng, device)


@pytest.mark.parametrize("reward", ["margin", "win", "deliveries"])
def test_only_real_choices_come_up_and_all_rewards_are_counted(reward: str) -> None:
    games = new_games([3, 4, 5], reward, unit=2.0)
    agent = make_agent("random", 3)
    while (running := games.running()).size:
        assert (games.observe(running)[1].sum(axis=1) > 1).all()
        games.step(running, agent.choose(games.states[running], games.board))
    states, places = games.states, games.places()
    for i, players in enumerate((3, 4, 5)):
        points = states["deliveries"][i].astype(float) - states["stones"][i]
        for seat in range(players):
            others = (points.sum() - points[seat]) / (players - 1)
            expected = {
                "margin": points[seat] - others,
                "win": 1.0 if places[i, seat] == 0 else -1 / (players - 1),
                "deliveries": states["deliveries"][i, seat],
            }[reward]
            assert games.cumulative_rewards[i, seat] == pytest.approx(expected / 2)
    assert (states["phase"] == OVER).all()


def test_a_rollout_holds_the_learners_decisions_and_no_others() -> None:
    side_by_side = new_games([4, 4, 3, 5])
    network = build_network("mlp", side_by_side.board, 8)
    seat_owner = np.array([[0] * 5, [1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 2]])
    asked: list[int] = []

    class Spy:
        def __init__(self, number: int) -> None:
            self.number, self.inner = number, make_agent("random", number)

        def reset(self, seed: int) -> None:
            self.inner.reset(seed)

        def choose(self, games, board):  # type: ignore[no-untyped-def]
            asked.append(self.number)
            return self.inner.choose(games, board)

    forward = make_forward(network)
    decisions = play_games(forward, side_by_side, seat_owner, [Spy(1), Spy(2)], 1)  # type: ignore[list-item]
    games, seats = decisions.games, decisions.seats
    assert set(zip(games.tolist(), seats.tolist(), strict=True)) == {
        (i, seat)
        for i, players in enumerate((4, 4, 3, 5))
        for seat in range(players)
        if seat_owner[i, seat] == 0
    }
    assert set(asked) == {1, 2}
    rollout = finished(decisions, side_by_side)
    # Without discount, the first decision of a seat returns the seat's rewards of the game.
    for i, seat in {(0, 0), (1, 1), (3, 3)}:
        first = np.flatnonzero((games == i) & (seats == seat))[0]
        assert rollout.returns[first] == pytest.approx(
            side_by_side.cumulative_rewards[i, seat], abs=1e-4
        )
    assert rollout.masks.gather(1, rollout.actions[:, None]).all()


def test_games_in_parts_come_together_as_a_whole() -> None:
    whole, forward = new_games([3, 4, 5, 3, 4]), make_forward(build_network("mlp", CITY, 8))
    seat_owner, bots = np.array([[0, 1, 0, 1, 0]] * 5), [make_agent("random")]
    parts = [
        (part, play_games(forward, part, seat_owner[place], bots, seed))
        for seed, place in enumerate((slice(0, 2), slice(2, 5)))
        for part in [whole.part(place)]
    ]
    assert (whole.states["phase"] != OVER).all()
    decisions = join(parts, whole)
    assert (whole.states["phase"] == OVER).all()
    assert set(decisions.games.tolist()) == set(range(5))
    rollout = finished(decisions, whole)
    for i in range(5):
        first = np.flatnonzero((decisions.games == i) & (decisions.seats == 0))[0]
        assert rollout.returns[first] == pytest.approx(whole.cumulative_rewards[i, 0], abs=1e-4)
    alone = new_games([3, 4, 5, 3, 4]).part(slice(2, 5))
    again = play_games(forward, alone, seat_owner[2:], bots, 1)
    assert all((a == b).all() for a, b in zip(again, parts[1][1], strict=True))


def test_minibatches_hold_every_decision_once() -> None:
    some, zeros = np.repeat(np.arange(10.0), 3), np.zeros(30)
    decisions = Decisions(
        np.tile(np.arange(3), 10), np.zeros(30, np.int64), zeros, some, some, some, some, some,
        np.zeros((30, 0)),
    )  # fmt: skip
    rng, device = np.random.default_rng(0), torch.device("cpu")
    rollout = Rollout(decisions, np.ones((3, 5)), 1.0, 1.0, rng, device)
    sizes = []
    seen: list[float] = []
    for batch in rollout.get(8):
        sizes.append(len(batch.actions))
        seen += batch.observations.tolist()
        assert (batch.returns == 1).all()
    assert max(sizes) <= 8
    assert sorted(seen) == sorted([float(step) for step in range(10)] * 3)


def test_every_game_keeps_a_seat_for_the_learner() -> None:
    players = np.array([3, 4, 5] * 200)
    seat_owner = draw_seat_owners(players, 2, 0.4, np.random.default_rng(0))
    there = np.arange(5) < players[:, None]
    assert ((seat_owner == 0) & there).any(axis=1).all()
    assert set(seat_owner.flatten().tolist()) == {0, 1, 2}
    alone = ((seat_owner == 0) & there).sum(axis=1) == 1
    assert 0.4 < alone.mean() < 0.7
    others = [
        set(row[seats & (row > 0)].tolist()) for row, seats in zip(seat_owner, there, strict=True)
    ]
    copies = np.array([len(kinds) == 1 for kinds in others])
    assert (alone & copies).mean() > 0.4
    assert (alone & copies & (seat_owner.max(axis=1, where=there, initial=0) == 2)).mean() > 0.15
    assert not draw_seat_owners(players, 2, 0.0, np.random.default_rng(0)).any()
    assert not draw_seat_owners(players, 0, 0.4, np.random.default_rng(0)).any()
    learner = draw_seat_owners(players, 1, 1.0, np.random.default_rng(0)) == 0
    assert ((learner & there).sum(axis=1) == 1).all()


def test_imitation_approaches_the_teacher() -> None:
    torch.set_num_threads(1)
    board = load_board("city")
    network = build_network("mlp", board, 32)
    ppo = SeatPPO(
        network, board, learning_rate=3e-3, batch_size=64, clip_range=0.2, seed=0, device="cpu"
    )
    games = new_games([4] * 6)
    forward, seat_owner = make_forward(network), np.zeros((6, 5), np.int64)
    rollout = finished(play_games(forward, games, seat_owner, [], 0, make_agent("greedy")), games)
    found = [ppo.update_by_imitation(rollout) for _ in range(30)]
    assert found[-1]["train/imitation_loss"] < 0.8 * found[0]["train/imitation_loss"]
    assert found[-1]["train/value_loss"] < found[0]["train/value_loss"]


def test_a_teacher_plays_half_of_the_games_and_the_favourites_of_the_network_the_rest() -> None:
    board = load_board("city")
    network, six = build_network("mlp", board, 32), new_games([4] * 6)
    network.get_parameter("policy.2.weight").data *= 30000  # clearer preferences
    forward, seat_owner = make_forward(network), np.zeros((6, 5), np.int64)
    teacher = make_agent("uct:4")
    decisions = play_games(forward, six, seat_owner, [], 0, teacher, temperature=0.0)
    games, _, _, observations, masks, actions, *_, taught = map(torch.from_numpy, decisions)
    with torch.no_grad():
        favourites = mask_logits(network(observations)[0], masks).argmax(dim=1)
    assert (actions == torch.where(games < 3, taught.argmax(dim=1), favourites)).all()
    torch.testing.assert_close(taught.sum(dim=1), torch.ones(len(taught)))
    assert not taught[~masks].any()


def test_imitation_follows_the_squares_of_probabilities_among_what_is_legal() -> None:
    board = load_board("city")
    ppo = SeatPPO(
        build_network("mlp", board, 8), board, learning_rate=1e-3, batch_size=64, clip_range=0.2,
        seed=0, device="cpu",
    )  # fmt: skip
    taught = torch.zeros(1, board.num_actions)
    taught[0, 3:5] = torch.tensor([0.8, 0.2])
    masks = taught > 0
    batch = ImitationBatch(
        torch.zeros(1, ppo.observation_space.shape[0], dtype=torch.uint8), masks, taught,
        torch.tensor([2.0]),
    )  # fmt: skip
    with torch.no_grad():
        logits, values = ppo.policy.network(batch.observations)
    probabilities = logits[0, 3:5].softmax(dim=0)
    expected = -(16 * probabilities[0].log() + probabilities[1].log()) / 17
    found = imitate(ppo.policy, [batch], 0.5, 1.0)
    assert found["train/imitation_loss"] == pytest.approx(float(expected), rel=1e-5)
    assert found["train/value_loss"] == pytest.approx(float((values - 2) ** 2), rel=1e-5)
