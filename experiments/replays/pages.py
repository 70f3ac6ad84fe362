"""Recorded games as pictures: one position, or the replay page."""

from __future__ import annotations

from pathlib import Path

from busenv.agents import make_agent
from busenv.experiments.replays.words import load_played

from busenv import Board, Game
from busenv.files import write_whole
from busenv.render.replay import Estimate, replay_page


def draw_record(path: str | Path, ply: int | None, out: Path, board: str | Board = "city") -> None:
    """Draw a record's position after some plies, by default after the last one, as an SVG file."""
    game = Game.from_record(load_played(str(path)).record, board)
    plies = len(game.history)
    if ply is not None and not 0 <= ply <= plies:
        raise ValueError(f"ply is {ply}; allowed: 0 to {plies}, the length of the game")
    write_whole(out, _begin(game, game.history[:ply]).svg())


def write_replay(
    path: str | Path, out: Path, spec: str | None = None, board: str | Board = "city"
) -> None:
    """Write a record's replay page; with an agent's spec, with what it makes of each position."""
    game = Game.from_record(load_played(str(path)).record, board)
    estimates = [] if spec is None else _estimates(game, spec)
    write_whole(out, replay_page(game, estimates, spec or ""))


def _estimates(game: Game, spec: str) -> list[Estimate]:
    """What an agent makes of every position of a game that was decided."""
    agent, now, estimates = make_agent(spec), _begin(game, []), []
    try:
        for action in game.history:
            estimates.append(agent.estimate(now))
            now.step(action)
    finally:
        agent.close()
    return estimates


def _begin(game: Game, actions: list[int]) -> Game:
    """The same game after some actions."""
    begun = Game(game.num_players, game.rules, game.board, game.first_player, game.seed)
    for action in actions:
        begun.step(action)
    return begun
