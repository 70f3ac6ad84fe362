"""Lines: the streets onto which a line may grow, sharing of streets, and growth (R8 to R11)."""

from __future__ import annotations

from busenv.core.bits import ZERO, bit
from busenv.core.jit import kernel
from busenv.core.state import NO_LIMIT


@kernel
def _not_shared(g, seat, end, word):
    """Streets, in one word of a set, that another player's line keeps a seat from sharing (R9).

    A player whose line ends at the intersection `end` allows sharing: of the street by which that
    end arrived (`final_segment`), or of any street (`line_end`). On a full loop both ends count
    (R11).
    """
    not_shared = ZERO
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
        not_shared |= theirs
    return not_shared


@kernel
def growth(g, b, seat, end):
    """Streets onto which a seat's line may grow from an end, as two words of a set (R8 to R10).

    Never a street with the seat's own marker (R8). If some street at the end is empty, the others
    must be shared by exception (R9); if none is, any may be taken (R10).
    """
    low = b.incident[end, 0] & ~g.line[seat, 0]
    high = b.incident[end, 1] & ~g.line[seat, 1]
    if (b.incident[end, 0] & ~g.marked[0]) | (b.incident[end, 1] & ~g.marked[1]) != ZERO:
        if low & g.marked[0] != ZERO:
            low &= ~_not_shared(g, seat, end, 0)
        if high & g.marked[1] != ZERO:
            high &= ~_not_shared(g, seat, end, 1)
    return low, high


@kernel
def offer_growth(g, b, seat):
    """Write the streets onto which a seat's line may grow (R8 to R11); return if any."""
    g.grow_tail[0] = ZERO
    g.grow_tail[1] = ZERO
    if g.line_markers[seat] == 0:
        return False
    head, tail = g.head[seat], g.tail[seat]
    low, high = growth(g, b, seat, head)
    g.grow_head[0] = low
    g.grow_head[1] = high
    if tail != head:  # on a full loop only the end that moved last may grow (R11)
        tail_low, tail_high = growth(g, b, seat, tail)
        g.grow_tail[0] = tail_low
        g.grow_tail[1] = tail_high
        low |= tail_low
        high |= tail_high
    return low | high != ZERO


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
    _mark(g, seat, street)
    origin = b.street_ends[street, direction]
    goal = b.street_ends[street, 1 - direction]
    if g.head[seat] != origin:  # the tail moves and becomes the head
        g.tail[seat] = g.head[seat]
        g.tail_street[seat] = g.head_street[seat]
    g.head[seat] = goal
    g.head_street[seat] = street
    g.reach[seat] |= bit(goal)
