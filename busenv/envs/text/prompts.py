"""Prompts for language models: the rules, the position and the legal actions in words.

An answer is an action's id or its words (`busenv.game.actions.describe_action`). With `obfuscate`
the game is renamed by bijections (`busenv.envs.text.renaming`), and answers are read in the new
names.
"""

from __future__ import annotations

import functools

from busenv.envs.text.renaming import Renaming
from busenv.envs.text.rules_text import describe_rules
from busenv.error_text import truncate
from busenv.game.actions import describe_action, plain_words
from busenv.game.board import Board
from busenv.game.game import Game
from busenv.game.rules import Rules
from busenv.render.phrases import headline
from busenv.render.text import describe_board, describe_position

LISTED = """\
The message lists your legal actions as "ID: words". Answer with one of them. You may think first;
the last line of your answer must be the ID, the words, or both as listed, and nothing else.
"""
UNLISTED = """\
Answer with one legal action. You may think first; the last line of your answer must be the action
in one of these forms, with the names and numbers of the board, and nothing else:
place marker on Line Expansion (or another action)
pass
erect house on site 7 at intersection 5, zone 2 (or another type)
grow line 3→4 (from intersection 3 to 4; your first street as the board lists it)
passengers: 2 to the station at {first}, the rest to {second}
let time advance
stop time
pick up a passenger at intersection 6
set the passenger down at intersection 6
"""


class AnswerError(ValueError):
    """An answer is not a legal action. The message is written for the player that answered."""


class Prompts:
    """The prompts of games with given rules on a board, and the parser of answers.

    `get_prompts` has the same arguments and caches the prompts of the last 16 settings.

    list_actions: whether `question` lists the legal actions.
    obfuscate: seed of the renaming, 0 to 2**64 - 1; None keeps the game's names.

    instructions: rules, board and form of the answer, the same for every decision. words: texts of
        the actions, by id, as `read` accepts them.
    """

    def __init__(
        self,
        board: Board,
        rules: Rules,
        num_players: int,
        *,
        list_actions: bool = True,
        obfuscate: int | None = None,
    ) -> None:
        self._list_actions, self._names = list_actions, Renaming(board, obfuscate)
        first, second = self._names.board.stations
        form = LISTED if list_actions else UNLISTED.format(first=first, second=second)
        self.instructions = self._names.words(
            f"You play a board game. Its rules:\n\n{describe_rules(rules, num_players)}\n"
            f"The board:\n\n{describe_board(self._names.board)}\n\n{form}"
        )
        self.words = [
            self._names.words(describe_action(self._names.board, self._names.action(action)))
            for action in range(board.num_actions)
        ]
        self._actions = {plain_words(words): action for action, words in enumerate(self.words)}
        for action, words in enumerate(self.words):
            number = f"{self._names.ids[action]}"
            self._actions |= {number: action, plain_words(f"{number}: {words}"): action}

    def question(self, game: Game) -> str:
        """Describe a game to the player to decide, or its result when it is over."""
        position = self._names.position(game.position())
        you = "" if game.is_over else f"You are seat {position.current_player}. "
        lines = [f"{you}{headline(position)}.", describe_position(self._names.board, position)]
        text = self._names.words("\n".join(lines))
        if self._list_actions and not game.is_over:
            shown = sorted((self._names.ids[a], self.words[a]) for a in game.legal_actions())
            text += "\nlegal actions:" + "".join(f"\n{i}: {words}" for i, words in shown)
        return text

    def read(self, game: Game, answer: str) -> int:
        """Return the legal action that the last line of an answer names.

        The line is the action's id, its words, or "ID: WORDS". Blank lines do not count. Raises
        AnswerError for anything else.
        """
        line = next((line for line in reversed(answer.splitlines()) if line.strip()), "")
        action = self._actions.get(plain_words(line))
        if action is None:
            raise AnswerError(f"The last line {truncate(ascii(line.strip()))} is not an action.")
        if not game.action_mask()[action]:
            raise AnswerError(f"The action {self.words[action]!r} is not legal now.")
        return action


get_prompts = functools.lru_cache(maxsize=16)(Prompts)
