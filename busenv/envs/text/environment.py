"""A Gymnasium environment with text observations and text actions, for language models.

`TextEnv` has Gymnasium's interface with texts for observations and actions:

    >>> from busenv.envs.text import TextEnv
    >>> env = TextEnv(opponents="greedy")
    >>> text, info = env.reset(seed=1)
    >>> text.splitlines()[0]
    'You are seat 1. Setup, first buildings: seat 1 to move, 2 buildings to go.'
    >>> text, reward, terminated, _, info = env.step("place nothing")
    >>> text.splitlines()[0], info["invalid_answers"]
    ("The last line 'place nothing' is not an action.", 1)
    >>> _, _, _, _, info = env.step("erect pub on site 9 at intersection 21, zone 1")
    >>> info["action"]
    37

`env.instructions` has the rules, the board and the form of an answer, for a system prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium

from busenv.batch.opponents import Player
from busenv.envs.gymnasium import BusEnv
from busenv.envs.text.prompts import AnswerError, Prompts, get_prompts
from busenv.game.board_specs import Boards
from busenv.game.game import Game
from busenv.game.rules import Rules
from busenv.rewards import Reward
from busenv.validation import check_seed, check_whole

MAX_TEXT = 20_000  # characters of an observation or an answer
LETTERS = frozenset(map(chr, range(32, 127))) | {"\n", "→"}


class TextEnv(gymnasium.Env[str, str]):
    """One seat of a game of Bus in text; agents play the other seats within `step`.

    Observation: the position, and the legal actions (`busenv.envs.text.prompts`). Action: a text
    whose last line that is not blank is the id, the words, or "ID: WORDS" of a legal action. Any
    other text is an invalid answer: the observation is repeated after a line with the reason. After
    `retries` invalid answers to one decision the next one forfeits: the episode ends with a reward
    of -1.

    `info` holds `seat`, `action` (id in the game that was played, None for an invalid answer),
    `invalid_answers` (in this episode) and `forfeit`.

    num_players, opponents, learner_seat, rules, board, reward: as for
        `busenv.envs.gymnasium.BusEnv`.
    list_actions: list the legal actions in the observation. Without the list the task is harder.
    retries: invalid answers allowed for each decision, 0 or more. Default 2.
    obfuscate: seed of a renaming of intersections, sites, types, actions and ids
        (`busenv.envs.text.renaming`); None (default) keeps the game's names.

    game: the game in its own names. instructions: rules, board and form of the answers, set by
    `reset`.
    forfeits, invalid_answers: counts of all episodes.

    Raises ValueError for an invalid setting, FileNotFoundError for an unknown board.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's attribute
    observation_space = gymnasium.spaces.Text(MAX_TEXT, min_length=0, charset=LETTERS)
    action_space = gymnasium.spaces.Text(MAX_TEXT, min_length=0, charset=LETTERS)

    def __init__(
        self,
        num_players: int | Sequence[int] = 4,
        *,
        opponents: str | Player | Sequence[str | Player] = "greedy",
        learner_seat: int | None = None,
        rules: str | Path | Rules = "capstone-2024",
        board: Boards = "city",
        reward: str | Reward = "win",
        list_actions: bool = True,
        retries: int = 2,
        obfuscate: int | None = None,
    ) -> None:
        self._env = BusEnv(
            num_players,
            opponents=opponents,
            learner_seat=learner_seat,
            rules=rules,
            board=board,
            reward=reward,
        )
        self._retries = check_whole("retries", retries, 0)
        if obfuscate is not None:
            check_seed(obfuscate)
        self._settings: dict[str, Any] = {"list_actions": list_actions, "obfuscate": obfuscate}
        self._prompts: Prompts | None = None
        self.instructions = ""
        self.invalid_answers = self.forfeits = 0

    @property
    def game(self) -> Game | None:
        """The current game, None before `reset`."""
        return self._env.game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a game and play up to the learner's first decision.

        options: "first_player" sets the seat that starts.
        """
        super().reset(seed=seed)
        self._env.reset(seed=seed, options=options)
        game = self.game
        assert game is not None
        self._prompts = get_prompts(game.board, game.rules, game.num_players, **self._settings)
        self.instructions = self._prompts.instructions
        self._invalid = self._invalid_in_a_row = 0
        self._forfeited = False
        return self._text(), self._info(None)

    def step(self, answer: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take the learner's action and play up to its next decision or the end.

        Returns observation, reward, terminated, truncated (always False) and `info`.

        Raises TypeError for anything but a text, the errors of `BusEnv.step`, and ResetNeeded
        before `reset` and after the end.
        """
        if not isinstance(answer, str):
            raise TypeError(f"answer is {answer!r}; allowed: a text, such as '3' or 'pass'")
        if self._prompts is None or self.game is None or self.game.is_over or self._forfeited:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        try:
            action = self._prompts.read(self.game, answer)
        except AnswerError as error:
            return self._refuse(error)
        _, reward, terminated, truncated, _ = self._env.step(action)
        self._invalid_in_a_row = 0
        return self._text(), reward, terminated, truncated, self._info(action)

    def _refuse(self, error: AnswerError) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Count an invalid answer, and end the episode after too many."""
        self.invalid_answers += 1
        self._invalid += 1
        self._invalid_in_a_row += 1
        self._forfeited = self._invalid_in_a_row > self._retries
        self.forfeits += self._forfeited
        reward = -1.0 if self._forfeited else 0.0
        return f"{error}\n{self._text()}", reward, self._forfeited, False, self._info(None)

    def _text(self) -> str:
        assert self.game is not None
        assert self._prompts is not None
        return self._prompts.question(self.game)

    def _info(self, action: int | None) -> dict[str, Any]:
        return {
            "seat": self._env.seat,
            "action": action,
            "invalid_answers": self._invalid,
            "forfeit": self._forfeited,
        }

    def close(self) -> None:
        """Close the opponents built from specs."""
        self._env.close()
