"""How fast a network is in compiled code, and by torch one position at a time, on one core.

    python -m busenv.experiments.profiling.inference_speed --network seats --width 384

Positions are those that a trained policy gets into, game after game, with a choice to make. In
compiled code what one has in common with one before is not worked out again, as in a search.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

from busenv import Game, load_board
from busenv.agents import make_agent
from busenv.agents.networks.compiled_mlp import make_workspace, read_weights
from busenv.agents.networks.evaluation_features import observe_with_features
from busenv.agents.networks.inference import evaluate_games
from busenv.agents.networks.mlp import NETWORKS, Mlp, build_network
from busenv.agents.networks.policy_agent import PolicyAgent

REPEATS = 9
PLAYER = "net:city-2"


def real_positions(games: int, seed: int = 0) -> list[Game]:
    """Positions of games of 3, 4 and 5 players in which there is a choice."""
    agent, found = make_agent(PLAYER, seed), []
    for number in range(games):
        game = Game(3 + number % 3, seed=seed + number)
        while not game.is_over:
            if len(game.legal_actions()) > 1:
                found.append(game.clone())
            game.step(agent.act(game))
    return found


def seconds_each(work: Callable[[], object], count: int) -> float:
    """Median time of one of `count` things that a call does."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times) / count


def measure(kind: str, width: int) -> dict[str, float]:
    """Seconds of one evaluation, compiled and by torch, and of one decision."""
    board = load_board("city")
    network = build_network(kind, board, width, seed=1)
    assert isinstance(network, Mlp)
    positions = real_positions(20)
    games = np.concatenate([game.arrays()[0] for game in positions])
    weights = read_weights(network)
    work = make_workspace(weights)
    rows = torch.from_numpy(observe_with_features(games, board, weights.eval_weights)[0])[:200, None]
    agent = PolicyAgent(network, board)
    with torch.inference_mode():
        return {
            "compiled": seconds_each(
                lambda: evaluate_games(games, board.array, weights, work), len(games)
            ),
            "torch": seconds_each(lambda: [network(row) for row in rows], len(rows)),
            "decision": seconds_each(lambda: [agent.act(g) for g in positions], len(games)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--network", choices=[*NETWORKS], default="seats", help="(seats)")
    parser.add_argument("--width", type=int, default=384, help="(384)")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    found = measure(chosen.network, chosen.width)
    fast, slow, decision = (1e6 * found[what] for what in ("compiled", "torch", "decision"))
    print(
        f"{chosen.network}, {chosen.width} wide: {1e6 / fast:,.0f} evaluations a second "
        f"({fast:.1f} µs), torch {slow:.0f} µs, {slow / fast:.1f} times; "
        f"a decision {decision:.0f} µs"
    )


if __name__ == "__main__":
    main()
