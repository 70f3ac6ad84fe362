"""Behind the planner's and the search's numbers: `python -m busenv.experiments.studies.tune STUDY`.

value: CMA-ES (Hansen 2016) on the planner's weights, one planner against three greedy.
win: who wins, as a conditional logit on the features of positions, from games of mixed line-ups.
playout: how often the search takes each action in each case that the playouts' weights tell apart.
search: one setting changed at a time, one searcher against three with the default settings.

Each prints what it found; `value` and `win` write weights, such as agents/planner/weights.json.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from busenv import Game, Phase
from busenv.agents import Agent, make_agent
from busenv.agents.planner.evaluation import (
    FEATURES,
    OWN,
    STAGES,
    VALUE,
    WEIGHTS,
    compute_features,
    make_evaluation,
    stage,
)
from busenv.agents.planner.planner_agent import PlannerAgent
from busenv.agents.search.playout import PLAYOUT_WEIGHTS, deliverable, weight_column
from busenv.agents.search.uct_agent import UctAgent
from busenv.agents.search.uct_search import UctSettings
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.ratings.match import play_match
from busenv.io import write_whole

LINE_UPS = (("uct", "greedy", "greedy", "greedy"), ("uct",) * 4, ("uct", "planner") * 2)
RANDOM_SHARE = 0.02  # share of random decisions, for positions that good play avoids
SAMPLED = 0.15  # share of the positions that are kept
CHANGES = (
    {"exploration": 0.5},
    {"exploration": 0.12},
    {"prior_temperature": 1.5},
    {"prior_temperature": 6.0},
    {"prior_visits": 1.0},
    {"prior_visits": 5.0},
    {"playout_rounds": 1},
    {"playout_rounds": 3},
    {"win_weight": 1.0},
    {"win_weight": 0.3},
)


def weights_text(weights: np.ndarray) -> str:
    """Weights (4, COUNT) as JSON, as `busenv.agents.planner.evaluation.read_weights` reads them."""
    named = {
        name: {f: round(float(w), 4) for f, w in zip(FEATURES, row, strict=True)}
        for name, row in zip(STAGES, weights, strict=True)
    }
    return json.dumps(named, indent=1) + "\n"


def planner_score(weights: np.ndarray, games: int, seed: int) -> float:
    """Share of wins against three greedy, and a little for points: a smoother hill to climb."""
    line_up: list[Agent] = [PlannerAgent(seed, weights)]
    line_up += [make_agent("greedy", seed + k) for k in range(1, 4)]
    score = play_match(line_up, games)[0]
    return score.wins / games + 0.05 * score.points


def tune_value(seconds: float, seed: int, games: int = 400) -> np.ndarray:
    """Improve the weights of STAGES "value" for `seconds`, starting from the current ones."""
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
        print(f"generation {generation}: {planner_score(weights(search.mean), games, 0):.3f}")
    return weights(search.mean)


def play_mixed(seconds: float, seed: int, simulations: int = 100) -> Iterator[tuple[Game, list]]:
    """Games of mixed line-ups, each with some of its positions: (row of weights, features)."""
    rng, evaluation, end = random.Random(seed), make_evaluation(), time.monotonic() + seconds
    specs = {"uct": f"uct:{simulations}", "planner": "planner", "greedy": "greedy"}
    makers = {name: [make_agent(spec) for _ in range(4)] for name, spec in specs.items()}
    while time.monotonic() < end:
        game = Game(seed=rng.getrandbits(32))
        names = list(rng.choice(LINE_UPS))
        rng.shuffle(names)
        agents = [makers[name][seat] for seat, name in enumerate(names)]
        for agent in agents:
            agent.reset(rng.getrandbits(32))
        kept = []
        while not game.is_over:
            if rng.random() < SAMPLED:
                record = game.arrays()[0][0]
                compute_features(record, game.board.array[0], evaluation)
                kept.append((stage(record), evaluation.features[:4, :OWN].copy()))
            if rng.random() < RANDOM_SHARE:
                game.step(rng.choice(game.legal_actions()))
            else:
                game.step(agents[game.current_player].act(game))
        yield game, kept


def logit(features: np.ndarray, winners: np.ndarray, penalty: float = 1e-4) -> np.ndarray:
    """Weights w that make the winners likeliest when chances are softmax(features @ w).

    features: (M, seats, K). winners: (M,), seats. Maximum likelihood with a small ridge.
    """
    import torch

    scale = features.reshape(-1, features.shape[-1]).std(0) + 1e-3
    rows, seats = torch.tensor(features / scale), torch.tensor(winners)
    weights = torch.zeros(features.shape[-1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(rows @ weights, seats)
        value = value + penalty * (weights * weights).sum()
        value.backward()
        return value

    optimizer.step(loss)
    return weights.detach().numpy() / scale


def tune_win(seconds: float, seed: int) -> np.ndarray:
    """Weights whose logits of winning are fitted to games played for a time."""
    kept: dict[int, list] = {row: [] for row in range(1, len(STAGES))}
    games = 0
    for game, positions in play_mixed(seconds, seed):
        games += 1
        for row, features in positions:
            kept[row].append((features, game.ranking().index(0)))
    found = WEIGHTS.copy()
    for row, samples in kept.items():
        features, winners = (np.array(part) for part in zip(*samples, strict=True))
        found[row, :OWN] = logit(features, winners)
        print(f"{STAGES[row]}: {len(samples)} positions of {games} games")
    return found


def tune_playout(seconds: float, seed: int, simulations: int = 300) -> np.ndarray:
    """How often the search takes each action, by `weight_column`: shares of the times it could.

    Returns float64, the shape of `busenv.agents.search.playout.PLAYOUT_WEIGHTS`; 0 where it never
    could.
    """
    could, taken = np.zeros(PLAYOUT_WEIGHTS.shape), np.zeros(PLAYOUT_WEIGHTS.shape)
    agent, end = make_agent(f"uct:{simulations}"), time.monotonic() + seconds
    while time.monotonic() < end:
        seed += 1
        agent.reset(seed)
        game = Game(seed=seed)
        while not game.is_over:
            action = agent.act(game)
            if game.phase == Phase.SELECT_ACTIONS:
                record, seat = game.arrays()[0][0], game.current_player
                coming = deliverable(record, seat, (int(record["clock"]) + 1) % 3)
                for option in game.legal_actions():
                    column = weight_column(record, seat, option, coming)
                    could[option, column] += 1
                    taken[option, column] += option == action
            game.step(action)
    return np.divide(taken, could, out=np.zeros_like(taken), where=could > 0)


def compare_settings(games: int, seed: int, simulations: int = 300) -> None:
    """Print how one searcher with each of CHANGES does against three with the default settings."""
    for change in ({}, *CHANGES):
        settings = UctSettings()._replace(**change)
        line_up: list[Agent] = [UctAgent(simulations, seed=seed, settings=settings)]
        line_up += [UctAgent(simulations, seed=seed + k) for k in range(1, 4)]
        score = play_match(line_up, games)[0]
        low, high = score.interval()
        share = score.wins / games
        print(f"{change or 'default'}: {share:.1%} ({low:.1%} to {high:.1%}), par 25%")


def main() -> None:
    parser = argparse.ArgumentParser(prog="busenv.experiments.studies.tune", description=__doc__)
    parser.add_argument("study", choices=("value", "win", "playout", "search"))
    parser.add_argument("--seconds", type=float, default=240.0, help="of play (240)")
    parser.add_argument("--games", type=int, default=100, help="for each setting (100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/weights.json"))
    chosen = parser.parse_args()
    if chosen.study == "search":
        compare_settings(chosen.games, chosen.seed)
    elif chosen.study == "playout":
        print(np.round(100 * tune_playout(chosen.seconds, chosen.seed)).astype(int))
    else:
        tune = tune_value if chosen.study == "value" else tune_win
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(chosen.out, weights_text(tune(chosen.seconds, chosen.seed)))
        print(f"weights: {chosen.out}")


if __name__ == "__main__":
    run_command(main)
