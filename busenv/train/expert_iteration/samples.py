"""Training samples of expert iteration: a record for each decision, and batches made of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv import Board
from busenv.core.jit import kernel
from busenv.core.relative_types import relative_action
from busenv.core.rules.score import points_of, rank_of
from busenv.core.state import GAME, MAX_PLAYERS, OVER
from busenv.game.board_specs import GeneratedBoards, arrays_at, board_at
from busenv.game.states import check_games
from busenv.networks.inputs import Inputs, observe_inputs
from busenv.networks.logits import POINTS

POLICY_SIZE = 64  # actions in a sample's policy: the most likely ones, where more are legal
POLICY_SCALE = 65535  # integer that stores a probability of 1

SAMPLE = np.dtype(
    [
        ("game", GAME),  # position before the decision
        # Policy target, in units of POLICY_SCALE. It is all zeros for an opponent's decision.
        ("actions", np.uint16, POLICY_SIZE),
        ("policy", np.uint16, POLICY_SIZE),
        ("win_probs", np.float32, MAX_PLAYERS),  # estimated before the decision, by seat
        ("points", np.int8, MAX_PLAYERS),  # at the end of the game, by seat
        ("winner", np.uint8),  # seat
        ("rounds", np.uint8),  # of the whole game
        ("board_index", np.uint32),  # in the run's set of boards, else 0
    ]
)


@kernel
def write_decision(sample, game, policy):
    """Write a position and its policy target into a sample of zeros.

    policy: float32, (num_actions,); the kernel overwrites it.
    """
    sample.game = game
    for k in range(POLICY_SIZE):
        best = policy.argmax()
        if policy[best] <= 0.0:
            break
        sample.actions[k] = best
        sample.policy[k] = np.uint16(round(POLICY_SCALE * np.float64(policy[best])))
        policy[best] = 0.0


@kernel
def write_outcome(samples, game):
    """Write the result of a finished game into its samples.

    Win probabilities that are all zero become 1 for the winner.
    """
    for i in range(samples.shape[0]):
        for seat in range(game.players):
            samples[i].points[seat] = points_of(game, seat)
            if rank_of(game, seat) == 0:
                samples[i].winner = seat
        if samples[i].win_probs.sum() == 0.0:
            samples[i].win_probs[samples[i].winner] = 1.0
        samples[i].rounds = game.round


class TrainingBatch(NamedTuple):
    """Inputs and targets of N samples. Seats are relative: slot 0 is the seat that decides.

    rows: uint8, (N, size). masks: bool, (N, num_actions). policy: float32, (N, num_actions); all
    zeros in a sample without a policy target. win_probs: float32, (N, 5), with sum 1. points:
    float32, (N, 5), in units of `busenv.networks.logits.POINTS`. present: bool, (N, 5), the
    slots that a player holds.
    """

    rows: np.ndarray
    masks: np.ndarray
    policy: np.ndarray
    win_probs: np.ndarray
    points: np.ndarray
    present: np.ndarray


@kernel
def _write_targets(samples, b, value_target_mix, relative_types, targets):
    """Write the targets of samples (SAMPLE, (N,)) into the last four arrays of a `TrainingBatch`.

    targets: these arrays, zeros before.
    """
    policy, win_probs, points, present = targets
    for i in range(samples.shape[0]):
        sample = samples[i]
        game, players = sample.game, np.int64(sample.game.players)
        total = 0.0
        for k in range(POLICY_SIZE):
            total += sample.policy[k]
        for k in range(POLICY_SIZE):
            if sample.policy[k] > 0:
                action = np.int64(sample.actions[k])
                if relative_types:
                    action = relative_action(game, b, action)
                policy[i, action] = sample.policy[k] / total
        for slot in range(players):
            seat = (np.int64(game.seat) + slot) % players
            present[i, slot] = True
            points[i, slot] = sample.points[seat] / POINTS
            win_probs[i, slot] = value_target_mix * sample.win_probs[seat]
            win_probs[i, slot] += (1.0 - value_target_mix) * (sample.winner == seat)


def split_by_size(samples: np.ndarray, boards: Board | GeneratedBoards) -> list[np.ndarray]:
    """Split samples (SAMPLE, (N,)) by the size of their board."""
    if isinstance(boards, Board) or len(boards.sizes) == 1:
        return [samples]
    sizes = samples["board_index"] % len(boards.sizes)
    return [samples[sizes == size] for size in np.unique(sizes)]


def make_batch(
    samples: np.ndarray, boards: Board | GeneratedBoards, value_target_mix: float, inputs: Inputs
) -> TrainingBatch:
    """Convert samples (SAMPLE, (N,)), whose boards have one size, to a batch.

    boards: the board, or the set of boards, of their run. value_target_mix: weight of `win_probs`
    in the value target; the rest is the winner.
    inputs: what the network receives.
    """
    count = len(samples)
    arrays = arrays_at(boards, samples["board_index"])
    rows, masks = observe_inputs(np.ascontiguousarray(samples["game"]), arrays, inputs)
    targets = TrainingBatch(
        rows,
        masks,
        policy=np.zeros(masks.shape, np.float32),
        win_probs=np.zeros((count, MAX_PLAYERS), np.float32),
        points=np.zeros((count, MAX_PLAYERS), np.float32),
        present=np.zeros((count, MAX_PLAYERS), np.bool_),
    )
    _write_targets(samples, arrays[0], value_target_mix, inputs.relative_types, targets[2:])
    return targets


def check_samples(samples: np.ndarray, boards: Board | GeneratedBoards) -> None:
    """Raise ValueError unless samples have valid games, and numbers that kernels can read.

    samples: SAMPLE, (N,). boards: the board, or the set of boards, of the run.
    """
    index, count = samples["board_index"], 1 if isinstance(boards, Board) else len(boards)
    if index.max() >= count:
        raise ValueError(f"it has board number {index.max()}; the run has boards 0 to {count - 1}")
    games = np.ascontiguousarray(samples["game"])
    for k in np.unique(index):
        board = board_at(boards, k)
        check_games(games[index == k], board)
        if (samples["actions"][index == k] >= board.num_actions).any():
            raise ValueError(f"it has actions beyond the {board.num_actions} of {board!r}")
    if not ((samples["win_probs"] >= 0) & (samples["win_probs"] <= 1)).all():
        raise ValueError("its win_probs has values outside of 0 to 1")
    if (games["phase"] == OVER).any() or (samples["winner"] >= games["players"]).any():
        raise ValueError("it has games that are over, or winners that are not a seat")
