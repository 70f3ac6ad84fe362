"""Opponents in batches: agents by seat, called for all games at once."""

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from busenv import AgentError, Board, Game
from busenv.agents import make_agent
from busenv.batch.batch import Batch
from tests.support.play import picks, seen_by

SAME_STEP, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


class Watcher:
    """Takes the first legal action and records its seats."""

    def __init__(self) -> None:
        self.seats: set[int] = set()

    def act(self, game: Game) -> int:
        self.seats.add(game.current_player)
        return game.legal_actions()[0]


class Scribbler:
    """Chooses as greedy does, and overwrites the games that it receives."""

    def __init__(self) -> None:
        self.greedy = make_agent("greedy", 0)
        self.most = 0

    def act(self, game: Game) -> int:
        raise AssertionError("it can choose for many games at once")

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        actions = self.greedy.choose(games, board)
        self.most = max(self.most, len(games))
        games.view(np.uint8)[:] = 255
        return actions


def test_opponents_sit_clockwise_from_the_learner() -> None:
    near, far, scribbler = Watcher(), Watcher(), Scribbler()
    batch = Batch(6, num_players=[3, 4], opponents=[near, scribbler, far], learner_seat=1)
    batch.reset(3)
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(120):
        assert (batch.seats == 1).all()
        assert (batch.masks.any(axis=1)).all()
        batch.step(picks(batch.masks, rng))
        ended += batch.terminations.sum()
    assert ended > 5
    assert near.seats == {2}
    assert far.seats == {0}  # of four; of three it is the one in the middle
    assert scribbler.most > 1


def by_sight(rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Return a legal action for every game, by the observation only."""
    return np.array(
        [
            legal[int(row.sum()) % len(legal)]
            for row, legal in zip(rows, map(np.flatnonzero, masks), strict=True)
        ]
    )


@pytest.mark.parametrize("mode", [*AutoresetMode])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_learner_among_opponents_plays_the_games_of_self_play(
    mode: AutoresetMode, compiled: bool
) -> None:
    opponents: Any = ["random", Watcher(), Watcher()] if compiled else Watcher()
    batch = Batch(5, opponents=opponents, reward="margin", autoreset_mode=mode, threads=2)
    batch.reset(6)
    games, total, learners = Games(5), np.zeros(5), batch.seats.copy()
    while games.fewest < 5:
        assert (batch.observations == seen_by(batch.games, batch.board, learners)).all()
        batch.step(by_sight(batch.observations, batch.masks))
        assert (batch.acting_seats == learners).all()
        total += batch.rewards[np.arange(5), learners]
        games.note(batch, learners, total)
        if mode == DISABLED and batch.terminations.any():
            batch.reset(mask=batch.terminations.copy())
        learners[:] = batch.seats
    assert len({learner for ended in games.ended for _, learner, _ in ended}) == 4
    if compiled:
        return  # the chances of "random" are its own: the assertions above are all
    alone, again, total = Batch(5, autoreset_mode=SAME_STEP, reward="margin"), Games(5), np.zeros(5)
    alone.reset(6)
    while again.fewest < 5:
        learners = np.array([games.ended[i][min(len(e), 4)][1] for i, e in enumerate(again.ended)])
        actions = by_sight(alone.observations, alone.masks)
        alone.step(np.where(alone.seats == learners, actions, alone.masks.argmax(axis=1)))
        total += alone.rewards[np.arange(5), learners]
        again.note(alone, learners, total)
    for one, other in zip(games.ended, again.ended, strict=True):
        assert one[:5] == other[:5]


class Games:
    """Results of a batch's games: final state, learner's seat and return."""

    def __init__(self, number: int) -> None:
        self.ended: list[list[tuple[bytes, int, float]]] = [[] for _ in range(number)]

    @property
    def fewest(self) -> int:
        return min(map(len, self.ended))

    def note(self, batch: Batch, learners: np.ndarray, total: np.ndarray) -> None:
        for i in np.flatnonzero(batch.terminations):
            paid = round(float(total[i]), 3)
            self.ended[i].append((batch.final_games[i].tobytes(), int(learners[i]), paid))
            total[i] = 0


def test_the_learners_seat_is_drawn_uniformly_for_each_game() -> None:
    batch = Batch(4000, num_players=[3, 5], opponents="random", autoreset_mode=DISABLED)
    batch.reset(4)
    seats, players = batch.seats.copy(), batch.games["players"].copy()
    for count in (3, 5):
        drawn = np.bincount(seats[players == count], minlength=count)
        assert drawn.shape == (count,)
        assert (abs(drawn - drawn.mean()) < 130).all()
        firsts = batch.games["first"][(players == count) & (seats == 0)]
        assert np.bincount(firsts, minlength=count).min() > 0.6 * len(firsts) / count
    batch.reset()
    assert 0.5 < (seats != batch.seats).mean() < 0.85


class Failing(Watcher):
    """Chooses an illegal action when `fails` is set."""

    fails = False

    def act(self, game: Game) -> int:
        return 374 if self.fails and game.phase.name != "SET_DOWN" else super().act(game)


def test_a_batch_is_reset_after_an_opponent_has_failed() -> None:
    failing = Failing()
    settings: Any = {"opponents": ["random", failing, "greedy"], "autoreset_mode": SAME_STEP}
    batch, twin = Batch(30, **settings), Batch(30, **settings)
    half = np.arange(30) < 15
    twin.reset(3)
    twin_state = twin.state()

    def play() -> None:
        batch.reset(3)
        for _ in range(9):
            batch.step(batch.masks.argmax(axis=1))
            failing.fails = True

    for fails in (True, False):
        failing.fails = fails
        with pytest.raises(AgentError, match=r"opponent at seat .: action 374 .* is illegal"):
            play()
        for retry in (lambda: batch.step(batch.masks.argmax(axis=1)), lambda: batch.reset(4, half)):
            with pytest.raises(ValueError, match="did not finish: call reset"):
                retry()
    failing.fails = False
    batch.restore(twin_state)
    batch.step(batch.masks.argmax(axis=1))
    batch.reset(3)
    batch.step(batch.masks.argmax(axis=1))
    twin.reset(3)
    twin.step(twin.masks.argmax(axis=1))
    assert batch.games.tobytes() == twin.games.tobytes()


@pytest.mark.parametrize("result", [np.zeros(9, int), np.zeros((2, 1), int), [0.5, 1.5], None])
def test_an_agent_must_choose_a_whole_number_for_each_game(result: Any) -> None:
    class Wrong(Watcher):
        def choose(self, games: np.ndarray, board: Board) -> Any:
            return result

    with pytest.raises(AgentError, match=r"allowed: whole numbers of shape \(\d,\)"):
        Batch(8, opponents=Wrong()).reset(0)


def test_a_reset_reseeds_agents_and_builds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def build(spec: str) -> Any:
        built.append(spec)
        return make_agent(spec)

    monkeypatch.setattr("busenv.make_agent", build)
    batch = Batch(3, opponents=("planner", "greedy", "planner"))
    stories = []
    for seed in (5, 5, 6):
        batch.reset(seed)
        rng, story = np.random.default_rng(0), b""
        for _ in range(30):
            batch.step(picks(batch.masks, rng))
            story += batch.games.tobytes()
        stories.append(story)
    assert built == ["planner", "planner"]
    assert stories[0] == stories[1] != stories[2]
