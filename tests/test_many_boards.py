"""Many boards in one batch: drawn for each episode, the same whatever the threads and rows."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import busenv
from busenv import Batch, BoardError, Game, bus_v0
from busenv.envs.sb3 import BusVecEnv
from busenv.game.board import Board
from busenv.game.board_specs import BoardSet
from busenv.observation import observe, observe_games

SPEC = "generated:small:train:40"


def play(batch: Batch, steps: int = 400, seed: int = 3) -> list[bytes]:
    """Play uniformly random legal actions; returns what the caller sees of each step."""
    batch.reset(seed)
    random = np.random.default_rng(5)
    seen = []
    for _ in range(steps):
        actions = (random.random(batch.masks.shape) * batch.masks).argmax(axis=1)
        batch.step(actions)
        seen.append(batch.observations.tobytes() + batch.masks.tobytes() + batch.rewards.tobytes())
    return seen


@pytest.mark.parametrize(
    ("mode", "relative_types"), [(AutoresetMode.NEXT_STEP, False), (AutoresetMode.SAME_STEP, True)]
)
def test_observations_and_masks_are_those_of_each_board(
    mode: AutoresetMode, relative_types: bool
) -> None:
    batch = Batch(6, board=SPEC, autoreset_mode=mode, relative_types=relative_types)
    batch.reset(1)
    random, boards, ends = np.random.default_rng(2), set(), 0
    for _ in range(700):
        boards |= {*batch.board_index.tolist()}
        rows, masks = batch.observations.copy(), batch.masks.copy()
        for i, index in enumerate(batch.board_index):
            row, mask = observe_games(
                batch.games[i : i + 1], batch.boards[index], relative_types=relative_types
            )
            if not batch.game(i).is_over:
                np.testing.assert_array_equal(rows[i], row[0])
                np.testing.assert_array_equal(masks[i], mask[0])
                assert batch.game(i).board.name == batch.boards[index].name
        batch.step((random.random(masks.shape) * masks).argmax(axis=1))
        if batch.terminations.any():
            ends += int(batch.terminations.sum())
            finals = batch.final_observations()[0]
            for row, i in zip(finals, np.flatnonzero(batch.terminations), strict=True):
                board = batch.boards[batch.final_board_index[i]]
                games, seat = batch.final_games[i : i + 1], int(batch.acting_seats[i])
                game = Game.from_state(games, batch.rules, board)
                np.testing.assert_array_equal(row, observe(game, seat, relative_types))
    assert ends > 8
    assert len(boards) > 8


def test_boards_depend_on_neither_threads_nor_rows() -> None:
    whole = Batch(8, board=SPEC, autoreset_mode="SameStep")
    shared = Batch(8, board=SPEC, autoreset_mode="SameStep", threads=2)
    assert play(whole) == play(shared)
    part = Batch(3, board=SPEC)
    whole.reset(3)
    part.reset(3)
    assert part.board_index.tolist() == whole.board_index[:3].tolist()
    np.testing.assert_array_equal(part.observations, whole.observations[:3])


def test_one_board_plays_as_before_among_many_equal_ones() -> None:
    """Games on a set of one board are those on the board."""
    board = busenv.generate_board(3, "small")
    one = Batch(4, board=board)
    assert play(one) == play(Batch(4, board=[board])) == play(Batch(4, board=[board] * 3))


class Recorder:
    """An opponent that plays the first legal action and notes the boards that it is given."""

    def __init__(self) -> None:
        self.boards: set[str] = set()

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        assert (games["board_tag"] == board.array["tag"]).all()
        self.boards.add(board.name)
        return observe_games(games, board)[1].argmax(axis=1)


def test_copies_of_a_batch_build_their_boards() -> None:
    batch = Batch(4, board="generated:small:train")
    batch.reset(1)
    expected = play(Batch(4, board="generated:small:train"), 50)
    for copied in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert play(copied, 50) == expected
    assert len(copy.copy(batch.boards).array) == len(batch.boards)


def test_opponents_are_called_board_by_board() -> None:
    recorder = Recorder()
    play(Batch(5, board=SPEC, opponents=[recorder, "random", "greedy"]), 200)
    assert len(recorder.boards) > 5
    one, two = (Batch(5, board=SPEC, opponents="greedy", threads=n) for n in (1, 2))
    assert play(one) == play(two)


def test_every_environment_draws_boards() -> None:
    vector = gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=4, board=SPEC)
    _, info = vector.reset(seed=1)
    assert len({*info["board_index"].tolist()}) > 1
    assert vector.observation_space.shape[1:] == Batch(1, board=SPEC).observations.shape[1:]
    env = gymnasium.make("busenv/Bus-v0", board=SPEC)
    names = set()
    for seed in range(6):
        env.reset(seed=seed)
        names.add(env.unwrapped.board.name)
        assert env.unwrapped.game.board is env.unwrapped.board
    assert len(names) > 2
    aec = bus_v0.raw_env(board=SPEC)
    parallel = bus_v0.parallel_env(board=SPEC)
    played = set()
    for seed in range(6):
        aec.reset(seed=seed)
        parallel.reset(seed=seed)
        played.add(aec.board.name)
        assert aec.game.board.name == parallel.unwrapped.board.name
    assert len(played) > 2
    stable = BusVecEnv(4, board=SPEC)
    stable.seed(1)
    stable.reset()
    assert len({*stable.batch.board_index.tolist()}) > 1


def test_boards_of_other_sizes_are_refused() -> None:
    with pytest.raises(BoardError, match="different sizes in one set"):
        Batch(2, board=["city", "generated:small:1"])
    aec = bus_v0.raw_env(board=SPEC)
    with pytest.raises(ValueError, match="has other sizes than"):
        aec.reset(options={"board": "city"})


def test_an_illegal_action_names_the_legal_ones_of_its_board() -> None:
    batch = Batch(3, board=SPEC)
    batch.reset(7)
    illegal = int(np.flatnonzero(~batch.masks[2])[0])
    legal = np.flatnonzero(batch.masks[2]).tolist()
    actions = batch.masks.argmax(axis=1)
    actions[2] = illegal
    with pytest.raises(busenv.IllegalActionError) as error:
        batch.step(actions)
    assert str(legal) in str(error.value)


def test_boards_do_not_depend_on_the_seat_of_the_learner() -> None:
    batch = Batch(400, board="generated:small:train:1000", opponents="random", threads=1)
    batch.reset(1)
    learners = batch.seat_owners[:, :4].argmin(axis=1)
    for seat in range(4):
        boards = batch.board_index[learners == seat]
        assert len({*(boards // 250)}) == 4


@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep", "Disabled"])
def test_boards_of_a_large_set_are_generated_when_games_begin(autoreset_mode: str) -> None:
    """The games are those of a set whose boards exist."""
    few = Batch(4, board="generated:small:train:50", autoreset_mode=autoreset_mode)
    all_boards = BoardSet([f"generated:small:{seed}" for seed in range(50)])
    assert all_boards.is_built
    same = Batch(4, board=all_boards, autoreset_mode=autoreset_mode)
    large = Batch(4, board="generated:small:train:1000000", autoreset_mode=autoreset_mode)
    batches, ends = (few, same, large), 0
    for batch in batches:
        batch.reset(3)
    for _ in range(400):
        for batch in batches:
            batch.step(batch.masks.argmax(axis=1))
            if autoreset_mode == "Disabled" and batch.terminations.any():
                batch.reset(mask=batch.terminations)
        assert few.games.tobytes() == same.games.tobytes()
        assert few.masks.tobytes() == same.masks.tobytes()
        ends = max(ends, int(few._arrays.episodes.sum()))
    assert ends > 8
    built = np.flatnonzero(large.boards.records["tag"])
    assert built.max() > 10_000
    assert len(built) < 80
    for batch in (few, large):
        tags = batch.boards.records["tag"][batch.board_index]
        assert (tags == batch.games["board_tag"]).all()
