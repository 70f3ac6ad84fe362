"""The symmetry of building types: relabelling them cyclically together with the clock is neutral.

A house becomes an office, an office a pub, a pub a house, and the hand of the clock moves by one.
Legal actions, the seat to decide and the result stay the same, up to the types that actions name.
"""

import dataclasses
import random

import numpy as np
import pytest

from busenv import EDITIONS, Game, Position
from busenv.core.state import FIRST_BUILD
from tests.support.play import STYLES, choose


def relabel(ids: np.ndarray, sites: int) -> np.ndarray:
    """Action ids with the types of buildings moved on by one; other ids are unchanged."""
    builds = (ids >= FIRST_BUILD) & (ids < FIRST_BUILD + 3 * sites)
    offsets = ids - FIRST_BUILD
    return np.where(builds, FIRST_BUILD + offsets // 3 * 3 + (offsets + 1) % 3, ids)


def relabel_position(position: Position) -> Position:
    buildings = [kind if kind < 0 else (kind + 1) % 3 for kind in position.buildings]
    return dataclasses.replace(position, buildings=buildings, clock=(position.clock + 1) % 3)


@pytest.mark.parametrize("rules", EDITIONS)
def test_relabelled_types_change_nothing(rules: str) -> None:
    for seed in range(9):
        rng, game = random.Random(seed), Game(3 + seed % 3, rules, seed=seed)
        twin = Game.from_position(relabel_position(game.position()), rules)
        sites = len(game.board.sites)
        while not game.is_over:
            legal = np.array(game.legal_actions())
            assert twin.legal_actions() == sorted(relabel(legal, sites).tolist())
            assert twin.current_player == game.current_player
            streets = game.position().streets[game.current_player]
            visited = {i for street in streets for i in game.board.streets[street]}
            action = choose(rng, game.board, legal.tolist(), STYLES[seed], visited)
            game.step(action)
            twin.step(int(relabel(np.array(action), sites)))
        assert twin.position() == relabel_position(game.position())
        assert twin.ranking() == game.ranking()
