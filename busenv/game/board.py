"""Boards: validation, and arrays for the core.

A board is a JSON file with `intersections` (id, x, y, roundabout, train_station), `streets` (pairs
of intersection ids) and `sites` (id, intersection, zone), and optionally `name` and `source`; see
`boards/city.json`. Other keys are errors.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from busenv.core.state import (
    BOARD,
    FIRST_BUILD,
    MAX_INTERSECTIONS,
    MAX_SITES,
    MAX_STREETS,
    NUM_SPLITS,
)
from busenv.error_text import LONGEST, did_you_mean, quote
from busenv.errors import BoardError
from busenv.io import is_int

BOARDS = Path(__file__).parents[1] / "boards"  # of the package
KEYS = ("name", "source", "intersections", "streets", "sites")  # of a board file

Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Intersection:
    """An intersection of streets. x, y: drawing coordinates in any unit, y downwards."""

    x: float
    y: float
    roundabout: bool
    train_station: bool


@dataclass(frozen=True)
class Site:
    """A building site (R14): the id of its intersection, and its zone, counted from 1."""

    intersection: int
    zone: int


@dataclass(frozen=True, eq=False)
class Board:
    """A valid board. Boards with equal fingerprints differ at most in name and drawing.

    intersections, streets, sites: indexed by id. A street is the ids of its two intersections.
    array: the board for kernels, `busenv.core.state.BOARD`, (1,), read-only.
    generator: version of the generator that made it (`busenv.game.board_generator`), else 0.
    """

    name: str
    intersections: tuple[Intersection, ...]
    streets: tuple[tuple[int, int], ...]
    sites: tuple[Site, ...]
    fingerprint: str
    array: np.ndarray
    generator: int = 0

    @functools.cached_property
    def num_actions(self) -> int:
        """Number of action ids: 8 + 3 sites + 2 streets + 12 + 2 + 2 intersections."""
        return int(self.array["actions"][0])

    @property
    def identity(self) -> dict[str, Any]:
        """What records hold of the board: name, fingerprint, and the generator version if any."""
        generator = {"generator": self.generator} if self.generator else {}
        return {"name": self.name, "fingerprint": self.fingerprint, **generator}

    @property
    def stations(self) -> tuple[int, int]:
        """The two intersections with a train station, by ascending id."""
        first, second = (int(i) for i in self.array["station"][0])
        return first, second

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.array.flags.writeable = False  # pickling drops this, and numba's type includes it

    def __repr__(self) -> str:
        return (
            f"Board({self.name!r}, {len(self.intersections)} intersections, "
            f"{len(self.streets)} streets, {len(self.sites)} sites)"
        )


def make_board(data: dict[str, Any], name: str = "board") -> Board:
    """Validate the content of a board file and build the board.

    name: used for data without one. Raises BoardError, which names the wrong entry.
    """
    if not isinstance(data, dict):
        raise BoardError(f"a board is a JSON object, not {type(data).__name__}")
    _check_known("the board", data, KEYS)
    name = data.get("name", name)
    if not (isinstance(name, str) and len(name) <= LONGEST and name.isprintable()):
        raise BoardError(f"'name' is {quote(name)}; allowed: up to {LONGEST} printable letters")
    entries = _entries(data, "intersections", MAX_INTERSECTIONS)
    intersections = tuple(_intersection(i, entry) for i, entry in enumerate(entries))
    count = len(intersections)
    entries = _entries(data, "streets", MAX_STREETS)
    streets = tuple(_street(i, entry, count) for i, entry in enumerate(entries))
    entries = _entries(data, "sites", MAX_SITES)
    sites = tuple(_site(i, entry, count) for i, entry in enumerate(entries))
    _check_streets(streets, count)
    _check_intersections(intersections)
    _check_zones(sites)
    return assemble_board(name, intersections, streets, sites)


def assemble_board(
    name: str,
    intersections: tuple[Intersection, ...],
    streets: tuple[tuple[int, int], ...],
    sites: tuple[Site, ...],
    generator: int = 0,
) -> Board:
    """Make the board of valid parts, which are not checked. Arguments as `Board` has them."""
    text = json.dumps(
        [
            [[i.roundabout, i.train_station] for i in intersections],
            streets,
            [[s.intersection, s.zone] for s in sites],
        ]
    )
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
    array = _array(intersections, streets, sites, int(fingerprint[:8], 16))
    return Board(name, intersections, streets, sites, fingerprint, array, generator)


def _check_known(what: str, entry: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in entry:
        if key not in keys:
            raise BoardError(
                f"{what} has an unknown key {quote(key)}; allowed: {', '.join(keys)}"
                + did_you_mean(key, keys)
            )


def _entries(data: dict[str, Any], key: str, limit: int) -> list[Any]:
    entries = data.get(key)
    if not isinstance(entries, list):
        raise BoardError(f"{key!r} must be a list")
    if not 1 <= len(entries) <= limit:
        raise BoardError(f"{key!r} has {len(entries)} entries; allowed: 1 to {limit}")
    return entries


def _is_coordinate(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) < 1e9 and math.isfinite(value)


def _fields(what: str, index: int, entry: Any, **checks: tuple[Check, str]) -> list[Any]:
    """Return the fields of an object with the right id, each checked; else raise BoardError."""
    keys = ("id", *checks)
    if not isinstance(entry, dict):
        words = ", ".join(keys)
        raise BoardError(f"{what} {index} must be an object with {words}, not {quote(entry)}")
    _check_known(f"{what} {index}", entry, keys)
    for key in keys:
        if key not in entry:
            raise BoardError(f"{what} {index} has no {key!r}")
    if not is_int(entry["id"], index, index):
        raise BoardError(
            f"{what} {index} has id {quote(entry['id'])}; ids must run 0, 1, 2, ... in order"
        )
    for key, (is_valid, allowed) in checks.items():
        if not is_valid(entry[key]):
            raise BoardError(f"{what} {index}: {key!r} is {quote(entry[key])}; allowed: {allowed}")
    return [entry[key] for key in checks]


def _intersection(index: int, entry: Any) -> Intersection:
    coordinate = _is_coordinate, "a number"
    mark = lambda value: isinstance(value, bool), "true or false"
    x, y, roundabout, station = _fields(
        "intersection", index, entry, x=coordinate, y=coordinate, roundabout=mark,
        train_station=mark,
    )  # fmt: skip
    return Intersection(float(x), float(y), roundabout, station)


def _street(index: int, entry: Any, intersections: int) -> tuple[int, int]:
    fits = isinstance(entry, list) and len(entry) == 2
    if not fits or not all(is_int(end, 0, intersections - 1) for end in entry):
        raise BoardError(
            f"street {index} is {quote(entry)}; it must be a pair of ids 0 to {intersections - 1}"
        )
    if entry[0] == entry[1]:
        raise BoardError(f"street {index} joins intersection {entry[0]} to itself")
    return entry[0], entry[1]


def _site(index: int, entry: Any, intersections: int) -> Site:
    last = intersections - 1
    fields = _fields(
        "site", index, entry,
        intersection=(lambda value: is_int(value, 0, last), f"0 to {last}"),
        zone=(lambda value: is_int(value, 1, MAX_SITES), "1, 2, 3, ..."),
    )  # fmt: skip
    return Site(*fields)


def _check_streets(streets: tuple[tuple[int, int], ...], intersections: int) -> None:
    """Check that no two streets join the same intersections, and that the board is connected."""
    seen: dict[frozenset[int], int] = {}
    for index, ends in enumerate(streets):
        other = seen.setdefault(frozenset(ends), index)
        if other != index:
            raise BoardError(f"street {index} joins {ends[0]} and {ends[1]} as street {other} does")
    reached = {0}
    while more := {i for ends in streets for i in ends if reached & set(ends)} - reached:
        reached |= more
    for index in range(intersections):
        if index not in reached:
            raise BoardError(f"intersection {index} cannot be reached from intersection 0")


def _check_intersections(intersections: tuple[Intersection, ...]) -> None:
    stations = [i for i, entry in enumerate(intersections) if entry.train_station]
    if len(stations) != 2:
        raise BoardError(f"train stations at intersections {stations}; there must be exactly 2")
    if not any(entry.roundabout for entry in intersections):
        raise BoardError("no intersection is a roundabout; at least one must be")


def _check_zones(sites: tuple[Site, ...]) -> None:
    zones = {site.zone for site in sites}
    for index, site in enumerate(sites):
        for zone in range(1, site.zone):
            if zone not in zones:
                raise BoardError(
                    f"site {index} is in zone {site.zone}, but zone {zone} has no site"
                )


def _array(
    intersections: tuple[Intersection, ...],
    streets: tuple[tuple[int, int], ...],
    sites: tuple[Site, ...],
    tag: int,
) -> np.ndarray:
    """Encode the board as one BOARD record."""
    array = np.zeros(1, BOARD)
    record = array[0]
    record["tag"] = tag
    for street, ends in enumerate(streets):
        record["street_ends"][street] = ends
        for end in ends:
            record["incident"][end, street >> 6] |= np.uint64(1 << (street & 63))
    for index, site in enumerate(sites):
        record["site_intersection"][index] = site.intersection
        record["intersection_sites"][site.intersection] |= np.uint64(1 << index)
        record["zone_sites"][site.zone - 1] |= np.uint64(1 << index)
    roundabouts = [i for i, entry in enumerate(intersections) if entry.roundabout]
    record["roundabout"][: len(roundabouts)] = roundabouts
    record["station"] = [i for i, entry in enumerate(intersections) if entry.train_station]
    record["intersections"] = len(intersections)
    record["streets"] = len(streets)
    record["sites"] = len(sites)
    record["zones"] = max(site.zone for site in sites)
    record["roundabouts"] = len(roundabouts)
    record["first_street"] = FIRST_BUILD + 3 * len(sites)
    record["first_split"] = record["first_street"] + 2 * len(streets)
    record["first_clock"] = record["first_split"] + NUM_SPLITS
    record["first_pick"] = record["first_clock"] + 2
    record["first_set"] = record["first_pick"] + len(intersections)
    record["actions"] = record["first_set"] + len(intersections)
    array.flags.writeable = False
    return array
