"""Objects with `act(game)` or `choose(games, board)` as agents: those of `py:` and of plug-ins."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from busenv import Board, Game
from busenv.agents.base import Agent, call_foreign
from busenv.game.states import check_choice


class CustomAgent(Agent):
    """An agent of a player's methods; `reset(seed)` and `close()` are optional.

    A player without `choose` plays single games only. One without `act` receives a single game as a
    batch of one. Errors of the player's code become AgentErrors.
    """

    def __init__(self, player: Any, name: str) -> None:
        self.name, self._player = name, player
        self.single_game_only = not hasattr(player, "choose")

    def reset(self, seed: int) -> None:
        if hasattr(self._player, "reset"):
            call_foreign(self.name, self._player.reset, seed)

    def close(self) -> None:
        if hasattr(self._player, "close"):
            self._player.close()

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        if self.single_game_only:
            raise ValueError(f"{self.name} plays single games only: it has act(game), not choose")
        return call_foreign(self.name, self._choose, games, board)

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return check_choice(self._player.choose(games, board), games.shape, self.name)

    def _act(self, game: Game) -> int:
        if hasattr(self._player, "act"):
            return call_foreign(self.name, self._player.act, game)
        return int(self.choose(game.arrays()[0].copy(), game.board)[0])


def as_agent(player: Any, name: str | None = None) -> Agent:
    """Return an agent that plays by an object's `act(game)` or `choose(games, board)`.

    name: by default the object's `name`, or its class. Agents are returned as they are, with
    another name if one is given. Raises TypeError for other objects and for classes.
    """
    if isinstance(player, type) or not (hasattr(player, "act") or hasattr(player, "choose")):
        raise TypeError(
            f"{player!r} is not an agent: it has no method act(game) or choose(games, board)"
        )
    if not isinstance(player, Agent):
        return CustomAgent(player, name or str(getattr(player, "name", type(player).__name__)))
    if name is not None:
        player.name = name
    return player


def load_object(module: str, name: str) -> Any:
    """Return the object of a name in a module, or in a file if `module` ends in ".py".

    The folder of a file is searched for its imports. Raises FileNotFoundError for a missing file,
    ValueError for a missing module or object, and the errors of the import.
    """
    try:
        loaded = _load_file(Path(module)) if module.endswith(".py") else import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"no module {module!r}; a file is py:FILE.py:CLASS") from error
        raise
    if not callable(getattr(loaded, name, None)):
        raise ValueError(f"{module} has no class or function {name!r}")
    return getattr(loaded, name)


def _load_file(path: Path) -> Any:
    """Run a Python file as a module, once in this process."""
    path = path.resolve()
    key = f"busenv_agent:{path}".replace(".", "|")  # pickle imports what stands before a dot
    if key not in sys.modules:
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        spec = spec_from_file_location(key, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[key] = module = module_from_spec(spec)
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[key]
            raise
    return sys.modules[key]
