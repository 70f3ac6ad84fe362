"""A recorded game in words, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from busenv.experiments.ratings.schedule import RunError
from busenv.experiments.ratings.store import parse_games

from busenv import Board, Building, Game, Phase, Position, Record
from busenv.board import as_board
from busenv.render.text import draw_text

STEPS = {
    Phase.SETUP_BUILDINGS: "First buildings",
    Phase.SETUP_FIRST_LINE: "First lines",
    Phase.SETUP_SECOND_LINE: "First lines, in reverse",
    Phase.SELECT_ACTIONS: "Selection",
    Phase.LINE_EXPANSION: "Line Expansion",
    Phase.PASSENGERS: "Passengers",
    Phase.BUILDINGS: "Buildings",
    Phase.CLOCK: "Clock",
    Phase.PICK_UP: "Vrrooomm!",
    Phase.SET_DOWN: "Vrrooomm!",
}


@dataclass(frozen=True)
class Played:
    """A recorded game; if it is from a rating, with the agents and their ranking by seat.

    forfeit: why the game was cut off, if it was.
    """

    record: Record
    board: Board
    agents: tuple[str, ...] = ()
    ranking: tuple[int, ...] = ()
    forfeit: str = ""


@dataclass(frozen=True)
class Ply:
    """A decision in words, with where in the game it was taken."""

    round: int
    step: str
    words: list[str]
    after: str  # the table after it


def load_played(source: str, board: str = "city") -> Played:
    """A game from a JSON record file, or from a line of a games file as FILE:NUMBER.

    board: name or file of the board that it was played on.
    Raises RecordError or RunError when it cannot be had, OSError when there is no such file.
    """
    name, colon, number = source.rpartition(":")
    if Path(source).exists() or not (colon and number.isdigit()):
        return Played(Record.from_json(Path(source).read_bytes()), as_board(board))
    games = {game["number"]: game for game in parse_games(Path(name).read_bytes())[0]}
    if int(number) not in games:
        held = f"{len(games)}, from {min(games)} to {max(games)}" if games else "none"
        raise RunError(f"{name} has no game {number}; games it has: {held}")
    game, forfeit = games[int(number)], ""
    if game["forfeit"]:
        forfeit = "Forfeited by seat {seat} at ply {ply}: {why}".format(**game["forfeit"])
    record = Record.from_dict(game["record"])
    return Played(record, as_board(board), tuple(game["agents"]), tuple(game["ranking"]), forfeit)


def tell(played: Played) -> str:
    """The game in words: setup, rounds with every decision and what followed, table, ranking."""
    record = played.record
    game = Game.from_record(record, played.board)
    lines = [
        f"Bus, {record.players} players, rules {record.rules.name}, board {game.board.name}; "
        f"seat {record.first_player} starts"
    ]
    lines += [f"seat {seat}: {agent}" for seat, agent in enumerate(played.agents)]
    for number, plies in groupby(_plies(played), key=lambda ply: ply.round):
        lines += ["", f"Round {number}" if number else "Setup"]
        for step, within in groupby(plies, key=lambda ply: ply.step):
            lines.append(f"  {step}")
            for last in within:
                lines += [f"    {words}" for words in last.words]
        lines += ["", *(f"  | {line}" for line in last.after.splitlines())]
    lines += ["", played.forfeit or _ending(game)]
    ranking, points = played.ranking or game.ranking(), game.points
    seats = sorted(range(record.players), key=lambda seat: ranking[seat])
    places = ", ".join(f"seat {seat} ({points[seat]} points)" for seat in seats)
    lines.append(f"{'Ranking' if game.is_over or played.forfeit else 'Standing'}: {places}")
    return "\n".join(lines) + "\n"


def _plies(played: Played) -> Iterator[Ply]:
    """Play the record again, decision by decision."""
    record = played.record
    game = Game(record.players, record.rules, played.board, record.first_player, record.seed)
    for action in record.actions:
        number, step, before = game.round, STEPS[game.phase], game.position()
        words = [f"seat {game.current_player}: {game.describe(action)}"]
        game.step(action)
        words += [f"→ {event}" for event in _events(before, game.position())]
        yield Ply(number, step, words, draw_text(game))


def _events(before: Position, after: Position) -> Iterator[str]:
    """What the rules did by themselves after a decision."""
    for seat, (old, new) in enumerate(zip(before.buses, after.buses, strict=True)):
        if new > old:
            yield f"seat {seat} has {new} buses"
    if after.clock != before.clock:
        yield f"it is time for the {Building(after.clock).name.lower()}"
    if after.starting_player != before.starting_player:
        yield f"seat {after.starting_player} starts the next round"


def _ending(game: Game) -> str:
    if not game.is_over:
        return f"Not over: seat {game.current_player} to decide {game.phase.name}"
    why = {
        "time_stones": "the last time stone is taken",
        "sites": "all sites are built on",
        "markers": "at most one player has markers left",
    }
    return f"Over: {why[game.ending]}"
