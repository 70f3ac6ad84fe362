"""The state of a batch of games, from which `Batch.restore` continues them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from busenv.core.state import MAX_PLAYERS, OVER
from busenv.game.board_specs import BoardSet
from busenv.game.states import check_games

# The arrays of `busenv.core.batch_kernels.Arrays` that the next step depends on, except those that
# an observation of the games writes.
STATE_ARRAYS = (
    "games", "board_index", "rules", "streams", "episodes", "words_drawn", "needs_reset",
    "seat_owners", "acting_seats",
)  # fmt: skip


def as_bytes(array: np.ndarray) -> np.ndarray:
    """View an array as bytes: NumPy copies records field by field, which is slow."""
    return array.reshape(-1).view(np.uint8)


def take_games(games: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return copies of some games: GAME, (n,), of GAME, (N,), at int64 or bool `index`."""
    rows = as_bytes(games).reshape(len(games), games.itemsize)[index]
    return rows.reshape(-1).view(games.dtype)


def check_state(
    state: Mapping[str, np.ndarray],
    empty: Mapping[str, np.ndarray],
    boards: BoardSet,
    kinds: np.ndarray,
) -> None:
    """Raise ValueError for a state that the games of a batch cannot continue from.

    empty: arrays of the batch's dtypes and shapes, with its rules. kinds: of players, as in
    `busenv.core.batch_kernels.Arrays`.
    """
    if state.keys() != empty.keys():
        raise ValueError(f"the state has the arrays {[*state]}; allowed: {[*empty]}")
    if state["rules"].tobytes() != empty["rules"].tobytes():
        raise ValueError("the state is of games with other rules or numbers of players")
    for name, array in empty.items():
        if (state[name].dtype, state[name].shape) != (array.dtype, array.shape):
            raise ValueError(
                f"{name} of the state has shape {state[name].shape} and dtype "
                f"{state[name].dtype}; allowed: shape {array.shape}, dtype {array.dtype}"
            )
    index = state["board_index"]
    limits = {
        "board_index": len(boards), "acting_seats": MAX_PLAYERS, "needs_reset": 2,
        "episodes": 2**62, "words_drawn": 2**62,
    }  # fmt: skip
    for name, limit in limits.items():
        values = state[name].view(np.uint8) if name == "needs_reset" else state[name]
        if ((values < 0) | (values >= limit)).any():
            raise ValueError(f"{name} of the state has a value outside of 0 to {limit - 1}")
    for board in np.unique(index):
        check_games(state["games"][index == board], boards[board])
    if not kinds[1]:
        return
    games, owners = state["games"], np.unique(state["seat_owners"])
    learner = (state["seat_owners"] == 0) & (np.arange(MAX_PLAYERS) < games["players"][:, None])
    if not (np.isin(owners, kinds).all() and (learner.sum(axis=1) == 1).all()):
        raise ValueError(
            f"seat_owners of the state has the players {owners.tolist()}; allowed with these "
            f"opponents: {np.unique(kinds).tolist()}, with one seat of 0 in each game"
        )
    is_waiting = learner[np.arange(len(games)), games["seat"]] | (games["phase"] == OVER)
    if not is_waiting.all():
        raise ValueError("the state is of an interrupted step: an opponent decides next")
