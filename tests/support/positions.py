"""Games at a phase or ply, and games that begin in a position."""

import random
from functools import cache

import numpy as np

from busenv import EDITIONS, BoardAction, Game, Phase
from tests.support.play import STYLES, choose

CASES = [(players, rules) for rules in EDITIONS for players in (3, 4, 5)]


def step(game: Game, rng: random.Random, style: int) -> None:
    """A decision of random play in a style (`tests.support.play`)."""
    streets = game.position().streets[game.current_player]
    visited = {i for street in streets for i in game.board.streets[street]}
    game.step(choose(rng, game.board, game.legal_actions(), STYLES[style % len(STYLES)], visited))


@cache
def at_phase(
    phase: Phase, players: int = 4, rules: str = "capstone-2024", *, least_round: int = 0
) -> Game:
    """A game that is deciding in a phase, in some round or later. Callers do not change it."""
    for seed in range(99):
        rng, game = random.Random(seed), Game(players, rules, seed=seed)
        while not game.is_over:
            step(game, rng, seed)
            if game.phase == phase and game.round >= least_round:
                return game
    raise AssertionError(f"no game comes to {phase.name}")


def at_ply(game: Game, ply: int) -> Game:
    """The game after some of its plies."""
    earlier = Game(game.num_players, game.rules, game.board, game.first_player, game.seed)
    for action in game.history[:ply]:
        earlier.step(action)
    return earlier


def at_passengers() -> Game:
    """A game in which seat 0 divides two passengers between the stations."""
    game = Game(3, first_player=0, seed=5)
    while game.phase != Phase.PASSENGERS:
        legal = game.legal_actions()
        wanted = [BoardAction.BUSES, BoardAction.PASSENGERS, 7]
        game.step(next((action for action in wanted if action in legal), legal[0]))
    return game


def begun(game: Game) -> Game:
    return Game.from_position(game.position(), game.rules, game.board)


def same(one: Game, other: Game) -> bool:
    return one.position() == other.position() and one.legal_actions() == other.legal_actions()


def relabelled(games: np.ndarray, steps: int) -> np.ndarray:
    """Return the twins of games (GAME, (N,)): types and clock moved on by a number of steps."""
    twins = games.copy()
    twins["clock"] = (games["clock"] + steps) % 3
    for field in ("type_sites", "built"):
        twins[field] = np.roll(games[field], steps, axis=1)
    return twins
