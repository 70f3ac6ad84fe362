"""Where a line may grow, and growing it (R8 to R11)."""

from __future__ import annotations

from busenv.core.bits import ZERO, bit
from busenv.core.jit import kernel
from busenv.core.state import NO_LIMIT


@kernel
def _barred(g, seat, end, word):
    """Streets of a word that nobody may share at this end: some other owner is no exception (R9).

    An owner whose line ends here lets one share the street of arrival, or any of its streets when
    the edition looks at the line's end only. On a full loop both of its ends count (R11).
    """
    barred = ZERO
    for other in range(g.players):
        if other == seat:
            continue
        theirs = g.line[other, word]
        head_here = g.head[other] == end
        tail_here = g.tail[other] == end
        if g.final_segment:
            if head_here and g.head_street[other] >> 6 == word:
                theirs &= ~bit(g.head_street[other] & 63)
            if tail_here and g.tail_street[other] >> 6 == word:
                theirs &= ~bit(g.tail_street[other] & 63)
        elif head_here or tail_here:
            theirs = ZERO
        barred |= theirs
    return barred


@kernel
def growth(g, b, seat, end):
    """Streets onto which a line may grow from one of its ends, as two words (R8 to R10)."""
    low = b.incident[end, 0] & ~g.line[seat, 0]
    high = b.incident[end, 1] & ~g.line[seat, 1]
    if (b.incident[end, 0] & ~g.marked[0]) | (b.incident[end, 1] & ~g.marked[1]) != ZERO:
        if low & g.marked[0] != ZERO:
            low &= ~_barred(g, seat, end, 0)
        if high & g.marked[1] != ZERO:
            high &= ~_barred(g, seat, end, 1)
    return low, high


@kernel
def offer_growth(g, b, seat):
    """Work out where a seat's line may grow; false when it cannot grow at all."""
    g.grow_tail[0] = ZERO
    g.grow_tail[1] = ZERO
    if g.line_markers[seat] == 0:
        return False
    head, tail = g.head[seat], g.tail[seat]
    low, high = growth(g, b, seat, head)
    g.grow_head[0] = low
    g.grow_head[1] = high
    if tail != head:  # on a full loop the end that moved last moves on (R11)
        tail_low, tail_high = growth(g, b, seat, tail)
        g.grow_tail[0] = tail_low
        g.grow_tail[1] = tail_high
        low |= tail_low
        high |= tail_high
    return low | high != ZERO


@kernel
def _mark(g, seat, street):
    word, low = street >> 6, bit(street & 63)
    g.line[seat, word] |= low
    g.marked[word] |= low
    if g.line_markers[seat] != NO_LIMIT:
        g.line_markers[seat] -= 1


@kernel
def start_line(g, b, seat, street):
    """Put down a seat's first marker (R3)."""
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
    _mark(g, seat, street)
    origin = b.street_ends[street, direction]
    goal = b.street_ends[street, 1 - direction]
    if g.head[seat] != origin:  # the other end moves: from now on it is the one that moved last
        g.tail[seat] = g.head[seat]
        g.tail_street[seat] = g.head_street[seat]
    g.head[seat] = goal
    g.head_street[seat] = street
    g.reach[seat] |= bit(goal)
