"""Histories of games that are played in a batch, for agents that need them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from busenv import Board, Game, Rules
from busenv.agents.base import Agent
from busenv.batch.saved_games import take_games


class GameHistories:
    """Games of a batch as `Game` objects, which have histories, if one of the agents needs them.

    agents: of all games. states: GAME, (N,), new games, which the caller steps in place.
    rules, board: of all games.
    """

    def __init__(
        self, agents: Sequence[Agent], states: np.ndarray, rules: Rules, board: Board
    ) -> None:
        self._states, self._board, self._games = states, board, list[Game]()
        if any(agent.single_game_only for agent in agents):
            setups = zip(states["players"].tolist(), states["first"].tolist(), strict=True)
            self._games = [Game(players, rules, board, first, seed=0) for players, first in setups]

    def choose(self, agent: Agent, indices: np.ndarray) -> np.ndarray:
        """Return an agent's actions in some of the games: int64, (n,)."""
        if agent.single_game_only:
            return np.array([agent.act(self._games[i]) for i in indices])
        return agent.choose_trusted(take_games(self._states, indices), self._board)

    def step(self, indices: np.ndarray, actions: np.ndarray) -> None:
        """Take the actions, int64, (n,), that the caller has taken in some of the games."""
        if not self._games:
            return
        for i, action in zip(indices, actions, strict=True):
            game = self._games[i]
            game.step(action)
            # The caller may have passed decisions with one legal action.
            while game.arrays()[0].tobytes() != self._states[i].tobytes():
                forced = game.legal_actions()
                if len(forced) != 1:
                    raise RuntimeError(f"the history of game {i} does not lead to its state")
                game.step(forced[0])
