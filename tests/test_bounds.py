"""Upper bounds of a game are never exceeded, and their parts can be reached."""

import dataclasses
import random
from collections import Counter

import pytest

from busenv import EDITIONS, Game, Phase, Rules, longest_game
from busenv.core.state import BoardAction
from busenv.game.board import make_board
from busenv.game.bounds import most_deliveries, most_rounds
from tests.support.play import STYLES, choose
from tests.support.worlds import one_street, random_board, random_rules

SPARING = {"pass": 1000}  # as few markers a round as possible


def play(game: Game, style: dict[object, float], seed: int) -> Game:
    """The game played to its end in a style of `tests.support.play`."""
    rng = random.Random(seed)
    while not game.is_over:
        game.step(choose(rng, game.board, game.legal_actions(), style, set()))
    return game


def check(game: Game) -> float:
    """A finished game keeps within its bounds; its share of the longest one's length."""
    setting = game.num_players, game.rules
    longest = longest_game(*setting, game.board)
    assert len(game.history) <= longest
    assert game.round <= most_rounds(*setting)
    assert sum(game.deliveries) <= most_deliveries(*setting)
    return len(game.history) / longest


def counts(game: Game) -> Counter[tuple[Phase, bool]]:
    """How often each phase was decided in; True for passing."""
    played = Game.replay(game.record())
    return Counter((at.phase, at.phase == Phase.SELECT_ACTIONS and id == 7) for at, id in played)


@pytest.mark.parametrize("rules", EDITIONS)
@pytest.mark.parametrize("players", [3, 4, 5])
def test_an_edition_keeps_to_its_longest_game(players: int, rules: str) -> None:
    assert most_rounds(players, rules) == 10
    for number, style in enumerate(STYLES):
        check(play(Game(players, rules, first_player=number % players), style, number))


def test_a_game_reaches_the_bounds_of_rounds_and_passes() -> None:
    """Two markers of each seat a round: as many rounds and passes as the bound counts."""
    games = [play(Game(4, seed=seed), SPARING, seed) for seed in range(5)]
    longest = max(games, key=lambda game: len(game.history))
    check(longest)
    assert longest.round == most_rounds(4) == 10
    decided = counts(longest)
    assert decided[Phase.SELECT_ACTIONS, False] == 4 * 20
    assert decided[Phase.SELECT_ACTIONS, True] == 4 * 9


def test_worlds_of_any_kind_keep_to_their_longest_game() -> None:
    rng, shares = random.Random(4), []
    for seed in range(150):
        board, rules = make_board(random_board(rng)), random_rules(rng)
        few = rng.choice([1, 2, 3, rules.action_markers])
        rules = dataclasses.replace(rules, action_markers=few)
        game = Game(rng.choice([3, 4, 5]), rules, board, seed=seed)
        shares.append(check(play(game, rng.choice(STYLES), seed)))
    assert max(shares) > 0.8


def test_the_bound_of_a_small_world_is_reached() -> None:
    """One street, so no second marker (R10); the set-up fills the sites; one action marker each."""
    board = make_board(one_street(sites=4))
    rules = Rules(action_markers=1, passengers=0, start_passengers=0)
    game = Game(3, rules, board, first_player=0)
    while game.phase != Phase.SELECT_ACTIONS:
        game.step(game.legal_actions()[0])
    for action in (BoardAction.CLOCK, BoardAction.BUSES, BoardAction.PASSENGERS):
        game.step(action)
    game.step(game.legal_actions()[0])
    assert game.is_over
    assert check(game) == 1
    assert longest_game(3, rules, board) == 3 + 3 + 4 + 1  # markers, lines, buildings, clock
