"""Properties of every position, on games that hypothesis generates and shrinks."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busenv import EDITIONS, Game, IllegalActionError, Phase

setups = st.tuples(st.sampled_from([3, 4, 5]), st.sampled_from([*EDITIONS]), st.integers(0, 2))
# Each number picks one of the legal actions; what is missing picks the first, so games shrink.
choices = st.lists(st.integers(0, 10_000), max_size=400)
many = settings(max_examples=60, deadline=None)


def play(setup: tuple[int, str, int], picks: list[int]) -> Game:
    players, rules, first = setup
    game = Game(players, rules, first_player=first, seed=0)
    for pick in picks:
        if game.is_over:
            break
        legal = game.legal_actions()
        game.step(legal[pick % len(legal)])
    return game


@many
@given(setups, choices)
def test_passengers_stones_and_markers_are_conserved(setup, picks) -> None:  # type: ignore[no-untyped-def]
    game = play(setup, picks)
    position = game.position()
    in_bus = game.phase == Phase.SET_DOWN
    assert sum(position.passengers) + position.supply + in_bus == 15
    stones = 4 if game.num_players == 3 else 5
    assert sum(position.time_stones) + position.time_stones_left == stones
    laid = Counter(seat for spaces in position.spaces for seat in spaces)
    assert all(position.action_markers[s] + laid[s] <= 20 for s in range(game.num_players))
    limits = game.rules.line_markers
    for seat, left in enumerate(position.line_markers):
        used = len(position.streets[seat])
        assert left is None if limits is None else left + used == limits[seat]


@many
@given(setups, choices)
def test_a_line_is_a_trail_between_its_ends(setup, picks) -> None:  # type: ignore[no-untyped-def]
    game = play(setup, picks)
    position = game.position()
    for seat, streets in enumerate(position.streets):
        ends = position.line_ends[seat]
        if not streets:
            assert ends == []
            continue
        degree = Counter(i for street in streets for i in game.board.streets[street])
        odd = sorted(i for i, count in degree.items() if count % 2)
        # Euler: a connected set of streets can be driven once each just so.
        assert odd == ([] if ends[0] == ends[1] else sorted(ends))
        reached = {ends[0]}
        for _ in streets:
            reached |= {
                i
                for s in streets
                if reached & set(game.board.streets[s])
                for i in game.board.streets[s]
            }
        assert reached == set(degree)
        assert all(s in streets for s in position.arrivals[seat])


@many
@given(setups, choices)
def test_ranking_is_strict_and_follows_points_and_stones(setup, picks) -> None:  # type: ignore[no-untyped-def]
    game = play(setup, picks)
    ranking = game.ranking()
    assert sorted(ranking) == list(range(game.num_players))
    order = sorted(range(game.num_players), key=ranking.__getitem__)
    keys = [(game.points[s], game.time_stones[s]) for s in order]
    assert keys == sorted(keys, reverse=True)


@many
@given(setups, choices, st.integers(0, 10_000))
def test_clone_is_independent_and_bytes_round_trip(setup, picks, pick) -> None:  # type: ignore[no-untyped-def]
    game = play(setup, picks)
    before = game.position()
    twin, loaded = game.clone(), Game.from_bytes(game.to_bytes())
    assert loaded.position() == before == twin.position()
    assert loaded.history == game.history
    if not game.is_over:
        legal = game.legal_actions()
        for copy in (twin, loaded):
            copy.step(legal[pick % len(legal)])
        assert twin.position() == loaded.position()
        assert len(game.history) + 1 == len(twin.history)
    assert game.position() == before


@many
@given(setups, choices, st.integers(-10, 400))
def test_an_illegal_action_changes_nothing(setup, picks, action) -> None:  # type: ignore[no-untyped-def]
    game = play(setup, picks)
    if action in game.legal_actions():
        return
    before = game.to_bytes(), game.position()
    with pytest.raises(IllegalActionError):
        game.step(action)
    assert (game.to_bytes(), game.position()) == before


@many
@given(setups, choices)
def test_an_action_is_legal_until_the_end(setup, picks) -> None:  # type: ignore[no-untyped-def]
    game = play(setup, picks)
    assert game.is_over == (not game.legal_actions())
    assert (game.current_player == -1) == game.is_over
