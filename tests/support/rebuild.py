"""Rebuild a state from an observation, seats counted from the viewer."""

import numpy as np

from busenv import Board
from busenv.core.state import GAME, NO_LIMIT, NOWHERE, Phase
from busenv.core.state_validation import derive_state
from busenv.observation import ObservationLayout


def bits(flags: np.ndarray) -> int:
    return sum(1 << i for i, flag in enumerate(flags.tolist()) if flag)


def rebuild(board: Board, row: np.ndarray) -> np.ndarray:
    """A GAME array (shape (1,)) that plays on like the game that was seen.

    Fields that follow from the others are derived (`busenv.core.state_validation`); numbers that
    only ever count in comparison (the order of deliveries) keep their order.
    """
    layout = ObservationLayout(board)
    games = np.zeros(1, GAME)
    g = games[0]

    def part(name: str) -> np.ndarray:
        return layout.part(row, name).astype(int)

    players = 3 + part("table.num_players").argmax()
    g["players"] = players
    g["phase"] = part("table.phase").argmax()
    for name in (
        "round supply space power space_limit bus_limit final_segment sharing_again "
        "extra_needs_power"
    ).split():
        g[name] = part(f"table.{name}")[0]
    g["clock"] = part("table.clock").argmax()
    g["clock_stones"] = part("table.stones_left")[0]
    _players(g, part, players)
    _lines(g, board, part, players)
    people = part("intersections.passengers")[:, 0]
    g["passengers"][: len(people)] = people
    for kind, sites in enumerate(part("sites.building").T):
        g["type_sites"][kind] = bits(sites)
    names = "line_expansion buses passengers buildings clock vrrooomm starting_player".split()
    spaces = [part(f"players.spaces_{name}").T for name in names]  # (spaces, players)
    g["taken"] = part("table.taken")
    for a, owners in enumerate(spaces):
        for space in range(g["taken"][a]):
            assert owners[space].sum() == 1
            g["spaces"][a, space] = owners[space].argmax()
    derive_state(games, board.array)
    return games


def _players(g, part, players: int) -> None:  # type: ignore[no-untyped-def]
    column = {}
    for name in (
        "decides action_markers line_markers line_unlimited buses time_stones deliveries "
        "delivery_order choosing starts started_game"
    ).split():
        column[name] = part(f"players.{name}")[:players, 0]
    assert part("players.present")[:, 0].tolist() == [1] * players + [0] * (5 - players)
    g["markers"][:players] = column["action_markers"]
    g["line_markers"][:players] = np.where(
        column["line_unlimited"], NO_LIMIT, column["line_markers"]
    )
    g["buses"][:players] = column["buses"]
    g["stones"][:players] = column["time_stones"]
    g["deliveries"][:players] = column["deliveries"]
    g["delivery_order"][:players] = column["delivery_order"]
    if g["phase"] == Phase.SELECT_ACTIONS:
        g["choosing"] = bits(column["choosing"])
    g["seat"] = column["decides"].argmax() if g["phase"] != Phase.OVER else 0
    g["start"] = column["starts"].argmax()
    g["first"] = column["started_game"].argmax()


def _lines(g, board: Board, part, players: int) -> None:  # type: ignore[no-untyped-def]
    codes, ends = part("streets.line"), part("intersections.line_end")
    for name in ("head", "tail", "head_street", "tail_street"):
        g[name][:] = NOWHERE
    for seat in range(players):
        line = bits(codes[:, seat] > 0)
        g["line"][seat] = (line & (2**64 - 1), line >> 64)
        if line:
            g["head"][seat] = np.flatnonzero(ends[:, seat] & 2)[0]
            g["tail"][seat] = np.flatnonzero(ends[:, seat] & 1)[0]
            arrived = codes[:, seat] - 1
            g["head_street"][seat] = np.flatnonzero(np.isin(arrived, (2, 3)))[0]
            g["tail_street"][seat] = np.flatnonzero(np.isin(arrived, (1, 3)))[0]
        for name in ("head_shared", "tail_shared"):
            g[name][seat] = bits(part(f"players.{name}")[seat])
