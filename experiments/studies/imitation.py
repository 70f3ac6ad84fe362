"""Train a network by imitation of a dataset's winners, and rate it as it learns.

Run `python -m busenv.experiments.studies.imitation runs/mine/dataset.npz --out runs/imitation` on a
dataset of `busenv export`. The policy learns the actions of the seats that win, by cross-entropy,
in one pass. The folder receives the curve (curve.csv, curve.png) and the model
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
from busenv.agents import make_agent
from busenv.agents.networks.mlp import Mlp, build_network, mask_logits
from busenv.agents.networks.model_files import save_model
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.dataset import Transitions
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.ratings.match import play_match
from busenv.experiments.training.learning_curve import CurvePoint, draw_curve, write_curve
from busenv.train.ppo import LOWEST_LEARNING_RATE

KIND, WIDTH = "mlp", 256
BATCH, LEARNING_RATE = 512, 1e-3
SHUFFLED_GAMES = 500  # replayed at a time; their decisions are shuffled
HELD_OUT = 0.05  # of the games
OPPONENTS, TEMPERATURE = ("greedy", "planner"), 0.1
POINTS = 8  # of the curve


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


def cross_entropy(network: Mlp, table: Transitions) -> torch.Tensor:
    """Return the mean cross-entropy of the policy from the actions, in nats."""
    logits, _ = network(torch.from_numpy(table.observations))
    masked = mask_logits(logits, torch.from_numpy(table.masks))
    return torch.nn.functional.cross_entropy(masked, torch.from_numpy(table.actions))


def rate(network: Mlp, dataset: GameDataset, games: int) -> dict[str, float]:
    """Return the share of games won against copies of each opponent."""
    agent, others = PolicyAgent(network, dataset.board, "net", 1, TEMPERATURE), {}
    for name in OPPONENTS:
        rivals = [make_agent(name, k) for k in range(1, dataset.num_players)]
        score = play_match([agent, *rivals], games, dataset.rules, dataset.board)[0]
        others[name] = score.wins / games
    return others


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="busenv.experiments.studies.imitation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of curve and model")
    parser.add_argument("--games", type=int, default=400, help="games of each rating (400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dataset = load_dataset(arguments.dataset)
    arguments.out.mkdir(parents=True, exist_ok=True)
    held_out = max(round(HELD_OUT * len(dataset)), 1)
    training, tested = np.split(np.arange(len(dataset)), [len(dataset) - held_out])
    test = winners(dataset, tested[:SHUFFLED_GAMES])
    network = build_network(KIND, dataset.board, WIDTH, arguments.seed, relative_types=True)
    optimizer = torch.optim.AdamW(network.parameters(), fused=True)
    rng = np.random.default_rng(arguments.seed)
    # A winner takes about an equal share of the decisions.
    updates = max(round(dataset.num_decisions / dataset.num_players / BATCH), 1)
    curve: list[CurvePoint] = []
    seconds, decisions, start = 0.0, 0, time.perf_counter()

    def measure() -> None:
        with torch.no_grad():
            loss = float(cross_entropy(network, test))
        shares = rate(network, dataset, arguments.games)
        curve.append(CurvePoint(seconds, decisions, arguments.games, shares))
        won = ", ".join(f"{share:.1%} against {name}" for name, share in shares.items())
        print(
            f"{decisions:,} decisions, {seconds:.0f} s: held-out {loss:.3f} nats, {won}", flush=True
        )
        write_curve(arguments.out / "curve.csv", curve)

    for batch in batches(dataset, training, rng):
        fraction = decisions / (updates * BATCH)
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * max(1 - fraction, LOWEST_LEARNING_RATE)
        optimizer.zero_grad()
        cross_entropy(network, batch).backward()
        optimizer.step()
        decisions += BATCH
        if decisions >= (len(curve) + 1) * updates * BATCH / POINTS:
            seconds += time.perf_counter() - start
            measure()
            start = time.perf_counter()
    if not curve or curve[-1].decisions != decisions:
        measure()
    title = f"Imitation of the winners of {len(training):,} games"
    draw_curve(
        arguments.out / "curve.png", curve, title, players=dataset.num_players, main_phase=""
    )
    card = {"network": KIND, "width": WIDTH}
    save_model(network, dataset.board, arguments.out / "model.safetensors", card)


if __name__ == "__main__":
    run_command(main)
