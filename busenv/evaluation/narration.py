"""Describe a recorded game in words, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from busenv import Board, Building, Game, Position, Record
from busenv.common.runs import RunError
from busenv.error_text import printable
from busenv.game.board_specs import recorded_board
from busenv.render.game_drawing import game_text
from busenv.render.phrases import ENDING_WORDS, STEP_WORDS, count, headline


@dataclass(frozen=True)
class RecordedGame:
    """A record with its board and, for a game of a rating, the agents and the ranking by seat.

    forfeit: reason why the game was cut off, "" if it was played to the end.
    """

    record: Record
    board: Board
    agents: tuple[str, ...] = ()
    ranking: tuple[int, ...] = ()
    forfeit: str = ""

    def end(self) -> Game:
        """Return the game after its last action (`busenv.Game.from_record`)."""
        return Game.from_record(self.record, self.board)

    def replay(self) -> Iterator[tuple[Game, int]]:
        """Yield the game before each decision, and the action taken there."""
        return Game.replay(self.record, self.board)


def load_recorded_game(source: str | Path, board: str | Path | Board | None = None) -> RecordedGame:
    """Load a game from a JSON record or from a games file of a rating.

    source: FILE.json, FILE.jsonl:NUMBER, or FILE.jsonl if that holds one game. board: as for
    `busenv.Game.from_record`. Raises RecordError or RunError for an invalid file or number, OSError
    for a missing file.
    """
    source = str(source)
    name, colon, number = source.rpartition(":")
    if Path(source).exists() or not (colon and number.isdecimal()):
        if Path(source).suffix != ".jsonl":
            record = Record.load(source)
            return RecordedGame(record, recorded_board(record.board, board))
        name, number = source, ""
    elif Path(name).suffix != ".jsonl":
        raise RunError(f"{source}: only a .jsonl file has numbered games; name {name} alone")
    game = _select(name, number)
    forfeit = ""
    if game["forfeit"]:
        forfeit = "Forfeited by seat {seat} at ply {ply}: {why}".format(**game["forfeit"])
    record = Record.from_dict(game["record"])
    played_on = recorded_board(record.board, board)
    return RecordedGame(record, played_on, tuple(game["agents"]), tuple(game["ranking"]), forfeit)


def _select(name: str, number: str) -> dict[str, Any]:
    """Return the game with a number, or without a number the only game of a games file."""
    from busenv.evaluation.game_log import read_games  # requires an extra

    games = {game["number"]: game for game in read_games(Path(name))}
    if not number and len(games) == 1:
        return next(iter(games.values()))
    if number and int(number) in games:
        return games[int(number)]
    problem = f"{name} has no game {number}" if number else f"{name} is not one game"
    content = "no games"
    if games:
        content = f"{count(len(games), 'game')}, numbered {min(games)} to {max(games)}"
        content += f"; name one, such as {name}:{min(games)}"
    raise RunError(f"{problem}; it holds {content}")


def narrate(recorded: RecordedGame) -> str:
    """Return the game in words: setup, every decision by round with its effects, and ranking."""
    record, end = recorded.record, recorded.end()
    lines = [
        f"Bus, {record.players} players, rules {record.rules.name}, "
        f"board {printable(end.board.name)}; "
        f"seat {record.first_player} starts"
    ]
    lines += [f"seat {seat}: {printable(agent)}" for seat, agent in enumerate(recorded.agents)]
    for number, plies in groupby(recorded.replay(), key=lambda ply: ply[0].round):
        lines += ["", f"Round {number}" if number else "Setup"]
        for step, within in groupby(plies, key=lambda ply: STEP_WORDS[ply[0].phase]):
            lines.append(f"  {step[0].upper()}{step[1:]}")
            for game, action in within:
                after = game.clone()
                after.step(action)
                lines.append(f"    seat {game.current_player}: {game.describe(action)}")
                events = _events(game.position(), after.position())
                lines += [f"    → {event}" for event in events]
        lines += ["", *(f"  | {line}" for line in game_text(after).splitlines())]
    lines += ["", printable(recorded.forfeit) or _ending(end.position())]
    ranking, points = recorded.ranking or end.ranking(), end.points
    seats = sorted(range(record.players), key=lambda seat: ranking[seat])
    places = ", ".join(f"seat {seat} ({count(points[seat], 'point')})" for seat in seats)
    lines.append(f"{'Ranking' if end.is_over or recorded.forfeit else 'Standing'}: {places}")
    return "\n".join(lines) + "\n"


def _events(before: Position, after: Position) -> Iterator[str]:
    """Describe the changes that the rules make after a decision."""
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
