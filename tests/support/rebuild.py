"""Rebuild a state from an observation, seats counted from the viewer."""

import numpy as np

from busenv import Board
from busenv.core.state import GAME, NO_ACTION, NO_LIMIT, NOWHERE, OVER, SELECT_ACTIONS
from busenv.observation import ObservationLayout


def bits(flags: np.ndarray) -> int:
    return sum(1 << i for i, flag in enumerate(flags.tolist()) if flag)


def rebuild(board: Board, row: np.ndarray) -> np.ndarray:
    """A GAME array (shape (1,)) that plays on like the game that was seen.

    What the state keeps only between a decision's offer and its choice is set from what is seen;
    numbers that only ever count in comparison (the order of deliveries) keep their order.
    """
    layout = ObservationLayout(board)
    games = np.zeros(1, GAME)
    g = games[0]

    def part(name: str) -> np.ndarray:
        return layout.part(row, name).astype(int)

    players = 3 + part("table.num_players").argmax()
    g["players"] = players
    g["phase"] = part("table.phase").argmax()
    for name in ("round", "supply", "zone", "max_buses", "space", "power"):
        g[name] = part(f"table.{name}")[0]
    for name in ("space_limit", "bus_limit", "final_segment", "sharing_again", "extra_needs_power"):
        g[name] = part(f"table.{name}")[0]
    g["clock"] = part("table.clock").argmax()
    g["clock_stones"] = part("table.stones_left")[0]
    action = part("table.action")
    g["action"] = action.argmax() if action.any() else NO_ACTION
    _players(g, part, players)
    _lines(g, board, part, players)
    _city(g, board, part)
    names = "line_expansion buses passengers buildings clock vrrooomm starting_player".split()
    spaces = [part(f"players.spaces_{name}").T for name in names]  # (spaces, players)
    g["taken"] = part("table.taken")
    g["open"] = 127
    for a, owners in enumerate(spaces):
        for space in range(g["taken"][a]):
            assert owners[space].sum() == 1
            g["spaces"][a, space] = owners[space].argmax()
        limit = 1 if a in (1, 4, 6) else g["space_limit"]
        if g["taken"][a] == limit:
            g["open"] = int(g["open"]) & ~(1 << a)
    if g["phase"] == OVER:
        g["ending"] = 1 if g["clock_stones"] == 0 else 2 if g["free_sites"] == 0 else 3
    return games


def _players(g, part, players: int) -> None:  # type: ignore[no-untyped-def]
    column = {}
    for name in (
        "decides action_markers line_markers line_unlimited buses time_stones deliveries "
        "delivery_order placed choosing starts started_game"
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
    g["delivered"] = column["deliveries"].sum()
    g["placed"][:players] = column["placed"]
    if g["phase"] == SELECT_ACTIONS:
        g["choosing"] = bits(column["choosing"])
    g["seat"] = column["decides"].argmax() if g["phase"] != OVER else 0
    g["start"] = column["starts"].argmax()
    g["first"] = column["started_game"].argmax()


def _lines(g, board: Board, part, players: int) -> None:  # type: ignore[no-untyped-def]
    codes, reach, ends = (
        part("streets.line"),
        part("intersections.on_line"),
        part("intersections.line_end"),
    )
    for name in ("head", "tail", "head_street", "tail_street"):
        g[name][:] = NOWHERE
    for seat in range(players):
        line = bits(codes[:, seat] > 0)
        g["line"][seat] = (line & (2**64 - 1), line >> 64)
        g["reach"][seat] = bits(reach[:, seat])
        if line:
            g["head"][seat] = np.flatnonzero(ends[:, seat] & 2)[0]
            g["tail"][seat] = np.flatnonzero(ends[:, seat] & 1)[0]
            arrived = codes[:, seat] - 1
            g["head_street"][seat] = np.flatnonzero(np.isin(arrived, (2, 3)))[0]
            g["tail_street"][seat] = np.flatnonzero(np.isin(arrived, (1, 3)))[0]
        for name in ("head_shared", "tail_shared"):
            g[name][seat] = bits(part(f"players.{name}")[seat])
    marked = bits(codes.any(axis=1))
    g["marked"] = (marked & (2**64 - 1), marked >> 64)
    grow = part("streets.may_grow")[:, 0]
    for name, mark in (("grow_head", 2), ("grow_tail", 1)):
        streets = bits(grow & mark)
        g[name] = (streets & (2**64 - 1), streets >> 64)


def _city(g, board: Board, part) -> None:  # type: ignore[no-untyped-def]
    people = part("intersections.passengers")[:, 0]
    g["passengers"][: len(people)] = people
    g["occupied"] = bits(people)
    built = part("sites.building")
    for kind in range(3):
        g["type_sites"][kind] = bits(built[:, kind])
        g["built"][kind] = bits(part("intersections.buildings")[:, kind])
    g["free_sites"] = bits(built.sum(axis=1) == 0)
    g["waiting"] = bits(part("intersections.waiting")[:, 0])
    g["vacant"] = bits(part("intersections.vacant")[:, 0])
