"""`Game`: properties, errors, copies and undo."""

import copy
import pickle
import random
from collections.abc import Callable

import numpy as np
import pytest

import busenv
from busenv import EDITIONS, Game, IllegalActionError, Phase, observe
from tests.support.play import played


def test_public_names() -> None:
    game = Game()
    assert game.num_players == 4
    assert game.rules == EDITIONS["capstone-2024"]
    assert game.phase is Phase.SETUP_BUILDINGS
    assert " ".join(phase.name for phase in Phase) == (
        "SETUP_BUILDINGS SETUP_FIRST_LINE SETUP_SECOND_LINE SELECT_ACTIONS LINE_EXPANSION "
        "PASSENGERS BUILDINGS CLOCK PICK_UP SET_DOWN OVER"
    )
    mask = game.action_mask()
    assert mask.shape == (375,)
    assert mask.dtype == np.bool_
    assert game.legal_actions() == np.flatnonzero(mask).tolist()
    assert game.deliveries == game.time_stones == game.points == [0, 0, 0, 0]
    assert game.history == []
    assert not game.is_over


def test_results_are_plain_lists_of_ints() -> None:
    game = played()
    for values in (game.deliveries, game.time_stones, game.points, game.ranking(), game.history):
        assert isinstance(values, list)
        assert all(type(value) is int for value in values)
    assert type(game.current_player) is int
    assert type(game.round) is int
    assert type(game.is_over) is bool


def test_illegal_actions_name_themselves_and_change_nothing_at_any_decision() -> None:
    game, rng = Game(5, "condensed", seed=4), random.Random(4)
    while not game.is_over:
        legal, before = game.legal_actions(), (game.to_bytes(), game.position())
        illegal = rng.choice([action for action in range(-10, 400) if action not in legal])
        for action in (illegal, -1, 375, 10**30, -(10**30)):
            message = rf"action {action}.*seat {game.current_player}.*{game.phase.name}"
            with pytest.raises(IllegalActionError, match=message):
                game.step(action)
            assert (game.to_bytes(), game.position()) == before
        game.step(rng.choice(legal))


WRONG_CALLS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (lambda: Game(num_players=2), ValueError, "num_players is 2; allowed: 3, 4 or 5"),
    (lambda: Game(num_players=4.0), ValueError, "num_players is 4.0"),
    (
        lambda: Game(players=4),
        TypeError,
        r"Game.__init__\(\) got an unexpected keyword argument 'players'",
    ),
    (
        lambda: Game(rules="capstone"),
        ValueError,
        "unknown rules 'capstone'; allowed.*capstone-2024",
    ),
    (lambda: Game(board="town"), FileNotFoundError, "no board 'town'.*city"),
    (lambda: Game(first_player=4), ValueError, "first_player is 4; allowed: 0 to 3"),
    (lambda: Game(seed=-1), ValueError, "seed is -1"),
    (lambda: Game().describe("pass"), TypeError, "action is 'pass'; allowed: an action id"),
    (lambda: Game.load(True), TypeError, "path is True; allowed: a string or a Path"),
    (lambda: busenv.load_rules(1), TypeError, "path is 1; allowed: a string or a Path"),
    (lambda: busenv.random_playouts(-1), ValueError, "games is -1; allowed"),
    (lambda: busenv.random_playouts(3, 6), ValueError, "num_players is 6; allowed"),
    (lambda: observe(Game(), 4), ValueError, "seat is 4; allowed: 0 to 3"),
    (lambda: busenv.random_returns(1.0, 5), TypeError, "game is 1.0; allowed: a busenv.Game"),
)


@pytest.mark.parametrize(("call", "error", "message"), WRONG_CALLS)
def test_wrong_calls_are_refused(
    call: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as refused:
        call()
    assert refused.type is error


@pytest.mark.parametrize("action", ["pass", 3.0, None])
def test_a_step_without_an_action_id_changes_nothing(action: object) -> None:
    game = played(plies=5)
    before = game.to_bytes(), game.history
    message = rf"action is {action!r}; allowed: an action id.*encode\(game.board"
    with pytest.raises(TypeError, match=message):
        game.step(action)  # type: ignore[arg-type]
    assert (game.to_bytes(), game.history) == before


def test_numpy_integers_are_actions() -> None:
    game = Game(seed=1)
    game.step(np.int64(8))
    assert game.history == [8]


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copy_deepcopy_and_pickle(duplicate) -> None:  # type: ignore[no-untyped-def]
    game = played(plies=70, num_players=5, rules="condensed")
    twin = duplicate(game)
    assert twin.position() == game.position()
    assert twin.history == game.history
    assert twin.seed == game.seed
    twin.step(twin.legal_actions()[0])
    assert len(game.history) == 70


def test_repr_reads_well() -> None:
    assert repr(Game(3, first_player=1)) == (
        "<Bus, 3 players, capstone-2024, city: round 0, ply 0, points [0, 0, 0], "
        "seat 1 to decide SETUP_BUILDINGS>"
    )
    assert "over (markers), winner seat" in repr(played())


def test_undo_and_last_decision_are_of_every_decision() -> None:
    for players, rules in ((3, "capstone-2024"), (5, "condensed")):
        game = Game(players, rules, seed=3)
        rng, seen = random.Random(3), []
        while not game.is_over:
            seat, action = game.current_player, rng.choice(game.legal_actions())
            seen.append((game.arrays()[0].tobytes(), game.history, game.last_decision, action))
            game.step(action)
            assert game.last_decision == (seat, action)
        for state, history, decision, action in reversed(seen):
            assert game.undo() == action
            assert game.arrays()[0].tobytes() == state
            assert (game.history, game.last_decision) == (history, decision)
        with pytest.raises(ValueError, match="nothing to undo"):
            game.undo()
        assert (game.history, game.last_decision) == ([], None)
