"""N games stepped in one call, over arrays that are allocated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from gymnasium.vector import AutoresetMode

from busenv.batch.opponents import OpponentPool, Opponents, choose_actions
from busenv.batch.saved_games import STATE_ARRAYS, as_bytes, check_state
from busenv.batch.threads import WorkerThreads
from busenv.core import batch_kernels, kernels
from busenv.core.batch_kernels import ALL, FIRST_AGENT, MOVE, OBSERVE, REWARD
from busenv.core.observation_cache import cache_size
from busenv.core.relative_types import write_absolute_actions
from busenv.core.state import GAME, MAX_PLAYERS, OVER
from busenv.game.board_specs import Boards, as_boards
from busenv.game.game import Game
from busenv.game.rules import Rules, as_rules, player_counts
from busenv.game.states import illegal_action
from busenv.observation import relative_games
from busenv.rewards import Reward, call_reward, reward_kind
from busenv.validation import (
    Illegal,
    check_autoreset,
    check_illegal,
    check_seed,
    check_whole,
    with_mask_hint,
)

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
INTERRUPTED = "the last step or reset did not finish: call reset() for all games"


class Batch:
    """N games. The arrays below are overwritten by every step.

    games: GAME (`busenv.core.state`), (N,), the states.
    player_counts: the numbers of players that a game may have. rules: the `busenv.Rules`.
    boards: the set of boards (`busenv.game.board_specs.BoardSet`). board: the first of them; all
        have its numbers of intersections, streets and sites.
    board_index, final_board_index: int64, (N,), indices into `boards`: the boards of `games` and of
        `final_games`.
    seats: int64, (N,), the seat to decide.
    seat_owners: uint8, (N, 5), the player of each seat: 1 is `random`, 2 is `greedy`, and any other
        number is the caller. Without opponents, a caller may write it between two steps to let
        these bots play seats of some games, but not all seats of a game, which would be played
        within its reset; a reset does not change it. Do not write to it with opponents.
    masks: bool, (N, num_actions), the legal actions; all true where a game is over.
    observations: uint8, (N, size), from the view of the seat to decide; read-only by convention.
    acting_seats: int64, (N,), the seat that took the last decision; in a step that only resets a
        game, a seat of the previous game, with reward 0.
    rewards: float32, (N, 5), of the last step, by seat.
    acting_rewards: float64, (N,), the rewards of `acting_seats`.
    terminations: bool, (N,), whether the last step ended the game.
    final_games: GAME, (N,), final state of the last game that ended in each row.
    illegal_actions: bool, (N,), whether the last action was illegal.

    num_games: N. The other arguments are keyword-only.
    num_players: 3, 4 or 5, or a sequence of them to draw from in each game. Default 4.
    rules, board: as for `busenv.Game`. Default "capstone-2024" and "city". board may also be a set
        such as "generated:city:train", or a list of boards of equal sizes, from which each game
        draws its board.
    reward: a name in `busenv.REWARDS` or a function (`busenv.rewards`). Default "win".
    opponents: None (default): every seat's decisions are returned to the caller. Otherwise the
        caller decides for one seat of each game, and opponents play the other seats within the
        step: an agent spec such as "greedy", or an object with `choose(games, board)` or, slower,
        `act(game)` (see `busenv.agents.Agent`), for all seats; or a sequence of them, clockwise
        from the learner. "random" and "greedy" are compiled.
    learner_seat: with opponents, the learner's seat, or None (default) to draw it in each game.
    illegal: "raise" (default): an illegal action raises. "lose": it ends the game with a reward of
        -1. "replace": a legal action drawn from the game's random stream replaces it.
    autoreset_mode: a `gymnasium.vector.AutoresetMode` or its value. NEXT_STEP (default): where a
        game is over, the next step ignores the action, starts a new game and returns a reward of 0.
        SAME_STEP: the step that ends a game starts a new one. DISABLED: only `reset` does.
    relative_types: count building types from the clock in `observations` and in the actions of
        `step` (`busenv.observation`). `games` and opponents keep absolute types. Default False.
    skip_forced: take decisions of the caller, and of opponents that are not compiled, within the
        step where one action is legal. `rewards` include those of these actions. Default False.
    threads: number of threads that share a step, at most N; results do not depend on it. Default 1.

    Raises ValueError for an invalid setting. A batch serves one Python thread at a time: `step` and
    `reset` raise RuntimeError, without any change, while another thread is inside one of them.
    """

    def __init__(
        self,
        num_games: int,
        *,
        num_players: int | Sequence[int] = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: Boards = "city",
        reward: str | Reward = "win",
        opponents: Opponents = None,
        learner_seat: int | None = None,
        illegal: Illegal = "raise",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        relative_types: bool = False,
        skip_forced: bool = False,
        threads: int = 1,
    ) -> None:
        num_games = check_whole("num_games", num_games, 1)
        threads = check_whole("threads", threads, 1, num_games)
        self.player_counts = player_counts(num_players)
        self.boards, self.rules = as_boards(board), as_rules(rules)
        self.board = self.boards[0]
        self.autoreset_mode = check_autoreset(autoreset_mode)
        self._custom_reward = reward if callable(reward) else None
        self._relative_types = bool(relative_types)
        self._opponents = OpponentPool(opponents, max(self.player_counts) - 1)
        self._arrays = arrays = batch_kernels.Arrays(
            games=np.zeros(num_games, GAME),
            boards=self.boards.records,
            board_index=np.zeros(num_games, np.int64),
            rules=np.concatenate([self.rules.record(n) for n in self.player_counts]),
            streams=np.zeros(num_games, np.uint64),
            episodes=np.zeros(num_games, np.int64),
            words_drawn=np.zeros(num_games, np.int64),
            needs_reset=np.zeros(num_games, np.bool_),
            kinds=self._opponents.kinds,
            seat_owners=np.zeros((num_games, MAX_PLAYERS), np.uint8),
            learner_seat=_check_learner(learner_seat, opponents, min(self.player_counts)),
            skip_forced=bool(skip_forced),
            caches=np.zeros((num_games, cache_size(self.board.array[0])), np.uint8),
            cached=np.zeros(num_games, GAME),
            reward=reward_kind(reward),
            illegal=ILLEGAL[check_illegal(illegal)],
            relative_types=self._relative_types,
            autoreset=AUTORESET[self.autoreset_mode],
            stages=np.zeros(1, np.int64),
            actions=np.zeros(num_games, np.int64),
            acting_seats=np.zeros(num_games, np.int64),
            seats=np.zeros(num_games, np.int64),
            rewards=np.zeros((num_games, MAX_PLAYERS), np.float32),
            acting_rewards=np.zeros(num_games, np.float64),
            terminations=np.zeros(num_games, np.bool_),
            illegal_actions=np.zeros(num_games, np.bool_),
            observations=np.zeros(
                (num_games, kernels.observation_length(self.board.array)), np.uint8
            ),
            viewers=np.full(num_games, batch_kernels.NO_VIEWER),
            masks=np.zeros((num_games, self.board.num_actions), np.bool_),
            final_games=np.zeros(num_games, GAME),
            final_board_index=np.zeros(num_games, np.int64),
        )
        self.games, self.final_games = arrays.games, arrays.final_games
        self.board_index, self.final_board_index = arrays.board_index, arrays.final_board_index
        self.observations, self.masks, self.seats = arrays.observations, arrays.masks, arrays.seats
        self.acting_seats, self.illegal_actions = arrays.acting_seats, arrays.illegal_actions
        self.rewards, self.acting_rewards = arrays.rewards, arrays.acting_rewards
        self.seat_owners, self.terminations = arrays.seat_owners, arrays.terminations
        self._threads = WorkerThreads(arrays, threads)
        self._is_interrupted = False  # whether the last reset or step ended too early

    def reset(self, seed: int | None = None, mask: np.ndarray | None = None) -> None:
        """Start new games.

        seed: 0 to 2**64 - 1; None continues the random stream of each game.
        mask: bool, (N,), the games to reset; None resets all of them. A seed for all games also
            reseeds the opponents built from specs.

        Raises ValueError, without any change, for an invalid seed, for the first reset without a
        seed or with a mask, and for a mask of some games after an opponent has failed; AgentError
        if an opponent chooses an illegal action.
        """
        stream = None if seed is None else np.uint64(check_seed(seed))
        rows = check_mask(mask, self.seats.shape)
        if (stream is None or not rows.all()) and not self.has_started:
            raise ValueError("call reset(seed) for all games first")
        with self._threads.exclusive():
            if self._is_interrupted and not rows.all():
                raise ValueError(INTERRUPTED)
            self._is_interrupted = True
            self._threads.close_step()
            self._reset_streams(stream, rows)
            self._build_boards(0)
            batch_kernels.start_games(self._arrays, self._threads.workspace, rows)
            self._play_opponents()
            self._threads.step(OBSERVE)
            self.acting_seats[rows] = self.seats[rows]
            self._is_interrupted = False

    def _reset_streams(self, stream: np.uint64 | None, rows: np.ndarray) -> None:
        arrays = self._arrays
        if stream is None:
            arrays.episodes[rows] += 1
            return
        streams = np.empty_like(arrays.streams)
        batch_kernels.game_streams(stream, streams)
        arrays.streams[rows] = streams[rows]
        arrays.episodes[rows] = 0
        arrays.words_drawn[rows] = 0
        if rows.all():
            random = np.random.default_rng(int(stream))
            self._opponents.reset(random.integers(2**32, size=MAX_PLAYERS))

    def step(self, actions: np.ndarray) -> None:
        """Take one action in every game.

        actions: whole numbers, (N,).

        Raises IllegalActionError, naming the first game with an illegal action, with
        illegal="raise"; ValueError for another shape or dtype, or if a game has ended that only
        `reset` starts again. Nothing changes then. Raises AgentError if an opponent chooses an
        illegal action; a failing reward function raises its own error, or ValueError
        (`busenv.rewards.call_reward`). Call `reset` after these and after an interrupted step:
        some games may have changed, and their rewards are lost. After an opponent fails, `step`
        raises ValueError until all games are reset.
        """
        actions = np.asarray(actions)
        if actions.shape != self.seats.shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions have shape {actions.shape} and dtype {actions.dtype}; "
                f"allowed: whole numbers of shape {self.seats.shape}"
            )
        with self._threads.exclusive():
            self._step(actions)

    def _step(self, actions: np.ndarray) -> None:
        arrays = self._arrays
        if not self.has_started:
            raise ValueError("call reset(seed) before step(actions)")
        if self._is_interrupted:
            raise ValueError(INTERRUPTED)
        self._threads.close_step()
        if arrays.autoreset == batch_kernels.DISABLED and arrays.needs_reset.any():
            raise ValueError(
                f"games {np.flatnonzero(arrays.needs_reset).tolist()} have ended; reset them first"
            )
        self._build_boards(1)
        before = (self.games.copy(), arrays.needs_reset.copy()) if self._custom_reward else None
        arrays.actions[:] = actions
        if self._relative_types:
            actions = arrays.actions
            write_absolute_actions(self.games, self.board.array, actions)
        self._threads.wake()
        if self._opponents.agents:
            self._advance(actions, MOVE)
            self._is_interrupted = True
            self._play_opponents()
            self._threads.step(REWARD)
            self._play_opponents()  # in the games that REWARD has started
            self._threads.step(OBSERVE)
            self._is_interrupted = False
        else:
            self._advance(actions, ALL)
        if self._custom_reward and before is not None:
            self._apply_custom_reward(self._custom_reward, *before)

    def _build_boards(self, ahead: int) -> None:
        """Build the boards that games have some episodes later, before a kernel reads them."""
        if not self.boards.is_built:
            index = np.empty(len(self.games), np.int64)
            batch_kernels.write_drawn_boards(self._arrays, np.int64(ahead), index)
            self.boards.build(index)

    def _advance(self, actions: np.ndarray, stages: int) -> None:
        """Run the first stages of a step; raises for an illegal action with illegal="raise"."""
        if self._arrays.illegal != batch_kernels.RAISE:
            self._threads.step(stages)
        elif (row := self._threads.step_checked(stages)) >= 0:
            self.illegal_actions[:] = False
            board = self.boards[self.board_index[row]]
            raise with_mask_hint(illegal_action(self.games, row, board, int(actions[row])))

    def _play_opponents(self) -> None:
        """Call the agents until no game waits for one.

        Raises AgentError for an illegal action, or a wrong number or dtype of actions.
        """
        agents, workspace = self._opponents.agents, self._threads.workspace
        games, indices = self.games, np.arange(len(self.games))
        while agents:  # without any, owners of seats from FIRST_AGENT on are the caller's
            owners = np.where(games["phase"] == OVER, 0, self.seat_owners[indices, games["seat"]])
            if (owners < FIRST_AGENT).all():
                return
            for number, agent in enumerate(agents, FIRST_AGENT):
                rows = np.flatnonzero(owners == number)
                actions = choose_actions(agent, self, rows)
                batch_kernels.apply_agent_actions(self._arrays, workspace, rows, actions)

    def _apply_custom_reward(
        self, reward: Reward, before: np.ndarray, was_reset: np.ndarray
    ) -> None:
        """Overwrite the rewards, except 0 after a reset and -1 after a lost game."""
        after, rewards = self.games.copy(), np.zeros_like(self.rewards)
        after[self.terminations] = self.final_games[self.terminations]
        call_reward(reward, before, after, rewards, was_reset)
        forfeited = self.illegal_actions & (self._arrays.illegal == batch_kernels.LOSE)
        self.rewards[~forfeited] = rewards[~forfeited]
        self.acting_rewards[:] = self.rewards[np.arange(len(rewards)), self.acting_seats]

    def final_observations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and masks of the K games that the last step ended, as fresh arrays.

        uint8, (K, size), from the view of the seat that decided last, and bool, (K, num_actions),
        all true where the game is over.
        """
        finals, board = self.final_games[self.terminations], self.boards.records
        if len(finals) and len(self.boards) > 1:  # one board for each game
            board = board[self.final_board_index[self.terminations]]
            board.flags.writeable = False
        if self._relative_types:
            finals = relative_games(finals)
        rows = np.empty((len(finals), self.observations.shape[1]), np.uint8)
        masks = np.empty((len(finals), self.board.num_actions), np.bool_)
        seats = np.minimum(self.acting_seats[self.terminations], finals["players"] - 1)
        kernels.observe_seats(finals, board, seats, rows)
        kernels.legal_bytes(finals, board, masks)
        masks[finals["phase"] == OVER] = True
        return rows, masks

    @property
    def has_started(self) -> bool:
        """Whether the games have begun."""
        return bool(self.games["players"][0])

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays, by name, from which `restore` continues the games.

        The memory of opponents that are not compiled is not part of it.
        """
        arrays = {name: getattr(self._arrays, name) for name in STATE_ARRAYS}
        return {
            name: as_bytes(array).copy().view(array.dtype).reshape(array.shape)
            for name, array in arrays.items()
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from a state that `state()` of a batch with the same settings returned.

        Observations, masks and seats are those of the state; rewards are 0, and `terminations`
        marks the games that wait for a reset. Raises ValueError for a state of another kind of
        batch and for one that is not valid. Nothing changes then.
        """
        arrays = self._arrays
        check_state(state, self.state(), self.boards, arrays.kinds)
        with self._threads.exclusive():
            self._threads.close_step()
            self.boards.build(state["board_index"])
            for name in STATE_ARRAYS:
                as_bytes(getattr(arrays, name))[:] = as_bytes(np.ascontiguousarray(state[name]))
            arrays.cached["players"] = 0  # the caches show other games
            arrays.viewers[:] = batch_kernels.NO_VIEWER
            arrays.terminations[:] = arrays.needs_reset
            arrays.illegal_actions[:] = False
            arrays.rewards[:] = arrays.acting_rewards[:] = 0.0
            over = arrays.needs_reset
            arrays.final_games[over] = arrays.games[over]
            arrays.final_board_index[over] = arrays.board_index[over]
            self._threads.step(OBSERVE)
            self._is_interrupted = False

    def game(self, index: int) -> Game:
        """Return a copy of one game, without its history.

        Raises ValueError for an index outside 0 to N - 1, and before the first reset.
        """
        index = check_whole("index", index, 0, len(self.games) - 1)
        if not self.has_started:
            raise ValueError("call reset(seed) before game(index)")
        board = self.boards[self.board_index[index]]
        return Game.from_state(self.games[index : index + 1], self.rules, board)

    def close(self) -> None:
        """Close the opponents built from specs, which may hold programs or threads."""
        self._opponents.close()


def _check_learner(seat: int | None, opponents: Opponents, players: int) -> int:
    """Return the learner's seat as kernels encode it."""
    if seat is None:
        return batch_kernels.DRAWN
    if opponents is None:
        raise ValueError("learner_seat requires opponents")
    return check_whole("learner_seat", seat, 0, players - 1)


def check_mask(mask: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return the games to reset, bool, (N,), as a fresh array; ValueError for an invalid mask."""
    if mask is None:
        return np.ones(shape, np.bool_)
    rows = np.array(mask)
    if rows.dtype != np.bool_ or rows.shape != shape:
        raise ValueError(f"the mask of games to reset is {mask!r}; allowed: bools, shape {shape}")
    return rows  # it may be `terminations`, which the reset overwrites
