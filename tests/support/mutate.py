"""Seeded damage to JSON values and to bytes."""

import copy
import json
import random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 0.5, 1e308, float("nan"), float("inf"), 255, 256, 65536,
    -5, 999_999, 2**31, 2**64, 10**400, "", "0", "city", "\x1b[2J\x1b]0;x\x07", "\ud800", "x" * 999,
    [], {}, [0], [[0]], [None], {"": 0}, list(range(60)), [0, 1, 2, 3],
)  # fmt: skip


def mutated(value: Any, rng: random.Random) -> Any:
    """A JSON value with one to three entries replaced, removed, doubled or swapped."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change_one(value, rng)
    return value


def _change_one(value: Any, rng: random.Random) -> None:
    holder = value
    while True:
        keys = [*holder] if isinstance(holder, dict) else [*range(len(holder))]
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(holder[key], (dict, list)) or rng.random() < 0.2:
            break
        holder = holder[key]
    kind = rng.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(rng.choice(holder)))
    elif kind == 1:
        holder[rng.choice(("x", key + " ", "number", "seat"))] = rng.choice(VALUES)
    elif kind == 2:
        other = rng.choice(keys)
        holder[key], holder[other] = holder[other], holder[key]
    elif kind in (3, 4, 5) and isinstance(holder[key], (int, float)) and abs(holder[key]) < 1e9:
        holder[key] += rng.choice((-2, -1, 1, 2, 0.0, 0.5))
    else:
        holder[key] = copy.deepcopy(rng.choice(VALUES))


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes of which some are changed, removed, doubled or inserted."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 2, 10, 100)))
        put = rng.choice((b"", rng.randbytes(end - start), data[start:end] * 2, rng.randbytes(2)))
        data = data[:start] + put + data[end:]
    return data


def as_text(value: Any) -> bytes:
    """A JSON value as a line of a file."""
    return json.dumps(value).encode() + b"\n"
