"""Agents by spec string, found where they are installed, and who plays against a learner.

The rules and environments know no agents; packages that bring some (ours is `busenv.agents`) name a
function `make_agent(spec, seed)` under the entry point group "busenv.agents".
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np

from busenv.core import bots
from busenv.core.state import MAX_PLAYERS
from busenv.errors import AgentError, IllegalActionError
from busenv.game.game import Game

COMPILED = {"random": bots.RANDOM, "greedy": bots.GREEDY}  # bots of the core by their specs


class Player(Protocol):
    """Anything that chooses actions."""

    def act(self, game: Game) -> int:
        """A legal action for the seat to decide; the game must not be changed."""


def make_agent(spec: str, seed: int = 0) -> Any:
    """An agent by its spec, such as "greedy" or "uct:500", from whichever package builds it.

    busenv's own are `busenv.agents.Agent`s and know these specs: random, greedy, planner,
    uct:SIMULATIONS, net:NAME, exec:COMMAND (`busenv.agents`). seed: what its chances are drawn
    from. ValueError when no installed package builds such an agent.

    What packages build chooses by `act(game)` and begins anew by `reset(seed)`.
    """
    reasons = []
    for found in sorted(entry_points(group="busenv.agents"), key=lambda entry: entry.name):
        try:
            return found.load()(spec, seed)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError("; ".join(reasons) or f"no package that builds agents such as {spec!r}")


def as_player(agent: str | Player, seed: int = 0) -> Player:
    """An agent given by its spec, or the agent itself.

    ValueError as `make_agent`, TypeError when it cannot act.
    """
    if isinstance(agent, str):
        return make_agent(agent, seed)
    if not callable(getattr(agent, "act", None)):
        raise TypeError(f"{agent!r} is no agent: it has no method act(game)")
    return agent


def one_for_each(opponents: str | Player | Sequence[str | Player], seats: int) -> list[Any]:
    """Opponents given as several, one for each seat; none where one is to play all seats.

    ValueError when there are fewer than seats.
    """
    if isinstance(opponents, str) or not isinstance(opponents, Sequence):
        return []
    if len(opponents) < seats:
        raise ValueError(
            f"{len(opponents)} opponents; allowed: one for all, or one for each of the "
            f"{seats} other seats"
        )
    return [*opponents]


class Table:
    """Who plays which seat of a game beside the learner, as `Opponents.sit` has it.

    noise: uint64, (5,), what the compiled bots' chances are drawn from, by seat.
    """

    def __init__(self, players: dict[int, Player], kinds: np.ndarray, noise: np.ndarray) -> None:
        self._players, self._kinds, self._compiled = players, kinds, bool(kinds.any())
        self.noise = noise

    def play_on(self, game: Game) -> np.ndarray:
        """Let them decide until the learner is to, or the game is over; returns the noise after it.

        The noise before it stays as it is, so that who fails can be asked again. AgentError when
        one chooses what is illegal.
        """
        noise = self.noise.copy()
        while True:
            if self._compiled:
                game.run_bots(self._kinds, noise)
            seat = game.current_player if self._players else -1
            if seat not in self._players:
                return noise
            action = self._players[seat].act(game)
            try:
                game.step(action)
            except IllegalActionError as error:
                raise AgentError(f"the opponent at seat {seat}: {error}") from error


class Opponents:
    """Agents for the seats beside a learner's, clockwise from it. Bots of the core play compiled.

    opponents: a spec, or an object with a method `act(game)`; one for all seats, or one for each.
    seats: how many there may be.

    ValueError when there are too few or a spec is unknown, TypeError as `as_player`.
    """

    def __init__(self, opponents: str | Player | Sequence[str | Player], seats: int) -> None:
        given = one_for_each(opponents, seats) or [opponents] * seats
        self._kinds = [COMPILED.get(one, 0) if isinstance(one, str) else 0 for one in given]
        pairs = [*zip(given, self._kinds, strict=True)]
        self._players = [None if kind else as_player(one) for one, kind in pairs]
        self._built = [isinstance(one, str) and not kind for one, kind in pairs]

    def sit(self, learner: int, num_players: int, random: np.random.Generator) -> Table:
        """Seat them for a game. Agents given by spec begin anew, from seeds that are drawn; what
        was given as an object goes on as it is."""
        seeds = random.integers(2**32, size=len(self._kinds), dtype=np.uint64)
        kinds, noise = np.zeros(MAX_PLAYERS, np.uint8), np.zeros(MAX_PLAYERS, np.uint64)
        players = {}
        for k in range(num_players - 1):
            seat, player = (learner + 1 + k) % num_players, self._players[k]
            kinds[seat], noise[seat] = self._kinds[k], seeds[k]
            if player is not None:
                players[seat] = player
                if self._built[k]:
                    player.reset(int(seeds[k]))  # type: ignore[attr-defined]
        return Table(players, kinds, noise)

    def close(self) -> None:
        """Give back what agents given by spec hold, such as running programs."""
        for player, built in zip(self._players, self._built, strict=True):
            if built and hasattr(player, "close"):
                player.close()  # type: ignore[union-attr]
