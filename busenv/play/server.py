"""All games of a server: created, restored, and looked up by the tokens of their links."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from busenv import Board, Game, Record
from busenv.common.cores import available_cores
from busenv.error_text import quote
from busenv.game.board_specs import recorded_board
from busenv.play import agent_pool, serializers
from busenv.play.agent_pool import AgentPool, AgentTaskError
from busenv.play.catalogue import PREPARED, Catalogue
from busenv.play.game_session import GameSession
from busenv.play.game_store import GameEvent, GameHeader, GameStore, Participant, new_participants
from busenv.play.messages import NewGame, RequestError, Seat
from busenv.play.session import Session
from busenv.render.phrases import headline

MAX_GAMES = 1000
MAX_WORKERS = 4


class Server:
    """The games of a server. `open` and `close` run in the event loop that serves them.

    addresses: under which other machines reach the server. key: the secret of the start page.
    errors: messages about saved games that could not be restored. num_prepared: number of
    agents of `PREPARED` that `prepare` has compiled; all of them until `prepare` starts.
    """

    def __init__(self, store: GameStore, catalogue: Catalogue, addresses: list[str]) -> None:
        self.store, self.catalogue, self.addresses = store, catalogue, addresses
        self.key = store.key()
        self.errors: list[str] = []
        self.num_prepared = len(PREPARED)
        self._sessions: dict[str, Session] = {}  # by id of the game
        self._by_token: dict[str, tuple[Session, Participant]] = {}

    async def open(self) -> None:
        """Start the worker processes and restore all saved games."""
        workers = min(available_cores(), MAX_WORKERS)
        self._movers, self._analysts = AgentPool(workers), AgentPool(max(1, workers // 2))
        for game_id in self.store.ids():
            try:
                self._add(self._restore(*self.store.read(game_id)))
            except (OSError, ValueError) as error:
                self.errors.append(f"{self.store.path(game_id)}: {error}")
            await asyncio.sleep(0)

    async def prepare(self) -> None:
        """Compile the rules and the agents in a worker process, unless that was done earlier."""
        self.num_prepared = 0
        for spec in PREPARED:
            with suppress(AgentTaskError):
                await self._movers.call(agent_pool.prepare, spec, "")
            self.num_prepared += 1

    async def close(self) -> None:
        """Stop all games and worker processes."""
        for session in self._sessions.values():
            session.close()
        await asyncio.gather(self._movers.close(), self._analysts.close())

    def find(self, token: str) -> tuple[Session, Participant]:
        """Return the session and participant of a link. RequestError: no_such_page."""
        if token not in self._by_token:
            raise RequestError("no_such_page", "There is no game at this link.", 404)
        return self._by_token[token]

    def check_key(self, key: str) -> None:
        """Check the secret of the start page. RequestError: no_such_page."""
        if not secrets.compare_digest(key.encode(), self.key.encode()):
            raise RequestError("no_such_page", "Open the link that the terminal shows.", 404)

    def create_game(self, new: NewGame) -> str:
        """Create a game and return the host's link.

        RequestError: bad_game, bad_record, too_many_games, and those of `Catalogue.check_agent`.
        OSError if it cannot be saved.
        """
        for k, seat in enumerate(new.seats):
            if seat.kind == "agent" and not seat.spec:
                raise RequestError("bad_game", f"Seat {k} has no agent: choose one.")
            if seat.kind != "agent" and seat.spec is not None:
                raise RequestError("bad_game", f"Seat {k} is a person and has no spec.")
        record, board = self._initial_record(new)
        for seat in new.seats:
            if seat.spec:
                self.catalogue.check_agent(seat.spec, board)
        return self._create(record, board, new.seats).link("host") or ""

    def delete_game(self, game_id: str) -> None:
        """Delete a game, and disconnect its pages. RequestError: no_such_page."""
        session = self._sessions.get(game_id)
        if session is None:
            raise RequestError("no_such_page", "There is no such game.", 404)
        self.store.delete(game_id)
        del self._sessions[game_id]
        self._by_token = {k: one for k, one in self._by_token.items() if one[0] is not session}
        session.disconnect_pages()
        session.stop_agents()

    def rematch(self, session: Session) -> None:
        """Create a game with the same seats and rules, and send its links to all pages.

        RequestError: too_many_games. OSError if it cannot be saved.
        """
        game = session.game
        start, board = game.tree.start, game.tree.board
        if start.position is None:
            seed = secrets.randbits(63)
            start = Game(start.players, start.rules, board, seed=seed).record()
        new = self._create(start, board, game.seats)
        for connection in session.connections:
            link = new.link(connection.participant.role, connection.participant.seats)
            connection.send({"type": "rematch", "link": link})

    def host_info(self, session: Session) -> dict[str, Any]:
        """The links and addresses that only the host receives."""
        game = session.game
        links = {
            "start": f"/start/{self.key}",
            "spectator": game.link("spectator"),
            "seats": [game.link("friend", [seat]) for seat in range(len(game.seats))],
        }
        return {"links": links, "addresses": self.addresses}

    def start_options(self) -> dict[str, Any]:
        """The options and the saved games that the start page shows."""
        games = [session.game for session in self._sessions.values()]
        games.sort(key=lambda game: game.header.created, reverse=True)
        summaries = [_summary(game) for game in games]
        return {**self.catalogue.to_dict(), "games": summaries}

    def _initial_record(self, new: NewGame) -> tuple[Record, Board]:
        """The record that a new game begins with, and its board."""
        players = len(new.seats)
        if new.record is not None:
            record, board = self._parse_record(new.record)
            if record.players != players:
                raise RequestError(
                    "bad_game", f"{players} seats; the record has {record.players} players."
                )
            return record, board
        rules = _lookup("rules", new.rules, self.catalogue.rules)
        board = _lookup("board", new.board, self.catalogue.boards)
        return Game(players, rules, board, new.first_player, new.seed).record(), board

    def _board_of(self, record: Record) -> Board:
        """The board of a record. ValueError if neither the catalogue nor the generator has it."""
        fingerprint, boards = record.board["fingerprint"], self.catalogue.boards.values()
        board = next((board for board in boards if board.fingerprint == fingerprint), None)
        if board is None and "generator" in record.board:
            return recorded_board(record.board)
        if board is None:
            name = quote(record.board["name"][:80])
            raise ValueError(f"there is no board {name} here; name its file by --board")
        return board

    def _parse_record(self, text: str) -> tuple[Record, Board]:
        """Parse and check a record; return it with its board. RequestError: bad_record."""
        try:
            record = Record.from_json(text)
            board = self._board_of(record)
            return Game.from_record(record, board).record(), board
        except ValueError as error:
            raise RequestError("bad_record", str(error)) from None

    def _create(self, record: Record, board: Board, seats: list[Seat]) -> GameSession:
        """Save and start a new game.

        RequestError: too_many_games. OSError if it cannot be saved.
        """
        if len(self._sessions) >= MAX_GAMES:
            text = f"This server has {MAX_GAMES} games, its maximum; delete some on the start page."
            raise RequestError("too_many_games", text, 429)
        header = GameHeader(
            id=secrets.token_hex(8),
            created=time.strftime("%Y-%m-%d %H:%M:%S"),
            record=dataclasses.replace(record, actions=(), result=None).to_dict(),
            seats=seats,
            participants=new_participants(seats),
        )
        events: list[dict[str, Any]] = []
        session = self._make_session(header, board, events.append)
        for action in record.actions:
            session.game.advance(action)
        self.store.create(header, events)
        session.game.save = partial(self.store.append, header.id)
        self._add(session)
        return session.game

    def _restore(self, header: GameHeader, events: list[GameEvent]) -> Session:
        """A session with the events of a saved game. ValueError if they do not fit it."""
        board = self._board_of(Record.from_dict(header.record))
        session = self._make_session(header, board, partial(self.store.append, header.id))
        session.game.restore(events)
        return session

    def _make_session(
        self, header: GameHeader, board: Board, save: Callable[[dict[str, Any]], None]
    ) -> Session:
        return Session(header, board, save, self.catalogue, self._movers, self._analysts)

    def _add(self, session: Session) -> None:
        """Make a session reachable, and start its agents."""
        self._sessions[session.game.header.id] = session
        for participant in session.game.header.participants:
            self._by_token[participant.token] = session, participant
        session.restart_agents()


def replay_arguments(session: Session) -> dict[str, Any]:
    """The arguments of `busenv.render.replay.replay_page` for a session's game so far."""
    game, tree = session.game, session.game.tree
    path = tree.path(game.node)
    positions = [tree.position_game(node).position() for node in path]
    actions = [tree.nodes[node].action for node in path[1:]]
    return {
        "board": tree.board,
        "rules": tree.start.rules,
        "positions": positions,
        "actions": actions,
        "names": [serializers.seat_name(seat, k) for k, seat in enumerate(game.seats)],
    }


def _lookup(kind: str, name: str | None, entries: dict[str, Any]) -> Any:
    """The entry of a name, by default the first. RequestError: bad_game."""
    if name is None:
        return next(iter(entries.values()))
    if name not in entries:
        allowed = ", ".join(entries)
        raise RequestError("bad_game", f"{kind} is {quote(name)}; allowed: {allowed}")
    return entries[name]


def _summary(game: GameSession) -> dict[str, Any]:
    """A game in the list of the start page."""
    return {
        "id": game.header.id,
        "link": game.link("host"),
        "created": game.header.created,
        "seats": [serializers.seat_name(seat, k) for k, seat in enumerate(game.seats)],
        "headline": headline(game.tree.position_game(game.node).position()),
        "ply": game.current.ply,
    }
