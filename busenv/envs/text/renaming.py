"""Renames a game by bijections, so that memory of the published game does not help a player.

Intersections and sites get other numbers, action ids are shuffled, and the types of buildings, the
actions and the game's own words become invented ones. Streets keep their order and direction.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from busenv.core.state import Building
from busenv.game.actions import ACTION_WORDS, decode, encode
from busenv.game.board import Board, Site, assemble_board
from busenv.game.position import Position
from busenv.validation import check_seed

WORDS = [  # renamed with their plurals; action names first, since some contain others
    *(name.lower() for name in ACTION_WORDS if name not in ("Buses", "Passengers", "Buildings")),
    *(kind.name.lower() for kind in Building),
    *("bus", "passenger", "building", "station", "roundabout", "time"),
]


class Renaming:
    """A bijection of names on a board, drawn from a seed; None keeps all names.

    board: the renamed board. ids: the shown id of each action.
    """

    def __init__(self, board: Board, seed: int | None) -> None:
        self._plain, self.board = board, board
        self.ids = np.arange(board.num_actions).tolist()
        self._sites = np.arange(len(board.sites))
        self._intersections = np.arange(len(board.intersections))
        self._invented: dict[str, str] = {}
        if seed is not None:
            random = np.random.default_rng(check_seed(seed))
            self.ids = random.permutation(self.ids).tolist()
            self._sites = random.permutation(self._sites)
            self._intersections = random.permutation(self._intersections)
            stations = [*board.stations]  # keep their order, which action ids depend on
            self._intersections[stations] = np.sort(self._intersections[stations])
            self._invented = dict(zip(WORDS, _invent(random, len(WORDS)), strict=True))
            self.board = _renumber(board, self._intersections, self._sites)
        words = "|".join(map(re.escape, WORDS))
        self._pattern = re.compile(rf"(?<!\w)({words})(e?s)?(?!\w)", re.IGNORECASE)

    def words(self, text: str) -> str:
        """Return a text in the new words."""
        return self._pattern.sub(self._word, text) if self._invented else text

    def _word(self, match: re.Match[str]) -> str:
        word = self._invented[match[1].lower()] + ("s" if match[2] else "")
        return word.capitalize() if match[0][0].isupper() else word

    def action(self, action: int) -> int:
        """Return the action's id on the renamed board."""
        move = decode(self._plain, action)
        if move.kind == "build":
            move = move._replace(subject=int(self._sites[move.subject]))
        if move.kind in ("pick_up", "set_down"):
            move = move._replace(subject=int(self._intersections[move.subject]))
        return encode(self.board, move)

    def position(self, position: Position) -> Position:
        """Return a position of the renamed board."""
        intersections = self._intersections
        passengers = np.array(position.passengers)[np.argsort(intersections)]
        return dataclasses.replace(
            position,
            line_ends=[intersections[ends].tolist() if ends else [] for ends in position.line_ends],
            passengers=passengers.tolist(),
            buildings=np.array(position.buildings)[np.argsort(self._sites)].tolist(),
            waiting=sorted(intersections[i] for i in position.waiting),
            vacant=sorted(intersections[i] for i in position.vacant),
        )


def _invent(random: np.random.Generator, count: int) -> list[str]:
    """Draw different words of three syllables; none of them occurs in a prompt."""
    words: dict[str, None] = {}
    while len(words) < count:
        consonants = random.choice([*"bdfgklmnprstvz"], 3)
        vowels = random.choice([*"aiou"], 3)
        words["".join(a + b for a, b in zip(consonants, vowels, strict=True))] = None
    return [*words]


def _renumber(board: Board, intersections: np.ndarray, sites: np.ndarray) -> Board:
    """Return a board with new numbers of intersections and sites."""
    new = intersections.tolist()
    old_sites = [board.sites[old] for old in np.argsort(sites)]
    return assemble_board(
        "renamed",
        tuple(board.intersections[old] for old in np.argsort(intersections)),
        tuple((new[first], new[second]) for first, second in board.streets),
        tuple(Site(new[site.intersection], site.zone) for site in old_sites),
    )
