"""Many games side by side, one decision of each in a call, in arrays that are made once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from gymnasium.vector import AutoresetMode

from busenv.batch.batch_opponents import Opponents, Seating
from busenv.batch.threads import Helpers
from busenv.core import batch_kernels, kernels
from busenv.core.batch_kernels import ALL, MOVE, OBSERVE, REWARD
from busenv.core.state import GAME, MAX_PLAYERS, OVER
from busenv.game.board import Board, as_board
from busenv.game.rules import Rules, as_rules, player_counts
from busenv.rewards import Reward, reward_kind
from busenv.validation import check_illegal, check_seed, check_whole, illegal_action

ILLEGAL = {
    "raise": batch_kernels.RAISE,
    "lose": batch_kernels.LOSE,
    "replace": batch_kernels.REPLACE,
}
AUTORESET = {
    AutoresetMode.NEXT_STEP: batch_kernels.NEXT_STEP,
    AutoresetMode.SAME_STEP: batch_kernels.SAME_STEP,
    AutoresetMode.DISABLED: batch_kernels.DISABLED,
}


class Batch:
    """N games at their decisions. The arrays below are overwritten by each step.

    games: GAME, (N,), the states. board: the busenv.Board.
    seats: int64, (N,), who decides. masks: bool, (N, num_actions), what is legal; all true where a
        game is over.
    observations: uint8, (N, size), as the deciding seats see it; not to be written to.
    acted: int64, (N,), who took the last decision. rewards: float32, (N, 5), of it, by seat.
    paid: float64, (N,), that of who took it.
    over: bool, (N,), whether it ended the game. finals: GAME, (N,), the final state of the last
        game that ended in each place.
    wrong: bool, (N,), whether the last action was illegal.

    num_players: 3, 4 or 5, or several of them to draw from for each game.
    reward: a name in `busenv.rewards.REWARDS`, or a function (see there).
    opponents: None: every seat's decisions come up. Else one seat of each game is a learner's, and
        these play the others inside of a step: a spec such as "greedy", or an object with a method
        `act(game)` or, faster, `choose(games, board)` (see `busenv.agents.Agent`). One plays all
        seats, or a sequence has one for each, clockwise from the learner. "random" and "greedy"
        are compiled.
    learner_seat: with opponents, the learner's seat; None: drawn for each game.
    illegal: "raise": an illegal action raises. "lose": it ends the game, which pays -1. "replace":
        a legal one, drawn from the game's own stream, is played in its place.
    autoreset_mode: a gymnasium.vector.AutoresetMode or its value. NEXT_STEP: where a game is over,
        the next step ignores the action, begins a new one and pays 0. SAME_STEP: a new one begins
        in the step that ends one. DISABLED: `reset` begins it.
    threads: how many share the work of a step. Results do not depend on it.
    first_game: game i of the batch is drawn as game `first_game + i` of the seed, whatever N.

    ValueError says what is allowed instead. A batch is for one Python thread at a time: `step` and
    `reset` raise RuntimeError, nothing changed, while another thread is in one of them.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int | Sequence[int] = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        opponents: Opponents = None,
        learner_seat: int | None = None,
        illegal: str = "raise",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        first_game: int = 0,
    ) -> None:
        num_games = check_whole("num_games", num_games, 1)
        threads = check_whole("threads", threads, 1, num_games)
        self._first_game = check_whole("first_game", first_game, 0)
        counts = player_counts(num_players)
        self.board, rules = as_board(board), as_rules(rules)
        self.autoreset_mode = _check_autoreset(autoreset_mode)
        kind = reward_kind(reward)
        self._reward = reward if callable(reward) else None
        seat = _check_learner(learner_seat, opponents, min(counts))
        does = ILLEGAL[check_illegal(illegal)]
        self._seating = Seating(opponents, max(counts), rules, self.board)
        cache_size = batch_kernels.observation_cache_size(self.board.array)
        size, actions = kernels.observation_length(self.board.array), self.board.num_actions
        self._arrays = batch_kernels.Arrays(
            games=np.zeros(num_games, GAME),
            board=self.board.array,
            rules=np.concatenate([rules.record(n) for n in counts]),
            streams=np.zeros(num_games, np.uint64),
            episodes=np.zeros(num_games, np.int64),
            plies=np.zeros(num_games, np.int64),
            ended=np.zeros(num_games, np.bool_),
            kinds=self._seating.kinds,
            learners=np.zeros(num_games, np.int64),
            learner_seat=seat,
            caches=np.zeros((num_games, cache_size), np.uint8),
            cached=np.zeros(num_games, GAME),
            reward=kind,
            illegal=does,
            autoreset=AUTORESET[self.autoreset_mode],
            stages=np.zeros(1, np.int64),
            actions=np.zeros(num_games, np.int64),
            acted=np.zeros(num_games, np.int64),
            seats=np.zeros(num_games, np.int64),
            rewards=np.zeros((num_games, MAX_PLAYERS), np.float32),
            paid=np.zeros(num_games, np.float64),
            over=np.zeros(num_games, np.bool_),
            wrong=np.zeros(num_games, np.bool_),
            rows=np.zeros((num_games, size), np.uint8),
            viewers=np.full(num_games, batch_kernels.NO_VIEWER),
            masks=np.zeros((num_games, actions), np.bool_),
            finals=np.zeros(num_games, GAME),
        )
        self.observations = self._arrays.rows
        self.games, self.finals = self._arrays.games, self._arrays.finals
        self.seats, self.acted = self._arrays.seats, self._arrays.acted
        self.masks = self._arrays.masks
        self.rewards, self.paid = self._arrays.rewards, self._arrays.paid
        self.over, self.wrong = self._arrays.over, self._arrays.wrong
        self._helpers = Helpers(self._arrays, threads)

    def last_views(self) -> tuple[np.ndarray, np.ndarray]:
        """What those who decided last see of the games that the last step ended, and what they
        may do there: uint8, (K, size), and bool, (K, num_actions), all true in games that are over;
        fresh arrays, K being the number of games that ended."""
        finals, board = self.finals[self.over], self.board.array
        rows = np.empty((len(finals), self.observations.shape[1]), np.uint8)
        masks = np.empty((len(finals), self.board.num_actions), np.bool_)
        kernels.observe_seats(finals, board, self.acted[self.over], rows)
        kernels.legal_bytes(finals, board, self._helpers.workspace.bits, masks)
        masks[finals["phase"] == OVER] = True
        return rows, masks

    def reset(self, seed: int | None = None, chosen: np.ndarray | None = None) -> None:
        """Begin games anew.

        seed: 0 to 2**64 - 1. None: each game goes on in its own random stream.
        chosen: bool, (N,), which games. None: all of them; with a seed, agents are given new ones.

        Raises ValueError for another seed or none the first time, or when no game is chosen;
        AgentError when an opponent chooses what is illegal. Nothing has changed then.
        """
        stream = None if seed is None else np.uint64(check_seed(seed))
        games = _check_chosen(chosen, self.seats.shape)
        if (stream is None or not games.all()) and not self._begun:
            raise ValueError("call reset(seed) for all games first")
        with self._helpers.alone(), self._undone_on_failure():
            self._reset(stream, games)

    def _reset(self, stream: np.uint64 | None, games: np.ndarray) -> None:
        arrays, work = self._arrays, self._helpers.workspace
        self._helpers.close()
        if stream is None:
            arrays.episodes[games] += 1
        else:
            streams = np.empty_like(arrays.streams)
            batch_kernels.game_streams(stream, self._first_game, streams)
            arrays.streams[games] = streams[games]
            arrays.episodes[games] = 0
            arrays.plies[games] = 0
            if games.all():
                self._seating.reset(int(stream))
        batch_kernels.start_games(arrays, work, games)
        self._seating.play(arrays, work)
        self._helpers.step(OBSERVE)
        arrays.acted[games] = arrays.seats[games]

    def step(self, actions: np.ndarray) -> None:
        """Take one decision in every game: whole numbers, (N,).

        Raises IllegalActionError, naming the first game whose action is illegal (if `illegal` says
        so); ValueError when there is not one whole number for each game, or a game has ended that
        only `reset` begins anew; AgentError when an opponent chooses what is illegal. Nothing has
        changed then, but for what the agents themselves remember. A step that is interrupted may
        have been taken in some games only; begin anew with `reset` then.
        """
        actions = np.asarray(actions)
        if actions.shape != self.seats.shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions have shape {actions.shape} and dtype {actions.dtype}; "
                f"allowed: whole numbers of shape {self.seats.shape}"
            )
        with self._helpers.alone():
            self._step(actions)

    def _step(self, actions: np.ndarray) -> None:
        arrays = self._arrays
        if not self._begun:
            raise ValueError("call reset(seed) before step(actions)")
        self._helpers.close()
        if arrays.autoreset == batch_kernels.DISABLED and arrays.ended.any():
            raise ValueError(
                f"games {np.flatnonzero(arrays.ended).tolist()} have ended; reset them first"
            )
        before = (self.games.copy(), arrays.ended.copy()) if self._reward else None
        arrays.actions[:] = actions
        self._helpers.call()
        if self._seating.agents:
            self._step_in_stages(actions)
        else:
            self._decide(actions, ALL)
        if self._reward and before is not None:
            self._pay(self._reward, *before)

    def _decide(self, actions: np.ndarray, stages: int) -> None:
        """Take the first stages of a step, unless an action is illegal that is to raise."""
        if self._arrays.illegal != batch_kernels.RAISE:
            self._helpers.step(stages)
        elif (wrong := self._helpers.step_checked(stages)) >= 0:
            self.wrong[:] = False
            raise illegal_action(self.games, wrong, self.board, int(actions[wrong]))

    def _step_in_stages(self, actions: np.ndarray) -> None:
        """A step in which agents that are not compiled decide."""
        arrays, work = self._arrays, self._helpers.workspace
        with self._undone_on_failure():
            self._decide(actions, MOVE)
            self._seating.play(arrays, work)
            self._helpers.step(REWARD)
            self._seating.play(arrays, work)  # in games that have begun anew
        self._helpers.step(OBSERVE)

    def _pay(self, reward: Reward, before: np.ndarray, fresh: np.ndarray) -> None:
        """Have the caller's function pay; games that began anew pay nothing, lost ones stay."""
        after, paid = self.games.copy(), np.zeros_like(self.rewards)
        after[self.over] = self.finals[self.over]
        reward(before, after, paid)
        paid[fresh] = 0
        kept = self.wrong & self.over & (self._arrays.illegal == batch_kernels.LOSE)
        self.rewards[~kept] = paid[~kept]
        self.paid[:] = self.rewards[np.arange(len(paid)), self.acted]

    @property
    def _begun(self) -> bool:
        return bool(self.games["players"][0])

    @contextlib.contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        """Take back what has been done to the games when an agent fails; nothing is shown yet."""
        arrays = self._arrays
        changed = (
            arrays.games, arrays.streams, arrays.episodes, arrays.plies, arrays.ended,
            arrays.learners, arrays.acted, arrays.rewards, arrays.paid, arrays.over, arrays.wrong,
            arrays.finals,
        ) if self._seating.agents else ()  # fmt: skip
        before = [_bytes(array).copy() for array in changed]
        try:
            yield
        except BaseException:
            self._helpers.close()
            for array, content in zip(changed, before, strict=True):
                _bytes(array)[:] = content
            raise

    def close(self) -> None:
        """Give back what opponents hold, such as running programs."""
        self._seating.close()


def _bytes(array: np.ndarray) -> np.ndarray:
    """An array by its bytes, since numpy copies records field by field, slowly."""
    return array.reshape(-1).view(np.uint8)


def _check_autoreset(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        allowed = [one.value for one in AutoresetMode]
        raise ValueError(
            f"autoreset_mode is {mode!r}; allowed: an AutoresetMode or one of {allowed}"
        ) from None


def _check_learner(seat: int | None, opponents: Opponents, players: int) -> int:
    """The learner's seat for kernels."""
    if seat is None:
        return batch_kernels.DRAWN
    if opponents is None:
        raise ValueError("learner_seat goes with opponents")
    return check_whole("learner_seat", seat, 0, players - 1)


def _check_chosen(chosen: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """Which games are to begin anew: bool, (N,)."""
    if chosen is None:
        return np.ones(shape, np.bool_)
    if not isinstance(chosen, np.ndarray) or chosen.dtype != np.bool_ or chosen.shape != shape:
        raise ValueError(f"games to reset are {chosen!r}; allowed: a bool array of shape {shape}")
    if not chosen.any():
        raise ValueError("games to reset: none is chosen; allowed: one or more")
    return chosen
