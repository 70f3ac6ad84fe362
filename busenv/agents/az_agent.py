"""The `az` agent: tree search guided by a network."""

from __future__ import annotations

import math

from busenv import Board
from busenv.agents.search_agent import SearchAgent
from busenv.game.board_specs import GeneratedBoards, is_playable
from busenv.networks.compiled_network import read_weights
from busenv.networks.logits import SEAT_VALUES
from busenv.networks.network import Network
from busenv.search.az_search import AzSearchState, AzSettings, make_az_search

# Playouts to the end from each leaf help long searches: their noise averages out, while the network
# repeats the same errors. Their weight in a leaf's value grows linearly from 0 at SHORT simulations
# to MAX_WEIGHT at LONG.
SHORT, LONG = 200, 400
MAX_WEIGHT, MAX_PLAYOUTS = 0.6, 4
LONG_SECONDS = 0.02  # per decision; a search of at least this length counts as LONG simulations


class AzAgent(SearchAgent):
    """Tree search by `search.az_search`; see `SearchAgent`.

    network: on the CPU. Its weights are read in place: training steps and `load_state_dict` take
        effect at the next decision. Without values for every seat, playouts alone evaluate leaves.
    board: as for `busenv.agents.policy_agent.PolicyAgent`.
    """

    edges_per_node = 16

    def __init__(
        self,
        network: Network,
        board: Board | GeneratedBoards | None,
        simulations: int | None = None,
        seconds: float | None = None,
        *,
        threads: int = 1,
        seed: int = 0,
        name: str = "az",
    ) -> None:
        self.network, self.board = network, None if network.plays_any_board else board
        super().__init__(simulations, seconds, threads=threads, seed=seed, name=name)
        length = LONG if (seconds or 0.0) >= LONG_SECONDS else simulations or 0
        num_playouts, weight = leaf_playouts(length)
        if network.num_values != SEAT_VALUES:
            num_playouts, weight = MAX_PLAYOUTS, 1.0  # playouts alone
        self._settings = AzSettings(num_playouts=num_playouts, playout_weight=weight)

    def _make_search(self, board: Board) -> AzSearchState:
        if not is_playable(board, self.board):
            raise ValueError(f"{self.name} was trained on {self.board!r}, not on {board!r}")
        return make_az_search(self._settings, read_weights(self.network))


def leaf_playouts(simulations: int) -> tuple[int, float]:
    """Return the number of playouts from each leaf, and their weight in the leaf's value.

    The number is proportional to the square of the weight, rounded up, so that the noise of the
    playouts' contribution, weight / sqrt(n), never exceeds that of the longest searches.
    """
    share = min(max(simulations - SHORT, 0), LONG - SHORT) / (LONG - SHORT)
    return math.ceil(MAX_PLAYOUTS * share**2), MAX_WEIGHT * share
