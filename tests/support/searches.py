"""Search trees on the city."""

from typing import Any

from busenv import Game
from busenv.search.tree import Tree, make_tree, set_root
from busenv.search.tree_search import begin_search, simulate
from tests.support.networks import CITY


def grow_tree(game: Game, search: Any, simulations: int) -> Tree:
    """The tree of a search from a game's position."""
    tree = make_tree(5000, 200_000)
    set_root(tree, game.arrays()[0])
    begin_search(tree, search, CITY.array)
    simulate(tree, search, CITY.array, simulations)
    return tree
