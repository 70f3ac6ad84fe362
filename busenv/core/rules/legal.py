"""Legal actions: as a bitset, as a list of ids, as a test of one id, as a random choice."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, below, bit, has, lowest, nth, popcount
from busenv.core.jit import kernel
from busenv.core.state import FIRST_BUILD, PASS, Phase


@kernel
def open_actions(g):
    """Actions with a free space (bits 0 to 6), and passing (bit 7, after two markers) (R4, R5)."""
    return np.uint64(g.open) | (np.uint64(g.placed[g.seat] >= 2) << np.uint64(PASS))


@kernel
def open_sites(g, b):
    """Free sites of the lowest zone that has one (R14)."""
    return g.free_sites & b.zone_sites[g.zone]


@kernel
def num_arriving(g):
    """Number of passengers that arrive: the power, at most the supply (R13)."""
    return min(g.power, g.supply)


@kernel
def pick_ups(g):
    """Intersections on the line with a waiting passenger (R17)."""
    return g.waiting & g.reach[g.seat]


@kernel
def set_downs(g):
    """Intersections on the line with a free matching building (R17)."""
    return g.vacant & g.reach[g.seat]


@kernel
def _add(out, offset, word):
    """Set the bits of a word in a bitset from bit `offset` on."""
    index, shift = np.uint64(offset) >> np.uint64(6), np.uint64(offset) & np.uint64(63)
    out[index] |= word << shift
    if shift != ZERO and word >> (np.uint64(64) - shift) != ZERO:
        out[index + ONE] |= word >> (np.uint64(64) - shift)


@kernel
def _add_streets(b, out, words, end):
    """Set the ids of growing a line from an end along each street of a set (R8)."""
    for part in range(2):
        rest = words[part]
        while rest != ZERO:
            street = np.uint64(64 * part) + lowest(rest)
            direction = np.uint64(b.street_ends[street, 0] != end)
            _add(out, np.uint64(b.first_street) + street + street + direction, ONE)
            rest &= rest - ONE


@kernel
def legal_bits(g, b, out):
    """Write the legal actions as a bitset: bit i of `out` (uint64, (words,)) is action i."""
    out[:] = ZERO
    phase = g.phase
    if phase == Phase.SELECT_ACTIONS:
        out[0] = open_actions(g)
    elif phase == Phase.BUILDINGS or phase == Phase.SETUP_BUILDINGS:
        rest = open_sites(g, b)
        while rest != ZERO:
            _add(out, np.uint64(FIRST_BUILD) + np.uint64(3) * lowest(rest), np.uint64(7))
            rest &= rest - ONE
    elif phase == Phase.LINE_EXPANSION or phase == Phase.SETUP_SECOND_LINE:
        _add_streets(b, out, g.grow_head, g.head[g.seat])
        _add_streets(b, out, g.grow_tail, g.tail[g.seat])
    elif phase == Phase.SETUP_FIRST_LINE:
        for street in range(b.streets):
            _add(out, np.uint64(b.first_street) + np.uint64(2 * street), ONE)
    elif phase == Phase.PASSENGERS:
        _add(out, b.first_split, bit(num_arriving(g) + 1) - ONE)
    elif phase == Phase.CLOCK:
        _add(out, b.first_clock, np.uint64(3))
    elif phase == Phase.PICK_UP:
        _add(out, b.first_pick, pick_ups(g))
    elif phase != Phase.OVER:
        _add(out, b.first_set, set_downs(g))


@kernel
def legal_ids(g, b, bits, out):
    """Write the ids of the legal actions, ascending, and return their number.

    bits: uint64, (words,), scratch space. out: integers, (num_actions,).
    """
    legal_bits(g, b, bits)
    count = 0
    for word in range(bits.shape[0]):
        rest = bits[word]
        while rest != ZERO:
            out[count] = np.int64(64 * word) + np.int64(lowest(rest))
            rest &= rest - ONE
            count += 1
    return count


@kernel
def is_legal(g, b, action):
    """Return whether any whole number is a legal action id, without building the mask."""
    if action < 0 or action >= b.actions:
        return False
    phase = g.phase
    if phase == Phase.SELECT_ACTIONS:
        return action <= PASS and has(open_actions(g), action)
    if phase == Phase.BUILDINGS or phase == Phase.SETUP_BUILDINGS:
        inside = FIRST_BUILD <= action < b.first_street
        return inside and has(open_sites(g, b), (action - FIRST_BUILD) // 3)
    grows = phase == Phase.LINE_EXPANSION or phase == Phase.SETUP_SECOND_LINE
    if grows or phase == Phase.SETUP_FIRST_LINE:
        if action < b.first_street or action >= b.first_split:
            return False
        street, direction = (action - b.first_street) >> 1, (action - b.first_street) & 1
        if phase == Phase.SETUP_FIRST_LINE:
            return direction == 0
        origin = b.street_ends[street, direction]
        if g.head[g.seat] == origin:
            return has(g.grow_head[street >> 6], street & 63)
        return g.tail[g.seat] == origin and has(g.grow_tail[street >> 6], street & 63)
    if phase == Phase.PASSENGERS:
        return b.first_split <= action <= b.first_split + num_arriving(g)
    if phase == Phase.CLOCK:
        return b.first_clock <= action < b.first_pick
    if phase == Phase.PICK_UP:
        return b.first_pick <= action < b.first_set and has(pick_ups(g), action - b.first_pick)
    if phase == Phase.OVER:
        return False
    return action >= b.first_set and has(set_downs(g), action - b.first_set)


@kernel
def forced_action(g, b, bits):
    """Return the only legal action, or -1 if there are several. The game must not be over.

    bits: uint64, (words,), workspace.
    """
    legal_bits(g, b, bits)
    action = np.int64(-1)
    for k in range(bits.shape[0]):
        word = bits[k]
        if word == ZERO:
            continue
        if action >= 0 or word & (word - ONE) != ZERO:
            return np.int64(-1)
        action = np.int64(64 * k) + np.int64(lowest(word))
    return action


@kernel
def _nth_street(words, rank):
    """The street of a two-word set with `rank` streets of the set below it."""
    count = np.int64(popcount(words[0]))
    if rank < count:
        return np.int64(nth(words[0], rank))
    return 64 + np.int64(nth(words[1], rank - count))


@kernel
def random_action(g, b, word):
    """A legal action, uniformly at random, from a random word. The game must not be over."""
    phase = g.phase
    if phase == Phase.SELECT_ACTIONS:
        actions = open_actions(g)
        return np.int64(nth(actions, below(word, popcount(actions))))
    if phase == Phase.BUILDINGS or phase == Phase.SETUP_BUILDINGS:
        sites = open_sites(g, b)
        rank = below(word, np.uint64(3) * popcount(sites))
        return FIRST_BUILD + 3 * np.int64(nth(sites, rank // 3)) + rank % 3
    if phase == Phase.LINE_EXPANSION or phase == Phase.SETUP_SECOND_LINE:
        heads = popcount(g.grow_head[0]) + popcount(g.grow_head[1])
        tails = popcount(g.grow_tail[0]) + popcount(g.grow_tail[1])
        rank = below(word, heads + tails)
        if rank < np.int64(heads):
            street, end = _nth_street(g.grow_head, rank), g.head[g.seat]
        else:
            street, end = _nth_street(g.grow_tail, rank - np.int64(heads)), g.tail[g.seat]
        return np.int64(b.first_street) + 2 * street + np.int64(b.street_ends[street, 0] != end)
    if phase == Phase.SETUP_FIRST_LINE:
        return np.int64(b.first_street) + 2 * below(word, np.uint64(b.streets))
    if phase == Phase.PASSENGERS:
        return np.int64(b.first_split) + below(word, np.uint64(num_arriving(g) + 1))
    if phase == Phase.CLOCK:
        return np.int64(b.first_clock) + below(word, np.uint64(2))
    if phase == Phase.PICK_UP:
        stops = pick_ups(g)
        return np.int64(b.first_pick) + np.int64(nth(stops, below(word, popcount(stops))))
    stops = set_downs(g)
    return np.int64(b.first_set) + np.int64(nth(stops, below(word, popcount(stops))))
