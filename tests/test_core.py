"""Kernels: bits, the state's dtype, the GIL, the table of rules."""

import importlib
import random
import re
import threading

import numpy as np

from busenv import core, random_playouts
from busenv.core import state
from busenv.core.bits import lowest, popcount
from busenv.core.jit import kernel


@kernel
def count_bits(word):
    return popcount(word), lowest(word)


def test_bit_intrinsics() -> None:
    rng = random.Random(1)
    for word in [0, 1, 2**63, 2**64 - 1, *(rng.getrandbits(64) for _ in range(200))]:
        ones, low = count_bits(np.uint64(word))
        assert ones == word.bit_count()
        assert low == (64 if word == 0 else (word & -word).bit_length() - 1)


def test_state_is_small_and_flat() -> None:
    assert state.GAME.itemsize < 512
    assert not state.GAME.hasobject
    sizes = [state.GAME.fields[name][0].itemsize for name in state.GAME.names]
    assert sum(sizes) == state.GAME.itemsize, "padding makes equal games differ in bytes"


def test_other_threads_run_while_games_are_played() -> None:
    random_playouts(1)  # compile
    ticks = 0
    worker = threading.Thread(target=random_playouts, args=(40_000,))
    worker.start()
    while worker.is_alive():
        ticks += 1
        worker.join(0.001)
    assert ticks > 3  # with the GIL held there would be one


def test_the_table_of_rules_names_functions_that_exist() -> None:
    rows = re.findall(r"^ +(R\d+) +((?:\w+\.\w+)(?:, \w+\.\w+)*) ", core.__doc__ or "", re.M)
    assert [rule for rule, _ in rows] == [f"R{n}" for n in range(1, 21)]
    for _, names in rows:
        for name in names.split(", "):
            module, function = name.split(".")
            rules = importlib.import_module(f"busenv.core.rules.{module}")
            assert callable(getattr(rules, function)), name
