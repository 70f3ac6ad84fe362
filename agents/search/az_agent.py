"""The `az` agent: tree search guided by a network."""

from __future__ import annotations

from torch import nn

from busenv import Board
from busenv.agents.networks.compiled_mlp import read_weights
from busenv.agents.networks.mlp import SeatsMlp
from busenv.agents.search.az_search import AzSearchState, AzSettings, make_az_search
from busenv.agents.search.search_agent import SearchAgent
from busenv.game.board_specs import GeneratedBoards, is_playable

# Playouts to the end from each leaf, and their weight in its value, for searches of at least so
# many simulations. The network's errors repeat from simulation to simulation, the noise of playouts
# averages out.
PLAYOUTS = {400: (4, 0.6), 300: (1, 0.3), 0: (0, 0.0)}
LONG_SECONDS = 0.02  # of a decision; such searches use the first row


class AzAgent(SearchAgent):
    """Tree search by `agents.search.az_search`; see `SearchAgent`.

    network: with values for every seat, on the CPU. Its weights are read in place: training steps
        and `load_state_dict` take effect at the next decision.
    board: the board, or the set of boards, that the network was trained on. Games on another one,
        or on one of another size than those of the set, are refused with a ValueError.
    """

    edges_per_node = 16

    def __init__(
        self,
        network: nn.Module,
        board: Board | GeneratedBoards,
        simulations: int | None = None,
        seconds: float | None = None,
        *,
        threads: int = 1,
        seed: int = 0,
        name: str = "az",
    ) -> None:
        if not isinstance(network, SeatsMlp):
            raise ValueError(
                f"{name}: the network has no values for every seat; allowed: a model of network "
                "'seats' or 'features' (others play as net:...)"
            )
        self.network, self.board = network, board
        super().__init__(simulations, seconds, threads, seed, name)
        length = max(PLAYOUTS) if (seconds or 0.0) >= LONG_SECONDS else simulations or 0
        num_playouts, weight = next(row for least, row in PLAYOUTS.items() if length >= least)
        self._settings = AzSettings(num_playouts=num_playouts, playout_weight=weight)

    def _make_search(self, board: Board) -> AzSearchState:
        if not is_playable(board, self.board):
            raise ValueError(f"{self.name} was trained on {self.board!r}, not on {board!r}")
        return make_az_search(self._settings, read_weights(self.network))
