"""Comparison of the compiled core with the second engine, decision by decision."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np

from busenv import EDITIONS, Board, Game, Rules, load_board
from busenv.core.jit import kernel
from busenv.core.rules.legal import is_legal, random_action
from tests.support.play import STYLES, choose
from tests.support.reference import ReferenceGame

CITY = json.loads((Path(__file__).parents[2] / "busenv/boards/city.json").read_text())
SHARED_FIELDS = """
action_markers line_markers buses deliveries time_stones points time_stones_left supply passengers
buildings streets line_ends arrivals shared_with clock starting_player spaces
""".split()


def reference_rules(rules: Rules) -> dict:
    """Rules in the second engine's terms."""
    three, more = rules.time_stones
    fields = rules.to_dict()
    return {
        **fields,
        "line_markers": fields["line_markers"] or [None] * 5,
        "time_stones": {3: three, 4: more, 5: more},
    }


def core_view(game: Game) -> dict:
    """What is compared, as the core has it."""
    position = game.position()
    view = {name: getattr(position, name) for name in SHARED_FIELDS}
    view["turn"] = (game.current_player, game.phase.name, game.round)
    view["legal"] = game.legal_actions()
    view["ranking"] = game.ranking()
    view["choosing"] = position.choosing
    return view


def reference_view(reference: ReferenceGame) -> dict:
    """The same, as the second engine has it."""
    counts = reference.counts()
    view = {name: counts[name] for name in SHARED_FIELDS}
    view["turn"] = (reference.current_player, reference.phase, reference.round)
    view["legal"] = reference.legal_actions()
    view["ranking"] = reference.ranking()
    hands = enumerate(counts["action_markers"] if reference.phase == "SELECT_ACTIONS" else [])
    view["choosing"] = [s for s, held in hands if held and s not in counts["passed"]]
    return view


@kernel
def list_legality(game, board, words, tested, drawn):
    """Write whether each id from -2 on is legal, and the actions drawn with random words."""
    for k in range(tested.shape[0]):
        tested[k] = is_legal(game[0], board[0], k - 2)
    for k in range(words.shape[0]):
        drawn[k] = random_action(game[0], board[0], words[k])


def check_legality(game: Game, legal: list[int]) -> None:
    """`is_legal` accepts the legal actions only, and `random_action` draws each of them."""
    count = len(legal)
    words = np.array([-(-(k << 32) // count) << 32 for k in range(count)], np.uint64)
    if count:
        words = np.append(words, np.uint64(2**64 - 1))
    tested, drawn = np.zeros(game.board.num_actions + 4, np.bool_), np.zeros(len(words), np.int64)
    list_legality(game.arrays()[0], game.board.array, words, tested, drawn)
    assert (tested.nonzero()[0] - 2).tolist() == legal
    assert sorted(drawn.tolist()[:count]) == legal
    assert {*drawn.tolist()} <= {*legal}


def compare_game(
    players: int, rules: Rules, seed: int, board: Board | None = None, data: dict = CITY
) -> Counter:
    """Play one game on both engines; AssertionError at the first difference. Counts rare events."""
    rng = random.Random(seed)
    style = STYLES[seed % len(STYLES)]
    board = board or load_board("city")
    game = Game(players, rules, board, seed=seed)
    reference = ReferenceGame(data, reference_rules(rules), players, game.first_player)
    while True:
        mine, theirs = core_view(game), reference_view(reference)
        assert mine == theirs, (
            f"seed {seed}, {players} players, ply {len(game.history)}: "
            f"{[(k, mine[k], theirs[k]) for k in mine if mine[k] != theirs[k]]}"
        )
        check_legality(game, mine["legal"])
        if game.is_over:
            break
        visited = {i for s in mine["streets"][game.current_player] for i in board.streets[s]}
        action = choose(rng, board, mine["legal"], style, visited)
        game.step(action)
        reference.step(action)
    assert game.ending == reference.ending
    return reference.events


def compare_many(first: int, count: int) -> Counter:
    """Compare games with seeds first, first + 1, ... over every edition and player count."""
    total: Counter = Counter()
    editions = [*EDITIONS.values()]
    for seed in range(first, first + count):
        # The styles go round with the seed; let editions and players go round independently.
        index = seed // len(STYLES)
        total += compare_game(3 + index % 3, editions[index // 3 % len(editions)], seed)
    return total
