"""Compare training targets on the samples of expert iteration.

Run `python -m busenv.experiments.studies.targets FOLDER...`, with the folders `replay` of runs.

Every variant trains a new network on the same samples in the same order, in one pass, and is
measured on the last tenth of the games: log loss of the winner, cross-entropy of the policy, how
often the seat with the highest chance wins, and games won without search against three `planner`.
The variants add, to the network of the package before relative types:

types: building types counted from the clock.
final: an auxiliary head for lines and buildings at the end of the game.
rounds: a head for the number of rounds left.
deliveries: a head for the deliveries of each seat until the end of the next round.
soft: a second policy head, whose target is the policy to the power 1/4 (Wu 2019).
short: a second head for chances to win, whose target is the search's estimate two samples later.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from busenv import load_board
from busenv.agents import make_agent
from busenv.agents.networks.mlp import SeatsMlp, build_network, expected_log_probs, mask_logits
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.core.state import MAX_PLAYERS
from busenv.experiments.common.intervals import wilson
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.ratings.match import play_match
from busenv.train.expert_iteration.replay_buffer import read_samples
from busenv.train.expert_iteration.samples import TrainingBatch, make_batch

BOARD = load_board("city")
VARIANTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "types": ("types",),
    "final": ("final",),
    "types, final": ("types", "final"),
    "types, final, rounds": ("types", "final", "rounds"),
    "types, final, deliveries": ("types", "final", "deliveries"),
    "types, final, soft": ("types", "final", "soft"),
    "types, final, short": ("types", "final", "short"),
}
BATCH, LEARNING_RATE = 512, 1e-3
VALUE_WEIGHT, SCORE_WEIGHT = 1.5, 0.3
TEMPERATURE, GAMES = 0.1, 200  # of games against three planner


class Samples(NamedTuple):
    """Samples (SAMPLE, (N,)) in the order of time, with targets from later ones of the same game.

    deliveries: float32, (N, 5), by seat, until the end of the next round, in units of 5. later:
    float32, (N, 5), chances to win two samples later.
    """

    rows: np.ndarray
    deliveries: np.ndarray
    later: np.ndarray


def with_later_targets(rows: np.ndarray) -> Samples:
    """Find the targets that later samples of a game hold."""
    ends = np.ascontiguousarray(rows["final_lines"]).reshape(len(rows), -1)
    starts = np.append(True, (ends[1:] != ends[:-1]).any(axis=1))
    game = np.cumsum(starts)
    last = np.searchsorted(game, game, side="right") - 1
    key = game * 1000 + rows["game"]["round"]
    next_round = np.searchsorted(key, key + 1, side="right") - 1
    made = rows["game"]["deliveries"].astype(np.float32)
    later = rows["win_probs"][np.minimum(np.arange(len(rows)) + 2, last)]
    return Samples(rows, (made[next_round] - made) / 5, later)


def by_slot(values: np.ndarray, rows: np.ndarray) -> torch.Tensor:
    """Values by seat (N, 5) in clockwise order from the seat to decide; 0 for absent players."""
    players = rows["game"]["players"].astype(np.int64)[:, None]
    slots = np.arange(MAX_PLAYERS)[None, :]
    seats = (rows["game"]["seat"].astype(np.int64)[:, None] + slots) % players
    ordered = np.take_along_axis(values, seats, axis=1) * (slots < players)
    return torch.from_numpy(ordered.astype(np.float32))


def train(samples: Samples, parts: tuple[str, ...], kind: str, width: int, seed: int) -> SeatsMlp:
    """Train a network of a variant in one pass; the order of samples depends on the seed."""
    network = build_network(
        kind, BOARD, width, seed, relative_types="types" in parts, auxiliary="final" in parts
    )
    assert isinstance(network, SeatsMlp)
    outputs = {"rounds": 1, "deliveries": MAX_PLAYERS, "soft": BOARD.num_actions, "short": 5}
    heads = nn.ModuleDict({p: nn.Linear(width, outputs[p]) for p in parts if p in outputs})
    parameters = [*network.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(parameters, weight_decay=1e-4, fused=True)
    order = np.random.default_rng(seed).permutation(len(samples.rows))
    updates = len(order) // BATCH
    for k in range(updates):
        chunk = Samples(*(array[order[k * BATCH : (k + 1) * BATCH]] for array in samples))
        batch = batch_of(network, chunk.rows)
        shared = network.trunk(torch.from_numpy(batch.inputs))
        loss = sum(losses(network, shared, batch).values())
        for name, head in heads.items():
            loss = loss + EXTRA_LOSSES[name](head(shared), batch, chunk)
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * max(1 - k / updates, 0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    return network


def batch_of(network: SeatsMlp, rows: np.ndarray) -> TrainingBatch:
    """Convert samples to a batch with the winner as the value target."""
    weights = network.eval_weights.numpy()
    return make_batch(rows, BOARD, 0.25, weights, network.relative_types)


def losses(network: SeatsMlp, shared: torch.Tensor, batch: TrainingBatch) -> dict[str, Any]:
    """Weighted losses of the network's own heads by name."""
    masks, policy, win_probs, points, present, _, final = map(torch.from_numpy, batch[1:])
    logits, values, *auxiliary = (head(shared) for head in network.heads())
    wins = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
    errors = (values[:, MAX_PLAYERS:] - points).square() * present
    named = {
        "policy": -expected_log_probs(policy, log_policy(logits, masks), masks).mean(),
        "value": -VALUE_WEIGHT * expected_log_probs(win_probs, wins, present).mean(),
        "score": SCORE_WEIGHT * (errors.sum(dim=1) / present.sum(dim=1)).mean(),
    }
    if auxiliary:
        loss = nn.functional.binary_cross_entropy_with_logits(auxiliary[0], final)
        named["final"] = 1.5 * loss
    return named


def log_policy(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the legal actions, -inf for the others."""
    return mask_logits(logits, masks).log_softmax(dim=1)


def _rounds(output: torch.Tensor, batch: TrainingBatch, chunk: Samples) -> torch.Tensor:
    left = chunk.rows["rounds"].astype(np.float32) - chunk.rows["game"]["round"]
    return (output[:, 0] - torch.from_numpy(left) / 5).square().mean()


def _deliveries(output: torch.Tensor, batch: TrainingBatch, chunk: Samples) -> torch.Tensor:
    return 0.5 * (output - by_slot(chunk.deliveries, chunk.rows)).square().mean()


def _soft(output: torch.Tensor, batch: TrainingBatch, chunk: Samples) -> torch.Tensor:
    masks, soft = torch.from_numpy(batch.masks), torch.from_numpy(batch.policy) ** 0.25
    soft = soft / soft.sum(dim=1, keepdim=True).clamp(min=1e-9)  # 0 without a target
    return -2.0 * expected_log_probs(soft, log_policy(output, masks), masks).mean()


def _short(output: torch.Tensor, batch: TrainingBatch, chunk: Samples) -> torch.Tensor:
    present = torch.from_numpy(batch.present)
    wins = mask_logits(output, present).log_softmax(dim=1)
    return -expected_log_probs(by_slot(chunk.later, chunk.rows), wins, present).mean()


EXTRA_LOSSES: dict[str, Callable[[torch.Tensor, TrainingBatch, Samples], torch.Tensor]] = {
    "rounds": _rounds, "deliveries": _deliveries, "soft": _soft, "short": _short,
}  # fmt: skip


@torch.no_grad()
def measure(network: SeatsMlp, rows: np.ndarray) -> tuple[float, float, float]:
    """Return log loss of the winner, cross-entropy of the policy, and share of right favourites."""
    sums = np.zeros(3)
    for part in np.array_split(rows, max(len(rows) // 4096, 1)):
        batch = batch_of(network, part)
        masks, policy, _, _, present, *_ = map(torch.from_numpy, batch[1:])
        logits, values = network(torch.from_numpy(batch.inputs))
        wins = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
        players, seats = (part["game"][name].astype(np.int64) for name in ("players", "seat"))
        winners = torch.from_numpy((part["winner"] - seats) % players)
        loss = -wins.gather(1, winners[:, None]).sum()
        has_policy = policy.any(dim=1)
        cross = -expected_log_probs(policy, log_policy(logits, masks), masks)[has_policy].mean()
        right = (wins.argmax(dim=1) == winners).sum()
        sums += [float(loss), float(cross) * len(part), float(right)]
    loss, cross, right = sums / len(rows)
    return float(loss), float(cross), float(right)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="busenv.experiments.studies.targets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", nargs="+", help="folders with samples")
    parser.add_argument("--samples", type=int, default=300_000, help="at most (300000)")
    parser.add_argument("--players", type=int, default=4, help="held-out games (4)")
    parser.add_argument("--network", choices=("seats", "features"), default="features")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=[*VARIANTS])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = np.concatenate(read_samples(arguments.folders, BOARD))[: arguments.samples]
    rows = rows[rows["has_value_target"]]
    held = len(rows) * 9 // 10
    samples = with_later_targets(rows[:held])
    test = rows[held:][rows[held:]["game"]["players"] == arguments.players]
    print(f"{held:,} samples for training, {len(test):,} of {arguments.players} players to measure")
    for name in arguments.only:
        for seed in range(arguments.seeds):
            network = train(samples, VARIANTS[name], arguments.network, arguments.width, seed)
            loss, cross, right = measure(network, test)
            agent = PolicyAgent(network, BOARD, "net", seed, TEMPERATURE)
            won = play_match([agent, *[make_agent("planner", k) for k in range(3)]], GAMES)[0].wins
            low, high = wilson(won, GAMES)
            print(
                f"{name:26} seed {seed}: winner {loss:.4f}, policy {cross:.4f}, favourite "
                f"{right:.1%}, planner {won / GAMES:.1%} [{low:.0%}, {high:.0%}]",
                flush=True,
            )


if __name__ == "__main__":
    run_command(main)
