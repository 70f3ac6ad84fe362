"""Action ids: meaning, encoding and description.

One flat discrete space. With S streets, B sites and V intersections (city: 70, 47, 36):

    ids            on the city    meaning
    0..6           0..6           place a marker on an action, in the order of `BoardAction`
    7              7              pass
    8 + 3*site+t   8..148         erect a building of type t (`Building`) on a site
    + 2*street+d   149..288       grow the line along a street, away from its first (d = 0) or
                                  second (d = 1) intersection; a first marker uses d = 0
    + k            289..300       k passengers to the first station, the rest to the other
    + 0, 1         301, 302       Clock: advance, stop
    + i            303..338       Vrrooomm!: pick up a waiting passenger at intersection i
    + i            339..374       Vrrooomm!: set them down at intersection i
"""

from __future__ import annotations

import functools
import operator
import re
from typing import NamedTuple

from busenv.core.state import FIRST_BUILD, NUM_SPLITS, PASS, BoardAction, Building
from busenv.error_text import did_you_mean, quote
from busenv.game.board import Board

ACTION_WORDS = (
    "Line Expansion",
    "Buses",
    "Passengers",
    "Buildings",
    "Clock",
    "Vrrooomm!",
    "Starting Player",
)


class Move(NamedTuple):
    """A decoded action id: a kind of `KINDS`, its subject and detail (see `decode`)."""

    kind: str
    subject: int = 0
    detail: int = 0


class _Segment(NamedTuple):
    """The first id of a kind of action, and the numbers of its subjects and details."""

    first: int
    subjects: int
    details: int = 1


KINDS = ("place", "pass", "build", "grow", "split", "clock", "pick_up", "set_down")


@functools.lru_cache(maxsize=16)
def _segments(board: Board) -> dict[str, _Segment]:
    """The segments of the action ids on a board by kind, ascending."""
    record = board.array[0]
    intersections = len(board.intersections)
    segments = (
        _Segment(0, PASS),
        _Segment(PASS, 1),
        _Segment(FIRST_BUILD, len(board.sites), len(Building)),
        _Segment(int(record["first_street"]), len(board.streets), 2),
        _Segment(int(record["first_split"]), NUM_SPLITS),
        _Segment(int(record["first_clock"]), 2),
        _Segment(int(record["first_pick"]), intersections),
        _Segment(int(record["first_set"]), intersections),
    )
    return dict(zip(KINDS, segments, strict=True))


def action_id(action: int) -> int:
    """Return an action id as an int; raises TypeError unless it is a whole number."""
    try:
        return operator.index(action)
    except TypeError:
        raise TypeError(
            f"action is {action!r}; allowed: an action id, a whole number; busenv.encode returns "
            "the id of a move, such as encode(game.board, 'pass')"
        ) from None


def decode(board: Board, action: int) -> Move:
    """Decode an action id.

    kind, subject, detail: ("place", BoardAction, 0), ("pass", 0, 0), ("build", site, Building),
    ("grow", street, direction), ("split", passengers to the first station, 0),
    ("clock", 0 advance or 1 stop, 0), ("pick_up", intersection, 0), ("set_down", intersection, 0).

    Raises ValueError for an id that the board lacks.

    >>> import busenv
    >>> decode(busenv.load_board("city"), 216)
    Move(kind='grow', subject=33, detail=1)
    """
    action = action_id(action)
    if not 0 <= action < board.num_actions:
        raise ValueError(f"no action {action}; ids run from 0 to {board.num_actions - 1}")
    kind, segment = next(
        entry for entry in reversed(_segments(board).items()) if action >= entry[1].first
    )
    subject, detail = divmod(action - segment.first, segment.details)
    if kind == "place":
        subject = BoardAction(subject)
    if kind == "build":
        detail = Building(detail)
    return Move(kind, subject, detail)


def encode(board: Board, move: str | Move, subject: int = 0, detail: int = 0) -> int:
    """Encode a move, or its kind, subject and detail, as an action id: the inverse of `decode`.

    Raises ValueError, which names what is allowed, for an action that the board lacks. Whether it
    is legal depends on the game.

    >>> import busenv
    >>> city = busenv.load_board("city")
    >>> encode(city, "build", 5, Building.PUB), encode(city, "pass"), encode(city, decode(city, 99))
    (25, 7, 99)
    """
    kind, subject, detail = move if isinstance(move, Move) else (move, subject, detail)
    if kind not in KINDS:
        raise ValueError(
            f"no kind of action {kind!r}; allowed: {KINDS}{did_you_mean(str(kind), KINDS)}"
        )
    segment = _segments(board)[kind]
    for name, value, count in (
        ("subject", subject, segment.subjects),
        ("detail", detail, segment.details),
    ):
        if not hasattr(value, "__index__") or value not in range(count):
            raise ValueError(f"{kind}: no {name} {value!r}; allowed: 0 to {count - 1}")
    return segment.first + operator.index(subject) * segment.details + operator.index(detail)


def describe_action(board: Board, action: int) -> str:
    """Describe an action id in words, different for each id; `parse_action` is the inverse.

    The words have one of these forms (K, S, I, A, B and Z are numbers):

        place marker on ACTION                           one of `ACTION_WORDS`
        pass
        erect TYPE on site S at intersection I, zone Z   TYPE is house, office or pub
        grow line A→B                                    from intersection A to B
        passengers: K to the station at A, the rest to B
        let time advance
        stop time
        pick up a passenger at intersection I
        set the passenger down at intersection I

    Raises ValueError as `decode` does.
    """
    kind, subject, detail = decode(board, action)
    if kind == "place":
        return f"place marker on {ACTION_WORDS[subject]}"
    if kind == "pass":
        return "pass"
    if kind == "build":
        where, zone = board.sites[subject].intersection, board.sites[subject].zone
        name = Building(detail).name.lower()
        return f"erect {name} on site {subject} at intersection {where}, zone {zone}"
    if kind == "grow":
        ends = board.streets[subject]
        return f"grow line {ends[detail]}→{ends[1 - detail]}"
    if kind == "split":
        first, second = board.stations
        return f"passengers: {subject} to the station at {first}, the rest to {second}"
    if kind == "clock":
        return "stop time" if subject else "let time advance"
    verb = "pick up a passenger" if kind == "pick_up" else "set the passenger down"
    return f"{verb} at intersection {subject}"


def parse_action(board: Board, words: str) -> int:
    """Return the action id that words describe, the inverse of `describe_action`.

    Case and the amount of white space do not matter, and "->" is read as "→". Raises ValueError for
    other words, TypeError for anything but a string. Whether the action is legal depends on the
    game.

    >>> import busenv
    >>> parse_action(busenv.load_board("city"), "grow line 14->20")
    215
    """
    if not isinstance(words, str):
        raise TypeError(f"words is {quote(words)}; allowed: a string")
    action = _actions_by_words(board).get(plain_words(words))
    if action is None:
        raise ValueError(f"no action {quote(words)}; allowed: words of describe_action")
    return action


def plain_words(words: str) -> str:
    """Return words in the form in which they are compared: one case, single spaces, arrows."""
    return re.sub(r"\s*→\s*", "→", " ".join(words.casefold().replace("->", "→").split()))


@functools.lru_cache(maxsize=16)
def _actions_by_words(board: Board) -> dict[str, int]:
    return {plain_words(describe_action(board, i)): i for i in range(board.num_actions)}
