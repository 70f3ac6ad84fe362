"""Kernels: bits, the state's dtype, tests of legality that agree, the GIL, the table of rules."""

import importlib
import random
import re
import threading

import numpy as np

from busenv import EDITIONS, Game, core, load_board, random_playouts
from busenv.core import state
from busenv.core.bits import lowest, popcount
from busenv.core.jit import kernel
from busenv.core.rules import legal
from tests.support.play import STYLES, choose


@kernel
def count_bits(word):
    return popcount(word), lowest(word)


@kernel
def is_legal(games, board, action):
    return legal.is_legal(games[0], board[0], action)


@kernel
def random_pick(games, board, word):
    return legal.random_action(games[0], board[0], word)


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


def test_mask_test_and_random_pick_agree() -> None:
    rng = random.Random(3)
    board = load_board("city")
    picked = 0
    for seed in range(18):
        game = Game(3 + seed % 3, [*EDITIONS][seed % 4], board, seed=seed)
        while not game.is_over:
            allowed = game.legal_actions()
            assert [a for a in range(-3, 400) if is_legal(game._array, board.array, a)] == allowed
            # Every legal action is picked by some word, and nothing else is: 16 bits of a word
            # reach each of the choices, which come in equal shares of the words' range.
            if rng.random() < 0.1:
                words = (np.uint64((k * 2**64) // 1024 + 2**52) for k in range(1024))
                seen = [random_pick(game._array, board.array, word) for word in words]
                counts = np.bincount(seen, minlength=board.num_actions)
                assert np.flatnonzero(counts).tolist() == allowed
                assert np.ptp(counts[allowed]) <= 1
                picked += 1
            game.step(choose(rng, board, allowed, STYLES[seed % 9], set()))
    assert picked > 200


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
