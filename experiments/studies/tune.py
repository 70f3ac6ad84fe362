"""Fit the weights of the planner's evaluation.

Run `python -m experiments.studies.tune STUDY`:

value: CMA-ES (Hansen 2016) on the planner's weights, one planner against three greedy.
win: logits of winning, by a conditional logit on features of positions of mixed line-ups.

Both write weights in the format of busenv/heuristics/weights.json.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

from busenv import Game
from busenv.agents import Agent, make_agent
from busenv.agents.match import play_match
from busenv.agents.planner_agent import PlannerAgent
from busenv.cli.command import add_seed, positive
from busenv.common.keyboard_interrupt import run_command
from busenv.heuristics.evaluation import (
    FEATURES,
    OWN,
    STAGES,
    VALUE,
    WEIGHTS,
    compute_features,
    make_evaluation,
    stage,
)
from busenv.io import write_whole
from experiments.studies import study_parser

LINE_UPS = (
    ("uct:100", "greedy", "greedy", "greedy"),
    ("uct:100",) * 4,
    ("uct:100", "planner") * 2,
)
RANDOM_SHARE = 0.02  # of decisions, for positions that good play avoids
SAMPLE_SHARE = 0.15  # of positions that become samples


def weights_text(weights: np.ndarray) -> str:
    """Format weights (4, COUNT) as JSON for `busenv.heuristics.evaluation.parse_weights`."""
    named = {
        name: {f: round(float(w), 4) for f, w in zip(FEATURES, row, strict=True)}
        for name, row in zip(STAGES, weights, strict=True)
    }
    return json.dumps(named, indent=1) + "\n"


def planner_score(weights: np.ndarray, games: int, seed: int) -> float:
    """Share of wins against three greedy, plus a small bonus for points, which smooths it."""
    line_up: list[Agent] = [PlannerAgent(seed, weights)]
    line_up += [make_agent("greedy", seed + k) for k in range(1, 4)]
    score = play_match(line_up, games)[0]
    return score.wins / games + 0.05 * score.points


def tune_value(seconds: float, seed: int, path: Path, games: int = 400) -> None:
    """Optimise the current value weights for a time; writes all weights after each generation."""
    import cma

    scale = np.maximum(np.abs(WEIGHTS[VALUE]), 0.1)
    search = cma.CMAEvolutionStrategy(
        np.zeros(len(FEATURES)), 0.5, {"popsize": 20, "seed": seed + 1, "verbose": -9}
    )

    def weights(point: np.ndarray) -> np.ndarray:
        changed = WEIGHTS.copy()
        changed[VALUE] += point * scale
        return changed

    end, generation = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        generation += 1
        points = search.ask()
        search.tell(points, [-planner_score(weights(p), games, generation) for p in points])
        write_whole(path, weights_text(weights(search.mean)))
        print(f"generation {generation}: {planner_score(weights(search.mean), games, 0):.3f}")


def logit(features: np.ndarray, winners: np.ndarray, penalty: float = 1e-4) -> np.ndarray:
    """Fit weights w of the winner's probability softmax(features @ w).

    Maximises the likelihood with a small ridge penalty. features: (M, seats, K). winners: (M,),
    seats.
    """
    import torch

    scale = features.reshape(-1, features.shape[-1]).std(0) + 1e-3
    inputs, seats = torch.tensor(features / scale), torch.tensor(winners)
    weights = torch.zeros(features.shape[-1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(inputs @ weights, seats)
        value = value + penalty * (weights * weights).sum()
        value.backward()
        return value

    optimizer.step(loss)
    return weights.detach().numpy() / scale


def tune_win(seconds: float, seed: int, path: Path) -> None:
    """Fit the win weights to games of mixed line-ups played for a time; writes all weights."""
    rng, evaluation, end = random.Random(seed), make_evaluation(), time.monotonic() + seconds
    samples: dict[int, list[Any]] = {row: [] for row in range(1, len(STAGES))}
    while time.monotonic() < end:
        game, positions = Game(seed=rng.getrandbits(32)), []
        line_up = rng.choice(LINE_UPS)
        agents = [make_agent(spec, rng.getrandbits(32)) for spec in line_up]
        rng.shuffle(agents)
        while not game.is_over:
            if rng.random() < SAMPLE_SHARE:
                state = game.arrays()[0][0]
                compute_features(state, game.board.array[0], evaluation)
                positions.append((stage(state), evaluation.features[:4, :OWN].copy()))
            if rng.random() < RANDOM_SHARE:
                game.step(rng.choice(game.legal_actions()))
            else:
                game.step(agents[game.current_player].act(game))
        for row, features in positions:
            samples[row].append((features, game.ranking().index(0)))
    weights = WEIGHTS.copy()
    for row, pairs in samples.items():
        if not pairs:
            raise SystemExit(f"no positions of stage {STAGES[row]}; allowed: more --seconds")
        features, winners = (np.array(part) for part in zip(*pairs, strict=True))
        weights[row, :OWN] = logit(features, winners)
        print(f"{STAGES[row]}: {len(pairs)} positions")
    write_whole(path, weights_text(weights))


def main() -> None:
    parser = study_parser("tune", __doc__)
    parser.add_argument("study", choices=("value", "win"), help="weights to fit")
    parser.add_argument(
        "--seconds",
        type=positive(float),
        default=240.0,
        help="time budget in seconds (default: 240)",
    )
    add_seed(parser, "random seed of games and search")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/weights.json"),
        help="file to write (default: runs/weights.json)",
    )
    arguments = parser.parse_args()
    tune = tune_value if arguments.study == "value" else tune_win
    if arguments.out.is_dir():
        parser.error(f"--out is {arguments.out}, a folder; allowed: a file")
    try:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out: {error}")
    tune(arguments.seconds, arguments.seed, arguments.out)
    print(f"weights: {arguments.out}")


if __name__ == "__main__":
    run_command(main)
