"""The replay page of a game: one HTML file that works offline.

The page holds the drawing of the first position, and for each of its parts (`svg.draw_map`,
`svg.draw_panels`) the plies at which the part changes, with its new state.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.render.chart import draw_chart, first_plies
from busenv.render.phrases import ENDING_WORDS, describe_move, headline, headline_seat, merge_moves
from busenv.render.pieces import pieces_style
from busenv.render.svg import CITY, PANELS, describe_last, draw_map, draw_panels, join_parts

Estimate = tuple[list[float], list[tuple[int, float]]]
"""Probabilities to win by seat, and (action, probability) pairs; either can be empty."""

MAX_BEST_MOVES = 3
MIN_SHARE = 0.005  # of a best action: the least that rounds to 1%


def replay_page(
    board: Board,
    rules: Rules,
    positions: Sequence[Position],
    actions: Sequence[int],
    *,
    estimates: Sequence[Estimate] = (),
    agent: str = "",
    names: Sequence[str] = (),
    note: str = "",
) -> str:
    """Return the replay page of a game, finished or not, as HTML.

    positions: before the first action and after each. actions: the action ids.
    estimates: none, or one per action, of the position before it. agent: the name of their
    agent. names: none, or one per seat. note: replaces the sentence on the end of the game.

    Raises ValueError for another number of positions, actions or estimates.
    """
    rounds, last = first_plies(position.round for position in positions), positions[-1]
    plies = [*zip(positions[:-1], actions, strict=True)]
    decisions = [None, *((position.current_player, action) for position, action in plies)]
    befores = [None, *positions[:-1]]
    moves = [
        (before.current_player, describe_move(board, before, action)) for before, action in plies
    ]
    data = {
        "headlines": [headline(position) for position in positions],
        "lasts": [
            describe_last(board, position, decision, before)
            for position, decision, before in zip(positions, decisions, befores, strict=True)
        ],
        "seats": [headline_seat(position) for position in positions],
        "names": list(names),
        "changes": _changes(
            [
                draw_map(board, position, decision) | draw_panels(board, position, rules, decision)
                for position, decision in zip(positions, decisions, strict=True)
            ]
        ),
        "moves": [f"Seat {seat}: {words}" for seat, words in moves],
        "estimates": [
            _estimate_data(board, *ply, estimate)
            for ply, estimate in zip(plies if estimates else (), estimates, strict=True)
        ],
    }
    fills = {
        "title": f"Bus: {last.num_players} players, {rules.name}, board {board.name}",
        "agent": agent or "the agent",
        "plies": str(len(actions)),
    }
    raw = {
        "city": join_parts(draw_map(board, positions[0], None), CITY, "The city"),
        "panels": join_parts(
            draw_panels(board, positions[0], rules, None), PANELS, "Clock, actions, players"
        ),
        "result": _result(last, names, note),
        "moves": _moves(moves, rounds),
        "round_buttons": _round_buttons(rounds, len(actions)),
        "charts": _charts(positions, estimates, rounds),
        "style": f"{pieces_style()}\n{_read('page.css')}",
        "script": _read("page.js").replace("\nexport ", "\n"),  # an inline script exports nothing
        "data": _json_in_html(data),
    }
    contents = {name: escape(value) for name, value in fills.items()} | raw
    return re.sub(r"\{\{(\w+)\}\}", lambda match: contents[match[1]], _read("replay.html"))


def _read(name: str) -> str:
    """Return the text of a file in this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _json_in_html(data: dict[str, Any]) -> str:
    """Return JSON that cannot close its script element or open a comment in it."""
    words = json.dumps(data, separators=(",", ":"))
    return words.replace("</", "<\\/").replace("<!", "\\u003c!")


def _changes(parts: list[dict[str, str]]) -> dict[str, list[tuple[int, str]]]:
    """Return, for each part that changes, its states with their first plies."""
    changes: dict[str, list[tuple[int, str]]] = {}
    for name in parts[0]:
        states = [(ply, part[name]) for ply, part in enumerate(parts)]
        changed = [state for before, state in itertools.pairwise(states) if before[1] != state[1]]
        if changed:
            changes[name] = [states[0], *changed]
    return changes


def _estimate_data(
    board: Board, position: Position, played: int, estimate: Estimate
) -> dict[str, Any]:
    """Return an estimate for the page; best moves are words, share, and whether it was played."""
    chances, best_actions = estimate
    moves = merge_moves(board, position, best_actions)
    words_played = describe_move(board, position, played)
    return {
        "chances": [round(chance, 4) for chance in chances],
        "best_moves": [
            [words, round(share, 4), words == words_played]
            for words, _, share in moves[:MAX_BEST_MOVES]
            if share >= MIN_SHARE
        ],
    }


def _seat(seat: int) -> str:
    return f'<span class="seat seat-{seat}">{seat}</span>'


def _result(position: Position, names: Sequence[str], note: str) -> str:
    """Return the result table, best rank first, with a sentence on the end of the game."""
    rows = "".join(
        f"<tr><td>{position.ranking[seat] + 1}</td>"
        f'<td class="player">{_seat(seat)}{_name(names, seat)}</td>'
        f"<td>{position.points[seat]}</td><td>{position.deliveries[seat]}</td>"
        f"<td>{position.time_stones[seat]}</td></tr>"
        for seat in sorted(range(position.num_players), key=position.ranking.__getitem__)
    )
    ending = ENDING_WORDS.get(position.ending)
    caption = "Final score" if ending else "Standing"
    words = note or (f"The game is over: {ending}." if ending else "The game is not over.")
    return (
        f'<table id="result"><caption>{caption}</caption>'
        '<tr><th>rank</th><th class="player">player</th>'
        f"<th>points</th><th>deliv.</th><th>stones</th></tr>{rows}</table>"
        f'<p class="help">{escape(words)}</p>'
    )


def _name(names: Sequence[str], seat: int) -> str:
    """Return a player's name, with a tooltip since CSS truncates long ones."""
    if not names:
        return ""
    name = escape(names[seat])
    return f' <span title="{name}">{name}</span>'


def _moves(moves: list[tuple[int, str]], rounds: Mapping[int, int]) -> str:
    """Return the list of moves: a button each, with a heading before each round."""
    titles = {ply: f"<h3>Round {number}</h3>" for number, ply in rounds.items()}
    rows = [titles.get(0, "<h3>Setup</h3>") + '<button data-ply="0">start</button>']
    for ply, (seat, words) in enumerate(moves, start=1):
        text = f"{ply}. {_seat(seat)} {escape(words)}"
        rows.append(f'<button data-ply="{ply}">{text}</button>' + titles.get(ply, ""))
    return "".join(rows)


def _round_buttons(rounds: Mapping[int, int], plies: int) -> str:
    """Return buttons along the slider, one at the start of each round."""
    return "".join(
        f'<button data-ply="{ply}" style="--at:{ply / max(plies, 1):.4f}" title="Round {number}" '
        f'aria-label="Go to round {number}">{number}</button>'
        for number, ply in rounds.items()
    )


def _charts(
    positions: Sequence[Position], estimates: Sequence[Estimate], rounds: Mapping[int, int]
) -> str:
    """Return charts of points, and of the probabilities to win if they are estimated."""
    seats = range(positions[0].num_players)
    marks: dict[str, Any] = {"rounds": rounds, "ranking": positions[-1].ranking}
    points = [[position.points[seat] for position in positions] for seat in seats]
    low, high = min(0, *map(min, points)), max(map(max, points))
    chart = draw_chart("Points over time", points, low, max(high, 1), **marks)
    drawn = f"<figure><figcaption>Points</figcaption>{chart}</figure>"
    if any(chances for chances, _ in estimates):
        curves = [
            [chances[seat] if chances else None for chances, _ in estimates] + [None]
            for seat in seats
        ]
        chart = draw_chart("Chance to win over time", curves, 0, 1, **marks, percent=True)
        drawn += f"<figure><figcaption>Estimated chance to win</figcaption>{chart}</figure>"
    return drawn
