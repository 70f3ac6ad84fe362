"""A whole game on one page: a single HTML file that needs no network.

The page holds the drawing at the start, and for each part of it (`svg.draw_parts`) the plies at
which it changes and what to.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from busenv.game import Game
from busenv.render.chart import draw_chart
from busenv.render.panels import headline
from busenv.render.pieces import SEAT_COLOURS, SEAT_INKS
from busenv.render.svg import draw_parts, join_parts

Estimate = tuple[list[float], list[tuple[int, float]]]
"""Each seat's chance to win, and favourite actions with their shares; either may be empty."""

TEMPLATE = Path(__file__).with_name("replay.html")


def replay_page(game: Game, estimates: Sequence[Estimate] = (), agent: str = "") -> str:
    """The page of a game, finished or not, as HTML.

    estimates: none, or one for each position that was decided, in order. agent: whose they are.
    Raises ValueError when their number or the number of chances is another.
    """
    _check_estimates(game, estimates)
    views = _play(game)
    first = views[0]["parts"]
    data = {
        "headlines": [view["headline"] for view in views],
        "changes": _changes([view["parts"] for view in views]),
        "moves": [f"Seat {view['seat']}: {view['words']}" for view in views[1:]],
        "estimates": [_worded(game, estimate) for estimate in estimates],
    }
    rounds = _rounds(views)
    fills = {
        "title": f"Bus: {game.num_players} players, {game.rules.name}, board {game.board.name}",
        "agent": agent or "the agent",
        "plies": str(len(game.history)),
    }
    raw = {
        "board": join_parts(first),
        "result": _result(game),
        "moves": _moves(views, rounds),
        "marks": _marks(rounds, len(game.history)),
        "charts": _charts(game, views, estimates, rounds),
        "seats": _seat_styles(),
        "data": _json_in_html(data),
    }
    contents = {name: escape(value) for name, value in fills.items()} | raw
    template = TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: contents[found[1]], template)


def _json_in_html(data: dict[str, Any]) -> str:
    """JSON in which nothing can end the script element that holds it, or begin a comment there."""
    words = json.dumps(data, separators=(",", ":"))
    return words.replace("</", "<\\/").replace("<!", "\\u003c!")


def _check_estimates(game: Game, estimates: Sequence[Estimate]) -> None:
    if estimates and len(estimates) != len(game.history):
        raise ValueError(
            f"{len(estimates)} estimates; allowed: none, or one for each of the "
            f"{len(game.history)} positions that were decided"
        )
    for ply, (chances, _) in enumerate(estimates):
        if chances and len(chances) != game.num_players:
            raise ValueError(
                f"the estimate at ply {ply} has {len(chances)} chances for {game.num_players} seats"
            )


def _play(game: Game) -> list[dict[str, Any]]:
    """What is to be shown after each number of plies, from 0 on."""
    now = Game(game.num_players, game.rules, game.board, game.first_player, game.seed)
    views = [_view(now, -1, "start")]
    for action in game.history:
        seat = now.current_player
        now.step(action)
        views.append(_view(now, seat, now.describe(action)))
    return views


def _view(game: Game, seat: int, words: str) -> dict[str, Any]:
    return {
        "seat": seat,
        "words": words,
        "round": game.round,
        "headline": headline(game.position()),
        "points": game.points,
        "parts": draw_parts(game.board, game.position(), game.rules, game.last_decision),
    }


def _changes(parts: list[dict[str, str]]) -> dict[str, list[tuple[int, str]]]:
    """By name of a part the plies at which it changes, with what it changes to."""
    changes: dict[str, list[tuple[int, str]]] = {}
    for name in parts[0]:
        states = [(ply, part[name]) for ply, part in enumerate(parts)]
        changed = [state for before, state in itertools.pairwise(states) if before[1] != state[1]]
        if changed:
            changes[name] = [states[0], *changed]
    return changes


def _rounds(views: list[dict[str, Any]]) -> list[int]:
    """The ply at which each round begins, the first at index 0."""
    seen: dict[int, int] = {}
    for ply, view in enumerate(views):
        seen.setdefault(view["round"], ply)
    return [ply for number, ply in sorted(seen.items()) if number]


def _worded(game: Game, estimate: Estimate) -> dict[str, Any]:
    chances, favourites = estimate
    return {
        "chances": [round(chance, 4) for chance in chances],
        "favourites": [[game.describe(action), round(share, 4)] for action, share in favourites],
    }


def _seat(seat: int) -> str:
    return f'<span class="seat seat-{seat}">{seat}</span>'


def _seat_styles() -> str:
    return "".join(
        f".seat-{seat}{{background:{colour};color:{ink}}}"
        for seat, (colour, ink) in enumerate(zip(SEAT_COLOURS, SEAT_INKS, strict=True))
    )


def _result(game: Game) -> str:
    """The final table, best place first; or a word that the game goes on."""
    if not game.is_over:
        return f"<p>The game is not over: {escape(headline(game.position()))}.</p>"
    places = game.ranking()
    rows = "".join(
        f"<tr><td>{places[seat] + 1}</td><td>{_seat(seat)}</td><td>{game.points[seat]}</td>"
        f"<td>{game.deliveries[seat]}</td><td>{game.time_stones[seat]}</td></tr>"
        for seat in sorted(range(game.num_players), key=places.__getitem__)
    )
    return (
        '<table id="result"><caption>Final score</caption><tr><th>place</th><th>seat</th>'
        f"<th>points</th><th>deliveries</th><th>time stones</th></tr>{rows}</table>"
    )


def _moves(views: list[dict[str, Any]], rounds: list[int]) -> str:
    """The list of moves: a button each, with a heading before each round."""
    titles = {ply: f"Round {number}" for number, ply in enumerate(rounds, start=1)}
    rows = ['<h3>Setup</h3><button data-ply="0">start</button>']
    for ply, view in enumerate(views[1:], start=1):
        words = f"{ply}. {_seat(view['seat'])} {escape(view['words'])}"
        rows.append(f'<button data-ply="{ply}">{words}</button>')
        if ply in titles:
            rows.append(f"<h3>{titles[ply]}</h3>")
    return "".join(rows)


def _marks(rounds: list[int], plies: int) -> str:
    """Buttons along the slider, one where each round begins."""
    return "".join(
        f'<button data-ply="{ply}" style="--at:{ply / plies:.4f}" title="Round {number}" '
        f'aria-label="Go to round {number}">{number}</button>'
        for number, ply in enumerate(rounds, start=1)
    )


def _charts(
    game: Game, views: list[dict[str, Any]], estimates: Sequence[Estimate], rounds: list[int]
) -> str:
    """Points over time, and the chances to win where they are estimated."""
    seats = range(game.num_players)
    points = [[view["points"][seat] for view in views] for seat in seats]
    low, high = min(map(min, points)), max(map(max, points))
    drawn = "<figure><figcaption>Points</figcaption>"
    drawn += draw_chart("Points over time", points, low, max(high, 1), rounds) + "</figure>"
    if any(chances for chances, _ in estimates):
        curves = [
            [chances[seat] if chances else None for chances, _ in estimates] + [None]
            for seat in seats
        ]
        drawn += "<figure><figcaption>Estimated chance to win</figcaption>"
        drawn += draw_chart("Chance to win over time", curves, 0, 1, rounds, True) + "</figure>"
    return drawn
