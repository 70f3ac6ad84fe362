"""Bit and byte operations on uint64 words, atomic operations and random words.

A set of intersections or sites is one word, a set of streets two. In numba `uint64 & 1` is an
int64, so constants are `np.uint64` here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from busenv.core.jit import kernel

ZERO = np.uint64(0)
ONE = np.uint64(1)
EACH = np.uint64(0x0101010101010101)  # 1 in each byte
TOPS = np.uint64(0x8080808080808080)  # the highest bit of each byte


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Number of set bits in a uint64, as uint64 (the CPU's popcnt)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def lowest(typingctx: Any, word: Any) -> Any:
    """Index of the lowest set bit of a uint64, as uint64 (tzcnt); 64 when no bit is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


def _check_bytes(*kinds: Any) -> None:
    """Raise TypingError unless the types are records or contiguous arrays of bytes."""
    for kind in kinds:
        is_array = isinstance(kind, types.Array) and kind.layout == "C"
        if not (isinstance(kind, types.Record) or (is_array and kind.dtype == types.uint8)):
            raise TypingError(f"a record or a contiguous array of uint8 is needed, not {kind}")


def _pointer(context: Any, builder: Any, kind: Any, value: Any, offset: Any) -> Any:
    """Address of a byte of an array, or of a record, which numba passes by its address."""
    if isinstance(kind, types.Record):
        return builder.gep(builder.bitcast(value, ir.IntType(8).as_pointer()), [offset])
    return builder.gep(make_array(kind)(context, builder, value).data, [offset])


@intrinsic
def load_word(typingctx: Any, source: Any, offset: Any) -> Any:
    """The eight bytes of a uint8 array or a record from an offset on, as a uint64. Unchecked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _pointer(context, builder, signature.args[0], *args)
        loaded = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded

    _check_bytes(source)
    return types.uint64(source, types.int64), codegen


@intrinsic
def store_word(typingctx: Any, array: Any, offset: Any, word: Any) -> Any:
    """Write a uint64 as eight bytes of a contiguous uint8 array, lowest first. Unchecked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _pointer(context, builder, signature.args[0], *args[:2])
        builder.store(args[2], builder.bitcast(address, ir.IntType(64).as_pointer())).align = 1
        return context.get_dummy_value()

    _check_bytes(array)
    return types.void(array, types.int64, types.uint64), codegen


@intrinsic
def copy_bytes(typingctx: Any, to: Any, at: Any, source: Any, first: Any, count: Any) -> Any:
    """Copy `count` bytes between uint8 arrays or records that do not overlap. Unchecked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _pointer(context, builder, signature.args[0], args[0], args[1])
        origin = _pointer(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, target, origin, args[4], 1)
        return context.get_dummy_value()

    _check_bytes(to, source)
    return types.void(to, types.int64, source, types.int64, types.int64), codegen


@intrinsic
def clear_bytes(typingctx: Any, array: Any, first: Any, count: Any) -> Any:
    """Set `count` bytes of a contiguous uint8 array or a record to 0. Unchecked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _pointer(context, builder, signature.args[0], args[0], args[1])
        cgutils.memset(builder, target, args[2], 0)
        return context.get_dummy_value()

    _check_bytes(array)
    return types.void(array, types.int64, types.int64), codegen


def _atomic(name: str) -> Any:
    """An intrinsic that changes the first entry of an int64 array atomically."""

    def operation(typingctx: Any, array: Any, amount: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = make_array(signature.args[0])(context, builder, args[0]).data
            return builder.atomic_rmw(name, address, args[1], "seq_cst")

        if not (isinstance(array, types.Array) and array.dtype == types.int64):
            raise TypingError(f"an array of int64 is needed, not {array}")
        return types.int64(array, types.int64), codegen

    return intrinsic(operation)


fetch_add = _atomic("add")  # (array, amount): returns the entry before
exchange = _atomic("xchg")  # (array, number): returns the entry before


@kernel
def records_differ(one, other, first, end):
    """Return whether two records of a type differ in the bytes from `first` to before `end`.

    The number of bytes must be a multiple of 8.
    """
    different = ZERO
    for at in range(first, end, 8):
        different |= load_word(one, at) ^ load_word(other, at)
    return different != ZERO


@kernel
def spread(byte):
    """The bits of a byte as the bytes of a word: byte k is 1 when bit k is set."""
    low = ((byte & np.uint64(0x7F)) * np.uint64(0x0002040810204081)) & EACH
    return low | ((byte & np.uint64(0x80)) << np.uint64(49))


@kernel
def sum_bytes(word):
    """Sum of the eight bytes of a word, below 256."""
    return (word * EACH) >> np.uint64(56)


@kernel
def subtract_bytes(word, other):
    """Each byte of a word minus the other's, at least 0; all bytes are below 128."""
    borrowed = (word | TOPS) - other
    return borrowed & ~TOPS & ((borrowed & TOPS) >> np.uint64(7)) * np.uint64(255)


@kernel
def equal_bytes(word, byte):
    """1 in each byte of a word that equals a byte, else 0; all are below 128."""
    different = word ^ (byte * EACH)
    return (~(different + ~TOPS) & TOPS) >> np.uint64(7)


@kernel
def bit(index):
    """The word with one bit set."""
    return ONE << np.uint64(index)


@kernel
def has(word, index):
    """Return whether a bit is set."""
    return (word >> np.uint64(index)) & ONE != ZERO


@kernel
def nth(word, rank):
    """Index of the set bit with `rank` set bits below it, which must exist."""
    for _ in range(rank):
        word &= word - ONE
    return lowest(word)


@kernel
def mix(counter):
    """splitmix64 (Steele, Lea and Flood 2014): a well-mixed uint64 for each counter value."""
    z = np.uint64(counter)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def seeded(seed, index):
    """Start of the random stream of game `index` under a seed."""
    return mix(mix(np.uint64(seed) + GOLDEN) + np.uint64(index) * GOLDEN)


@kernel
def below(word, bound):
    """A number from 0 to bound - 1 from a random word (multiply and shift)."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel
def uniform(rng_state):
    """A number from [0, 1) of a random stream, uint64, (1,), whose state advances."""
    rng_state[0] += GOLDEN
    return np.float64(mix(rng_state[0]) >> np.uint64(11)) / 2.0**53
