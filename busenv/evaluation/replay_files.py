"""Write recorded games to files: a picture of one position, an animation, or the replay page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from busenv import Board
from busenv.agents import make_agent
from busenv.agents.specs import short_spec
from busenv.evaluation.narration import RecordedGame, load_recorded_game
from busenv.io import write_whole
from busenv.render.animation import drawings_to_gif
from busenv.render.game_drawing import game_svg
from busenv.render.raster import svg_to_png
from busenv.render.replay import Estimate, replay_page


def draw_record(
    source: str | Path, ply: int | None, out: str | Path, board: str | Path | Board | None = None
) -> None:
    """Draw the position of a recorded game after `ply` decisions, by default after the last.

    source, board: see `load_recorded_game`. out: FILE.svg, or FILE.png, which needs the extra
    `render`. ValueError for another file name or ply.
    """
    out = Path(out)
    if out.suffix not in (".svg", ".png"):
        raise ValueError(f"cannot draw {str(out)!r}; allowed: FILE.svg or FILE.png")
    recorded = load_recorded_game(source, board)
    plies = len(recorded.record.actions)
    if ply is not None and not 0 <= ply <= plies:
        raise ValueError(f"ply is {ply}; allowed: 0 to {plies}, the length of the game")
    if ply is None or ply == plies:
        game = recorded.end()
    else:
        game, _ = next(islice(recorded.replay(), ply, None))
    drawing = game_svg(game)
    write_whole(out, drawing if out.suffix == ".svg" else svg_to_png(drawing))


def write_animation(
    source: str | Path, out: str | Path, board: str | Path | Board | None = None
) -> None:
    """Write an animated GIF of a recorded game, with a frame for each decision.

    source, board: see `load_recorded_game`. out: FILE.gif. Requires the extra `render`. ValueError
    for another file name.
    """
    if Path(out).suffix != ".gif":
        raise ValueError(f"cannot draw {str(out)!r}; allowed: FILE.gif")
    recorded = load_recorded_game(source, board)
    drawings = [game_svg(game) for game, _ in recorded.replay()] + [game_svg(recorded.end())]
    write_whole(out, drawings_to_gif(drawings))


def write_replay(
    source: str | Path,
    out: str | Path,
    spec: str | None = None,
    board: str | Path | Board | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """Write the replay page of a recorded game.

    source, board: see `load_recorded_game`. spec: agent whose estimates of the positions the page
    shows. names: players' names by seat; by default the agents of a game of a rating.
    """
    recorded = load_recorded_game(source, board)
    end = recorded.end()
    positions = [game.position() for game, _ in recorded.replay()] + [end.position()]
    page = replay_page(
        recorded.board,
        recorded.record.rules,
        positions,
        recorded.record.actions,
        estimates=[] if spec is None else _estimates(recorded, spec),
        agent=short_spec(spec or ""),
        names=recorded.agents if names is None else names,
        note=recorded.forfeit,
    )
    write_whole(out, page)


def _estimates(recorded: RecordedGame, spec: str) -> list[Estimate]:
    """Return an agent's estimate of every position before a decision."""
    with closing(make_agent(spec)) as agent:
        return [agent.estimate(game) for game, _ in recorded.replay()]
