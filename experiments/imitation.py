"""Train a network by imitation of a dataset's winners, and rate it as it learns.

    python -m experiments.imitation runs/mine/dataset.npz --out runs/imitation

uses a dataset of `busenv export`. The policy learns the actions of the seats that win, by
cross-entropy, in one pass. The folder receives the curve (curve.csv, curve.png) and the model
(model.safetensors, an agent as `net:PATH`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from busenv import GameDataset, load_dataset
from busenv.agents.match import Score
from busenv.agents.policy_agent import PolicyAgent
from busenv.common.intervals import format_bounds
from busenv.dataset import Transitions
from busenv.networks.factory import build_network
from busenv.networks.model_files import save_model
from busenv.networks.network import Network
from busenv.train.learning_curve import CurvePoint, draw_curve, write_curve
from busenv.train.run_training import evaluate_against
from busenv.train.training_run import LOWEST_LEARNING_RATE

KIND, WIDTH = "mlp", 256
BATCH, LEARNING_RATE = 512, 1e-3
SHUFFLED_GAMES = 500  # replayed at a time; their decisions are shuffled
HELD_OUT = 0.05  # of the games
OPPONENTS, TEMPERATURE = ("greedy", "planner"), 0.1
CURVE_POINTS = 8


def winners(dataset: GameDataset, games: np.ndarray) -> Transitions:
    """Return the decisions of the winners of games, in relative types."""
    table = dataset.transitions(games, relative_types=True)
    return Transitions(*(column[table.ranks == 0] for column in table))


def batches(
    dataset: GameDataset, games: np.ndarray, rng: np.random.Generator
) -> Iterator[Transitions]:
    """Yield the winners' decisions once, in batches of BATCH."""
    shuffled = rng.permutation(games)
    for start in range(0, len(shuffled), SHUFFLED_GAMES):
        table = winners(dataset, shuffled[start : start + SHUFFLED_GAMES])
        order = rng.permutation(len(table.actions))
        for k in range(0, len(order) - BATCH + 1, BATCH):
            yield Transitions(*(column[order[k : k + BATCH]] for column in table))


def cross_entropy(network: Network, table: Transitions) -> torch.Tensor:
    """Return the mean cross-entropy of the policy from the actions, in nats."""
    logits, _ = network(torch.from_numpy(table.observations))
    masked = logits.masked_fill(~torch.from_numpy(table.masks), -torch.inf)
    return torch.nn.functional.cross_entropy(masked, torch.from_numpy(table.actions))


def evaluate(network: Network, dataset: GameDataset, games: int) -> dict[str, Score]:
    """Play the network against copies of each opponent; returns its score by opponent."""
    agent = PolicyAgent(network, dataset.board, temperature=TEMPERATURE)
    return {
        name: evaluate_against(
            agent,
            name,
            games,
            1,
            rules=dataset.rules,
            board=dataset.board,
            players=dataset.num_players,
        )
        for name in OPPONENTS
    }


def train(
    network: Network, dataset: GameDataset, games: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Train in one pass over games; yields decisions and seconds at points of the curve."""
    optimizer = torch.optim.AdamW(network.parameters(), fused=True)
    # The winners take about an equal share of the decisions.
    total = max(int(dataset.lengths[games].sum()) // dataset.num_players, BATCH)
    decisions, seconds, measured, start = 0, 0.0, 0, time.perf_counter()
    for batch in batches(dataset, games, rng):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * max(1 - decisions / total, LOWEST_LEARNING_RATE)
        optimizer.zero_grad()
        cross_entropy(network, batch).backward()
        optimizer.step()
        decisions += BATCH
        if decisions - measured >= total / CURVE_POINTS:
            seconds, measured = seconds + time.perf_counter() - start, decisions
            yield decisions, seconds
            start = time.perf_counter()
    if decisions > measured:
        yield decisions, seconds + time.perf_counter() - start


def main() -> None:
    """Train, and write the curve and the model after each rating."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path, help="dataset.npz of `busenv export`")
    parser.add_argument("--out", type=Path, required=True, help="folder of curve and model")
    parser.add_argument("--games", type=int, default=400, help="games of each rating")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dataset = load_dataset(arguments.dataset)
    arguments.out.mkdir(parents=True, exist_ok=True)
    held_out = max(round(HELD_OUT * len(dataset)), 1)
    training, tested = np.split(np.arange(len(dataset)), [len(dataset) - held_out])
    test = winners(dataset, tested[:SHUFFLED_GAMES])
    network = build_network(KIND, dataset.board, WIDTH, arguments.seed, relative_types=True)
    players = dataset.num_players
    card = {"network": KIND, "width": WIDTH, "temperature": TEMPERATURE, "players": [players]}
    title = f"Imitation of the winners of {len(training):,} games"
    rng, curve = np.random.default_rng(arguments.seed), []
    for decisions, seconds in train(network, dataset, training, rng):
        with torch.no_grad():
            loss = float(cross_entropy(network, test))
        scores = evaluate(network, dataset, arguments.games)
        shares = {name: score.wins / score.games for name, score in scores.items()}
        curve.append(CurvePoint(seconds, decisions, arguments.games, shares))
        save_model(network, dataset.board, arguments.out / "model.safetensors", card)
        write_curve(arguments.out / "curve.csv", curve)
        draw_curve(arguments.out / "curve.png", curve, title, players=players)
        won = ", ".join(
            f"{shares[name]:.1%} {format_bounds(*score.interval())} against {name}"
            for name, score in scores.items()
        )
        measured = f"{decisions:,} decisions, {seconds:.0f} s: held-out {loss:.3f} nats, {won}"
        print(measured, flush=True)
    if not curve:
        parser.error(f"{arguments.dataset} has too few games for a batch of {BATCH} decisions")


if __name__ == "__main__":
    main()
