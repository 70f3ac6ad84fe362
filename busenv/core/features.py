"""The table of observation features: name, width, usual maximum, meaning and column of each.

`ObservationLayout` (`busenv.observation`) derives its named views from this table, and the kernels
that write observations (`core.observation_cache`, `core.observe`) take their columns from it.
"""

from __future__ import annotations

from collections import namedtuple
from itertools import chain
from typing import Any, NamedTuple

from busenv.core.state import MAX_SPACES, SINGLE, BoardAction

VERSION = 2  # of this table; a trained network fits one version


class Feature(NamedTuple):
    """A feature of each entry of a section.

    width: columns. high: highest usual value; None for the board's number of intersections.
    """

    name: str
    width: int
    high: int | None
    meaning: str


_STEPS = "with the clock as it is, one step later, two steps later"
_SHARED = "may not share with player 0..4 again (R9a)"
_ENDS = "0 not an end, 1 the end that did not move last, 2 the end that did, 3 both"

SPACES = [(action.name.lower(), 1 if action in SINGLE else MAX_SPACES) for action in BoardAction]

# Columns of features in inner parentheses alternate: the first column of each, then the second.
INTERSECTION = (
    Feature("passengers", 1, 15, "passengers at the intersection, waiting or indoors"),
    Feature("buildings", 3, 4, "houses, offices, pubs"),
    Feature("open_sites", 1, 4, "sites that may be built on now (R14)"),
    Feature("waiting", 3, 15, f"passengers without a matching building {_STEPS} (R16)"),
    Feature("vacant", 3, 4, f"matching buildings without a passenger {_STEPS} (R16)"),
    (
        Feature("on_line", 5, 1, "whether the line of player 0..4 reaches it"),
        Feature("line_end", 5, 3, f"end of the line of player 0..4: {_ENDS}"),
    ),
)
STREET = (
    (
        Feature(
            "line",
            5,
            4,
            "marker of player 0..4: 0 none, 1 a marker, 2 also the arrival street of the end "
            "that did not move last, 3 of the end that did, 4 of both",
        ),
        Feature(
            "may_grow",
            5,
            3,
            "whether the line of player 0..4 may grow along it (R9): 0 no, 1 from the end that did "
            "not move last, 2 from the end that did, 3 from either",
        ),
    ),
)
SITE = (
    Feature("building", 3, 1, "house, office or pub on the site"),
    Feature("open", 1, 1, "whether it may be built on now (R14)"),
)
PLAYER = (
    Feature("present", 1, 1, "whether there is such a player"),
    Feature("decides", 1, 1, "whether it is their turn"),
    Feature("action_markers", 1, 20, "action markers in hand"),
    Feature("line_markers", 1, 25, "line markers left; 0 when there is no limit"),
    Feature("line_unlimited", 1, 1, "whether line markers have no limit"),
    Feature("buses", 1, 5, "buses (R12)"),
    Feature("time_stones", 1, 5, "time stones taken (R15)"),
    Feature("deliveries", 1, 30, "passengers delivered; 255 for more (R17)"),
    Feature("placed", 1, 20, "markers placed this round (R4)"),
    Feature("choosing", 1, 1, "whether they still select actions this round (R4)"),
    Feature("starts", 1, 1, "whether they are the starting player (R18)"),
    Feature("started_game", 1, 1, "whether they were the game's first starting player (R20)"),
    Feature("chooses_next", 1, 1, "whether they are the next after the observer to select (R4)"),
    Feature("head_shared", 5, 1, f"whether the end that moved last {_SHARED}"),
    Feature("tail_shared", 5, 1, f"whether the other end {_SHARED}"),
    Feature("reached", 1, None, "intersections on the line"),
    Feature("growth", 1, 12, "streets onto which the line may grow"),
    Feature("rank", 1, 4, "rank so far, 0 is the lead (R20)"),
    Feature("delivery_order", 1, 5, "order of their last delivery (R20), 1 earliest, 0 none"),
    Feature("waiting", 3, 15, f"passengers on the line that wait {_STEPS}"),
    Feature("vacant", 3, 10, f"free matching buildings on the line {_STEPS}"),
    Feature("drive", 3, 5, f"deliveries of one Vrrooomm! {_STEPS}"),
    *(
        Feature(f"spaces_{name}", spaces, 1, f"spaces of {name} with the player's markers, A first")
        for name, spaces in SPACES
    ),
)
TABLE = (
    Feature("phase", 11, 1, "decision phase (busenv.Phase), one-hot"),
    Feature("num_players", 3, 1, "3, 4 or 5 players, one-hot"),
    Feature("round", 1, 10, "round; 0 during the setup"),
    Feature("clock", 3, 1, "house, office, pub, one-hot"),
    Feature("stones_left", 1, 5, "time stones on the clock"),
    Feature("supply", 1, 11, "passengers not yet in the city"),
    Feature("zone", 1, 4, "lowest zone with a free site, counted from 0"),
    Feature("max_buses", 1, 5, "M, the most buses of any player (R7)"),
    Feature("action", 7, 1, "the action being resolved, one-hot"),
    Feature(
        "space",
        1,
        6,
        "index of the space being resolved (A is 0); of the next one for Passengers and Vrrooomm!",
    ),
    Feature("power", 1, 6, "power left of the marker being resolved, or first buildings left"),
    Feature("space_limit", 1, 6, "spaces of a multi-use action"),
    Feature("bus_limit", 1, 20, "the most buses a player may have"),
    Feature("final_segment", 1, 1, "whether only the arrival street may be shared (R9)"),
    Feature("sharing_again", 1, 2, "sharing again (R9a): 0 never, 1 with another line, 2 always"),
    Feature("extra_needs_power", 1, 1, "whether five players' extra street needs power (R7)"),
    Feature("taken", 7, 6, "markers on each action"),
    Feature("next_power", 3, 6, "power of the next Line Expansion, Passengers, Buildings; 0: none"),
)

SECTIONS: dict[str, tuple[Feature | tuple[Feature, ...], ...]] = {
    "intersections": INTERSECTION,
    "streets": STREET,
    "sites": SITE,
    "players": PLAYER,
    "table": TABLE,
}


def _groups(section: str) -> list[tuple[Feature, ...]]:
    """The features of a section, alternating ones in one group."""
    return [(one,) if isinstance(one, Feature) else one for one in SECTIONS[section]]


def _columns(section: str) -> dict[str, slice]:
    columns, start = {}, 0
    for group in _groups(section):
        width = sum(feature.width for feature in group)
        for number, feature in enumerate(group):
            columns[feature.name] = slice(start + number, start + width, len(group))
        start += width
    return columns


FEATURES = {section: list(chain(*_groups(section))) for section in SECTIONS}
COLUMNS = {section: _columns(section) for section in SECTIONS}  # of each feature, by name
WIDTHS = {section: sum(feature.width for feature in FEATURES[section]) for section in SECTIONS}


def _first_columns(section: str) -> Any:
    """Return the first column of each feature of a section, as a named tuple.

    Kernels read its fields as constants, such as `PLAYER_AT.buses`.
    """
    columns = COLUMNS[section]
    names = namedtuple("Columns", columns)  # type: ignore[misc]
    return names(*(feature.start for feature in columns.values()))


INTERSECTION_AT, STREET_AT, SITE_AT, PLAYER_AT, TABLE_AT = map(_first_columns, SECTIONS)
