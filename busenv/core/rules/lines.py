"""Lines: the streets onto which a line may grow, sharing of streets, and growth (R8 to R11)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ZERO, bit, has
from busenv.core.jit import kernel
from busenv.core.state import ALWAYS, NEVER, NO_LIMIT, OTHER_LINE


@kernel
def _not_shared(g, seat, end, barred):
    """Streets, as two words of a set, that other players' lines keep a seat from sharing (R9).

    A player whose line ends at the intersection `end` allows sharing: of the street by which that
    end arrived (`final_segment`), or of any street (`line_end`). On a full loop both ends count
    (R11). barred: bit per seat, players who do not allow it because of R9a.
    """
    not_low = not_high = ZERO
    for other in range(g.players):
        if other == seat:
            continue
        low, high = g.line[other, 0], g.line[other, 1]
        if not has(barred, other):
            if g.head[other] == end:
                low, high = _without_shared(g, low, high, g.head_street[other])
            if g.tail[other] == end:
                low, high = _without_shared(g, low, high, g.tail_street[other])
        not_low |= low
        not_high |= high
    return not_low, not_high


@kernel
def _without_shared(g, low, high, arrival):
    """Take from a line the streets that its end at this intersection allows to share (R9)."""
    if not g.final_segment:
        return ZERO, ZERO
    if arrival < 64:
        return low & ~bit(arrival), high
    return low, high & ~bit(arrival - 64)


@kernel
def _has_empty_street(g, b, end):
    """Return whether some street at an intersection bears no marker."""
    return (b.incident[end, 0] & ~g.marked[0]) | (b.incident[end, 1] & ~g.marked[1]) != ZERO


@kernel
def _growth_from(g, b, seat, end, shared):
    """Streets onto which a seat's line may grow from an end, as two words of a set (R8 to R10).

    Never a street with the seat's own marker (R8). If some street at the end is empty, the others
    must be shared by exception (R9); if none is, any may be taken (R10). shared: bit per seat, what
    the end remembers of its arrival street (R9a).
    """
    low = b.incident[end, 0] & ~g.line[seat, 0]
    high = b.incident[end, 1] & ~g.line[seat, 1]
    if (low & g.marked[0]) | (high & g.marked[1]) != ZERO and _has_empty_street(g, b, end):
        if shared != 0 and g.sharing_again == NEVER:
            return low & ~g.marked[0], high & ~g.marked[1]
        not_low, not_high = _not_shared(g, seat, end, np.uint64(shared))
        return low & ~not_low, high & ~not_high
    return low, high


@kernel
def growth(g, b, seat):
    """Streets onto which a seat's line may grow (R8 to R11).

    Returns two words of a set for the end that moved last and two for the other end, which are
    empty on a full loop, where only the end that moved last may grow (R11).
    """
    head, tail = g.head[seat], g.tail[seat]
    low, high = _growth_from(g, b, seat, head, g.head_shared[seat])
    tail_low = tail_high = ZERO
    if tail != head:
        tail_low, tail_high = _growth_from(g, b, seat, tail, g.tail_shared[seat])
    return low, high, tail_low, tail_high


@kernel
def offer_growth(g, b, seat):
    """Write the streets onto which a seat's line may grow (R8 to R11); return if any."""
    if g.line_markers[seat] == 0:
        return False
    low, high, tail_low, tail_high = growth(g, b, seat)
    g.grow_head[0] = low
    g.grow_head[1] = high
    g.grow_tail[0] = tail_low
    g.grow_tail[1] = tail_high
    return low | high | tail_low | tail_high != ZERO


@kernel
def _shared_seats(g, b, street, origin):
    """What an end remembers of a street that is about to be laid from `origin` (R9a).

    Returns a bit per seat with a marker on the street; none if it does not matter at the next
    intersection: where sharing again is always allowed, or, for `OTHER_LINE`, where the street is
    not shared by exception.
    """
    if not has(g.marked[street >> 6], street & 63) or g.sharing_again == ALWAYS:
        return 0
    if g.sharing_again == OTHER_LINE and not _has_empty_street(g, b, origin):
        return 0
    seats = 0
    for other in range(g.players):
        if has(g.line[other, street >> 6], street & 63):
            seats |= 1 << other
    return seats


@kernel
def _mark(g, seat, street):
    """Lay a line marker on a street (R8, R10)."""
    word, low = street >> 6, bit(street & 63)
    g.line[seat, word] |= low
    g.marked[word] |= low
    if g.line_markers[seat] != NO_LIMIT:
        g.line_markers[seat] -= 1


@kernel
def start_line(g, b, seat, street):
    """Lay a seat's first marker (R3)."""
    _mark(g, seat, street)
    tail, head = b.street_ends[street, 0], b.street_ends[street, 1]
    g.tail[seat] = tail
    g.head[seat] = head
    g.tail_street[seat] = street
    g.head_street[seat] = street
    g.reach[seat] = bit(tail) | bit(head)


@kernel
def grow_line(g, b, seat, street, direction):
    """Grow a line along a street, away from its first (0) or second (1) intersection (R8)."""
    origin = b.street_ends[street, direction]
    goal = b.street_ends[street, 1 - direction]
    shared = _shared_seats(g, b, street, origin)
    _mark(g, seat, street)
    if g.head[seat] != origin:  # the tail moves and becomes the head
        g.tail[seat] = g.head[seat]
        g.tail_street[seat] = g.head_street[seat]
        g.tail_shared[seat] = g.head_shared[seat]
    g.head[seat] = goal
    g.head_street[seat] = street
    g.head_shared[seat] = shared
    g.reach[seat] |= bit(goal)
