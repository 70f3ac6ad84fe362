"""Recorded games as pictures: one position, or the replay page."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from busenv import Board
from busenv.agents import make_agent
from busenv.experiments.replays.narration import Played, load_played
from busenv.io import write_whole
from busenv.render.raster import svg_to_png
from busenv.render.replay import Estimate, replay_page


def draw_record(
    source: str | Path, ply: int | None, out: str | Path, board: str | Path | Board = "city"
) -> None:
    """Draw a record's position after some plies, by default after the last one, as a picture.

    source, board: as `load_played` takes them. out: FILE.svg, or FILE.png, which needs the extra
    `render` (ModuleNotFoundError names what is missing). ValueError says which endings or plies are
    allowed.
    """
    out = Path(out)
    if out.suffix not in (".svg", ".png"):
        raise ValueError(f"cannot draw {out}; allowed: a name that ends in .svg or .png")
    played = load_played(source, board)
    plies = len(played.record.actions)
    if ply is not None and not 0 <= ply <= plies:
        raise ValueError(f"ply is {ply}; allowed: 0 to {plies}, the length of the game")
    if ply is not None and ply < plies:
        record = dataclasses.replace(
            played.record, actions=played.record.actions[:ply], result=None
        )
        played = dataclasses.replace(played, record=record)
    drawing = played.end().svg()
    write_whole(out, drawing if out.suffix == ".svg" else svg_to_png(drawing))


def write_replay(
    source: str | Path,
    out: str | Path,
    spec: str | None = None,
    board: str | Path | Board = "city",
    names: Sequence[str] | None = None,
) -> None:
    """Write a record's replay page.

    source, board: as `load_played` takes them. spec: an agent, whose estimate of each position is
    shown. names: the players', by seat; by default the agents' where the record is of a rating.
    """
    played = load_played(source, board)
    end = played.end()
    positions = [game.position() for game, _ in played.replay()] + [end.position()]
    page = replay_page(
        played.board,
        played.record.rules,
        positions,
        played.record.actions,
        [] if spec is None else _estimates(played, spec),
        _short(spec or ""),
        played.agents if names is None else names,
        played.forfeit,
    )
    write_whole(out, page)


def _short(spec: str) -> str:
    """A spec as a heading has it: of a path only the model's name."""
    found = re.fullmatch(r"([^:]+):(.+)\.safetensors(:[^:]+)?", spec)
    return f"{found[1]}:{Path(found[2]).name}{found[3] or ''}" if found else spec


def _estimates(played: Played, spec: str) -> list[Estimate]:
    """What an agent makes of every position of a game that was decided."""
    agent = make_agent(spec)
    try:
        return [agent.estimate(game) for game, _ in played.replay()]
    finally:
        agent.close()
