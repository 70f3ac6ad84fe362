"""Compare training targets on the samples of expert iteration.

Run `python -m busenv.experiments.studies.targets FOLDER...`, with the folders `replay` of runs.

Every variant trains a new network on the same samples in the same order, in one pass, and is
measured on the last tenth of the samples: log loss of the winner, cross-entropy of the policy, how
often the seat with the highest chance wins, and games won without search against three `planner`.
The variants combine relative building types ("types") and the auxiliary heads of
`busenv.experiments.studies.auxiliary_heads`.
"""

from __future__ import annotations

import numpy as np
import torch

from busenv import load_board
from busenv.agents import make_agent
from busenv.agents.networks.mlp import build_network, expected_log_probs, mask_logits
from busenv.agents.networks.network import Network
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.core.state import MAX_PLAYERS
from busenv.experiments.cli.command import add_count
from busenv.experiments.common.intervals import wilson
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.ratings.match import play_match
from busenv.experiments.studies import study_parser
from busenv.experiments.studies.auxiliary_heads import HeadLearner
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.replay_buffer import read_samples
from busenv.train.expert_iteration.samples import make_batch
from busenv.train.run import LOWEST_LEARNING_RATE

BOARD = load_board("city")
VARIANTS: dict[str, tuple[bool, dict[str, float]]] = {  # relative types, weights of the heads
    "none": (False, {}),
    "types": (True, {}),
    "final": (False, {"final": 1.5}),
    "types, final": (True, {"final": 1.5}),
    "types, rounds": (True, {"rounds": 0.1}),
    "types, deliveries": (True, {"deliveries": 0.3}),
    "types, reply": (True, {"reply": 0.15}),
    "types, soft policy": (True, {"soft policy": 1.0}),
    "types, short-term value": (True, {"short-term value": 0.5}),
    "types, soft policy, short-term value": (True, {"soft policy": 1.0, "short-term value": 0.5}),
}
SEEDS, WIDTH, THREADS = 3, 256, 1
PLAYERS = 4  # of the held-out games
BATCH, LEARNING_RATE = 512, 1e-3
TEMPERATURE, GAMES = 0.1, 1000  # of games against three planner


def train(samples: np.ndarray, config: ExpertConfig, heads: dict[str, float]) -> Network:
    """Train a network in one pass; the order of the samples depends on the seed.

    heads: weights of the auxiliary heads' losses, by name.
    """
    network = build_network(
        config.network, BOARD, config.width, config.seed, **config.network_options
    )
    learner = HeadLearner(network, BOARD, config, weights=heads, samples=samples)
    order = np.random.default_rng(config.seed).permutation(len(samples))
    updates = max(len(samples) // BATCH, 1)
    for k in range(updates):
        indices = order[k * BATCH : (k + 1) * BATCH]
        learner.step_at(indices, LEARNING_RATE * max(1 - k / updates, LOWEST_LEARNING_RATE))
    return network


@torch.no_grad()
def measure(network: Network, samples: np.ndarray) -> tuple[float, float, float]:
    """Return log loss of the winner, cross-entropy of the policy, and accuracy of the winner.

    The cross-entropy is a mean over the samples that have a policy.
    """
    sums, totals = np.zeros(3), np.zeros(3)
    for part in np.array_split(samples, max(len(samples) // 4096, 1)):
        batch = make_batch(part, BOARD, 0.0, network.inputs)
        rows, masks, policy, winner, _, present = map(torch.from_numpy, batch)
        logits, values = network(rows)
        wins = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
        log_probs = mask_logits(logits, masks).log_softmax(dim=1)
        has_policy = policy.any(dim=1)  # opponents' decisions have none
        losses = -expected_log_probs(winner, wins, present)
        cross_entropies = -expected_log_probs(policy, log_probs, masks)[has_policy]
        is_correct = wins.argmax(dim=1) == winner.argmax(dim=1)
        sums += [float(x.sum()) for x in (losses, cross_entropies, is_correct)]
        totals += [len(part), len(cross_entropies), len(part)]
    loss, cross_entropy, accuracy = sums / np.maximum(totals, 1)
    return float(loss), float(cross_entropy), float(accuracy)


def main() -> None:
    parser = study_parser("targets", __doc__)
    parser.add_argument("folders", nargs="+", help="`replay` folders of runs of expert iteration")
    add_count(parser, "--samples", 300_000, "samples to read")
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    try:
        rows = np.concatenate(read_samples(arguments.folders, BOARD))[: arguments.samples]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    num_training = len(rows) * 9 // 10
    test = rows[num_training:][rows[num_training:]["game"]["players"] == PLAYERS]
    if not len(test):
        parser.error(f"no held-out samples of games with {PLAYERS} players")
    print(f"{num_training:,} samples for training, {len(test):,} of {PLAYERS} players to measure")
    settings = ExpertConfig(network="features", width=WIDTH, value_target_mix=0.25)
    for name, (relative_types, heads) in VARIANTS.items():
        results = []
        changes = {"relative_types": relative_types, "auxiliary_weight": 1.0 if heads else 0.0}
        for seed in range(SEEDS):
            config = settings.changed({**changes, "seed": seed})
            network = train(rows[:num_training], config, heads)
            loss, cross, accuracy = measure(network, test)
            agent = PolicyAgent(network, BOARD, seed=seed, temperature=TEMPERATURE)
            won = play_match([agent, *[make_agent("planner", k) for k in range(3)]], GAMES)[0].wins
            low, high = wilson(won, GAMES)
            print(
                f"{name:36} seed {seed}: winner {loss:.4f}, policy {cross:.4f}, accuracy "
                f"{accuracy:.1%}, planner {won / GAMES:.1%} [{low:.0%}, {high:.0%}]",
                flush=True,
            )
            results.append((loss, cross, 100 * won / GAMES))
        means, lows, highs = np.mean(results, 0), np.min(results, 0), np.max(results, 0)
        parts = [
            f"{mean:.{digits}f}{unit} [{low:.{digits}f}, {high:.{digits}f}]"
            for digits, unit, mean, low, high in zip(
                (3, 3, 0), ("", "", "%"), means, lows, highs, strict=True
            )
        ]
        print(f"mean of {name}: {' | '.join(parts)}", flush=True)


if __name__ == "__main__":
    run_command(main)
