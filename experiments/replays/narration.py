"""A recorded game in words, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from busenv import Board, Building, Game, Position, Record, RecordError
from busenv.error_text import printable
from busenv.experiments.common.runs import RunError
from busenv.experiments.ratings.game_log import check_game
from busenv.experiments.ratings.rating_store import parse_games
from busenv.game.board import as_board
from busenv.io import read_bounded
from busenv.render.phrases import ENDING_WORDS, STEP_WORDS, count, headline


@dataclass(frozen=True)
class Played:
    """A recorded game on its board; if it is from a rating, with agents and ranking by seat.

    forfeit: why the game was cut off, if it was.
    """

    record: Record
    board: Board
    agents: tuple[str, ...] = ()
    ranking: tuple[int, ...] = ()
    forfeit: str = ""

    def end(self) -> Game:
        """The game after its last action. RecordError as `busenv.Game.from_record`."""
        return Game.from_record(self.record, self.board)

    def replay(self) -> Iterator[tuple[Game, int]]:
        """The live game before each decision, with the action about to be taken."""
        return self.record.replay(self.board)


@dataclass(frozen=True)
class Ply:
    """A decision in words, with where in the game it was taken."""

    round: int
    step: str
    words: list[str]
    after: str  # the position after it


def load_played(source: str | Path, board: str | Path | Board = "city") -> Played:
    """A game from a JSON record file, or from a games file of a rating.

    source: FILE.json, FILE.jsonl:NUMBER, or FILE.jsonl where that holds one game. board: name or
    file of the board that it was played on.
    Raises RecordError or RunError when it cannot be had, OSError when there is no such file.
    """
    source, board = str(source), as_board(board)
    name, colon, number = source.rpartition(":")
    if Path(source).exists() or not (colon and number.isdigit()):
        if Path(source).suffix != ".jsonl":
            return Played(Record.from_json(read_bounded(source, RecordError)), board)
        name, number = source, ""
    game = _choose(name, number)
    try:
        check_here(game, board)
    except ValueError as error:
        raise RunError(f"{name}, game {game['number']}, is damaged: {error}") from error
    forfeit = ""
    if game["forfeit"]:
        forfeit = "Forfeited by seat {seat} at ply {ply}: {why}".format(**game["forfeit"])
    record = Record.from_dict(game["record"])
    return Played(record, board, tuple(game["agents"]), tuple(game["ranking"]), forfeit)


def check_here(game: dict[str, Any], board: Board) -> None:
    """ValueError when a line of a games file is not true by the rules; one of a game of another
    board is not checked, since nobody can play it here (`Played.end`)."""
    if game["record"]["board"]["fingerprint"] == board.fingerprint:
        check_game(game, board)


def _choose(name: str, number: str) -> dict[str, Any]:
    """The game of a games file that has a number; without one, the only game that it holds."""
    with open(name, "rb") as file:
        games = {game["number"]: game for game in parse_games(file, name)[0]}
    if not number and len(games) == 1:
        return next(iter(games.values()))
    if number and int(number) in games:
        return games[int(number)]
    wrong = f"{name} has no game {number}" if number else f"{name} is not one game"
    held = "no games"
    if games:
        held = f"{count(len(games), 'game')}, numbered {min(games)} to {max(games)}"
        held += f"; name one, such as {name}:{min(games)}"
    raise RunError(f"{wrong}; it holds {held}")


def tell(played: Played) -> str:
    """The game in words: setup, rounds with every decision and what followed, board, ranking."""
    record, game = played.record, played.end()
    lines = [
        f"Bus, {record.players} players, rules {record.rules.name}, "
        f"board {printable(game.board.name)}; "
        f"seat {record.first_player} starts"
    ]
    lines += [f"seat {seat}: {printable(agent)}" for seat, agent in enumerate(played.agents)]
    for number, plies in groupby(_plies(played), key=lambda ply: ply.round):
        lines += ["", f"Round {number}" if number else "Setup"]
        for step, within in groupby(plies, key=lambda ply: ply.step):
            lines.append(f"  {step[0].upper()}{step[1:]}")
            for last in within:
                lines += [f"    {words}" for words in last.words]
        lines += ["", *(f"  | {line}" for line in last.after.splitlines())]
    lines += ["", printable(played.forfeit) or _ending(game.position())]
    ranking, points = played.ranking or game.ranking(), game.points
    seats = sorted(range(record.players), key=lambda seat: ranking[seat])
    places = ", ".join(f"seat {seat} ({count(points[seat], 'point')})" for seat in seats)
    lines.append(f"{'Ranking' if game.is_over or played.forfeit else 'Standing'}: {places}")
    return "\n".join(lines) + "\n"


def _plies(played: Played) -> Iterator[Ply]:
    """The game, decision by decision."""
    for game, action in played.replay():
        before, after = game.position(), game.clone()
        after.step(action)
        words = [f"seat {game.current_player}: {game.describe(action)}"]
        words += [f"→ {event}" for event in _events(before, after.position())]
        yield Ply(game.round, STEP_WORDS[game.phase], words, after.text())


def _events(before: Position, after: Position) -> Iterator[str]:
    """What the rules did by themselves after a decision."""
    for seat, (old, new) in enumerate(zip(before.buses, after.buses, strict=True)):
        if new > old:
            yield f"seat {seat} has {count(new, 'bus')}"
    if after.clock != before.clock:
        yield f"it is time for the {Building(after.clock).name.lower()}"
    if after.starting_player != before.starting_player:
        yield f"seat {after.starting_player} starts the next round"


def _ending(position: Position) -> str:
    if position.ending in ENDING_WORDS:
        return f"Over: {ENDING_WORDS[position.ending]}"
    return f"Not over: {headline(position)}"
