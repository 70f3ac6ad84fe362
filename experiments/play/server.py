"""All games of a server: begun, kept, found by the secrets of their links."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import secrets
import time
from functools import partial
from typing import Any

from busenv import Board, Game, Record
from busenv.error_text import quote
from busenv.errors import RecordError
from busenv.experiments.play import serializers
from busenv.experiments.play.agent_pool import ThinkError, Thinkers
from busenv.experiments.play.catalogue import SIMPLE, Offers, short_spec
from busenv.experiments.play.game_session import Place
from busenv.experiments.play.game_store import Header, Store, new_tokens
from busenv.experiments.play.game_tree import GameTree
from busenv.experiments.play.messages import Chair, NewGame, Refusal
from busenv.experiments.play.session import Room
from busenv.render.phrases import headline

MOST_GAMES = 1000
MOST_LISTED = 100
MOST_THINKERS = 4


class Hall:
    """Rooms by the tokens of their links. To be opened in the event loop that it is used in.

    faults: in words, games of the folder that could not be read.
    """

    def __init__(self, store: Store, offers: Offers, addresses: list[str]) -> None:
        self.store, self.offers, self.addresses = store, offers, addresses
        self.key = store.key()
        self.faults: list[str] = []
        self._rooms: dict[str, Room] = {}
        self._doors: dict[str, tuple[Room, Place]] = {}

    async def open(self) -> None:
        """Begin the processes that think, and go on with every game that is kept."""
        cores = os.cpu_count() or 1
        self._movers = Thinkers(min(cores, MOST_THINKERS))
        self._analysts = Thinkers(max(1, min(cores, MOST_THINKERS) // 2))
        for kept in self.store.games():
            if kept.header is None:
                self.faults.append(kept.fault)
                continue
            try:
                room = self._room(kept.header, self._board_of(kept.header))
                room.table.replay(kept.lines)
            except ValueError as error:
                self.faults.append(f"{kept.path}: {error}")
                continue
            self._enter(room)
            await asyncio.sleep(0)

    def _board_of(self, header: Header) -> Board:
        """The board of a game that was kept; ValueError when it is not here."""
        wanted = Record.from_dict(header.record).board
        board = self.offers.board_of(wanted["fingerprint"])
        if board is None:
            name = quote(wanted["name"])
            raise ValueError(f"it is played on board {name}; name that board's file by --board")
        return board

    async def close(self) -> None:
        """End everything; what was decided is kept."""
        for room in self._rooms.values():
            room.close()
        await asyncio.gather(self._movers.close(), self._analysts.close())

    def find(self, token: str) -> tuple[Room, Place]:
        """The room that a token leads into, and as whom; Refusal no_such_page."""
        if token not in self._doors:
            raise Refusal("no_such_page", "There is no game behind this link.", 404)
        return self._doors[token]

    def check_key(self, key: str) -> None:
        """Refusal no_such_page unless it is the secret of the start page."""
        if not secrets.compare_digest(key.encode(), self.key.encode()):
            raise Refusal("no_such_page", "Open the link that the terminal shows.", 404)

    async def begin(self, new: NewGame) -> str:
        """Begin a game; the link of who began it. Refusals: bad_game, bad_record, too_many_games,
        and as `Offers.check_agent`."""
        if len(self._rooms) >= MOST_GAMES:
            raise Refusal("too_many_games", f"This server keeps {MOST_GAMES} games at most.", 429)
        if any((chair.kind == "agent") != (chair.spec is not None) for chair in new.seats):
            raise Refusal("bad_game", "An agent's seat needs a spec, and no other has one.")
        for spec in {chair.spec for chair in new.seats if chair.spec is not None}:
            await self._check_agent(spec)
        record, board, ply = self._record(new)
        return self._begin(record, board, ply, new.seats)

    def again(self, room: Room) -> None:
        """Begin a game with the chairs and the set-up of another, and tell everybody there."""
        table = room.table
        record = dataclasses.replace(
            table.tree.begin, seed=0 if table.tree.begin.position else secrets.randbits(63)
        )
        if record.position is None:
            board = table.tree.board
            record = Game(record.players, record.rules, board, seed=record.seed).record()
        link = self._begin(record, table.tree.board, 0, table.seats)
        begun, _ = self.find(link.rpartition("/")[2])
        for connection in room.connections:
            mine = next(
                token
                for token, place in begun.table.places.items()
                if (place.role, place.seats) == (connection.place.role, connection.place.seats)
            )
            connection.send({"type": "moved", "link": f"/play/{mine}"})

    def for_host(self, room: Room) -> dict[str, Any]:
        """What the host alone is told: where everybody's pages are."""
        tokens = room.table.header.tokens
        seats = [None if token is None else f"/play/{token}" for token in tokens.seats]
        links = {"start": f"/start/{self.key}", "watch": f"/play/{tokens.watch}", "seats": seats}
        return {"links": links, "addresses": self.addresses}

    def choices(self) -> dict[str, Any]:
        """All that the start page shows: what can be chosen, and the games that are kept."""
        rooms = sorted(self._rooms.values(), key=lambda room: room.table.header.begun)[::-1]
        games = [_summary(room) for room in rooms[:MOST_LISTED]]
        return {**serializers.DRAWING, **self.offers.choices(), "games": games}

    def preview(self, text: str, ply: int | None) -> dict[str, Any]:
        """A record's position after some plies, by default all, as the start page shows it."""
        tree, nodes = self._tree(_read_record(text))
        _check_ply(ply, len(nodes) - 1)
        node = nodes[-1 if ply is None else ply]
        return {
            "players": tree.begin.players,
            "plies": len(nodes) - 1,
            "ply": tree.nodes[node].ply,
            "over": tree.nodes[node].turn < 0,
            "rules": tree.begin.rules.name,
            "view": serializers.view(tree, node, None),
        }

    async def _check_agent(self, spec: str) -> None:
        self.offers.check_agent(spec)
        if spec in SIMPLE or spec.startswith("uct"):  # of which nothing has to be read
            return
        try:
            await self._movers.check(spec)
        except ThinkError as error:
            raise Refusal("no_such_agent", str(error)) from None

    def _record(self, new: NewGame) -> tuple[Record, Board, int]:
        """The record that a game begins with, its board, and the ply at which it is to stand."""
        players = len(new.seats)
        if new.record is not None:
            record = _read_record(new.record)
            tree, _ = self._tree(record)
            if record.players != players:
                raise Refusal("bad_game", f"{players} seats; the record is of {record.players}.")
            _check_ply(new.ply, len(record.actions))
            return record, tree.board, len(record.actions) if new.ply is None else new.ply
        if new.first_player is not None and new.first_player >= players:
            raise Refusal("bad_game", f"There is no seat {new.first_player} to start.")
        rules = self._named("rules", new.rules, self.offers.rules)
        board = self._named("board", new.board, self.offers.boards)
        seed = None if new.seed is None else int(new.seed)
        return Game(players, rules, board, new.first_player, seed).record(), board, 0

    def _named(self, what: str, name: str | None, offered: dict[str, Any]) -> Any:
        if name is None:
            return next(iter(offered.values()))
        if name not in offered:
            raise Refusal("bad_game", f"There is no {what} {name!r}; offered: {', '.join(offered)}")
        return offered[name]

    def _tree(self, record: Record) -> tuple[GameTree, list[int]]:
        """A record as a tree, and the nodes of its line; Refusal bad_record when it is no game."""
        board = self.offers.board_of(record.board["fingerprint"])
        if board is None:
            name = record.board["name"][:80]
            raise Refusal("bad_record", f"It was played on board {name!r}, which is not here.")
        try:
            game = Game.from_record(record, board)
            tree = GameTree(_begin_of(record), board)
        except ValueError as error:
            raise Refusal("bad_record", str(error)) from None
        nodes = [0]
        for action in game.history:
            nodes.append(tree.add(nodes[-1], action))
        return tree, nodes

    def _begin(self, record: Record, board: Board, ply: int, chairs: list[Chair]) -> str:
        """Keep and open a new game; the host's link."""
        header = Header(
            id=secrets.token_hex(8),
            begun=time.strftime("%Y-%m-%d %H:%M:%S"),
            record=_begin_of(record).to_dict(),
            seats=chairs,
            tokens=new_tokens(chairs),
        )
        room = self._room(header, board)
        self.store.begin(header)
        host = room.table.places[header.tokens.host]
        for action in record.actions:
            room.table.advance(action)
        if ply < len(record.actions):
            room.table.go(host, room.table.node, room.table.tree.main_line()[ply])
            room.table.pause(host, on=False)
        self._enter(room)
        return f"/play/{header.tokens.host}"

    def _room(self, header: Header, board: Board) -> Room:
        keep = partial(self.store.append, header.id)
        return Room(header, board, keep, self.offers, self._movers, self._analysts)

    def _enter(self, room: Room) -> None:
        """Let a room be found, and its agents begin."""
        self._rooms[room.table.header.id] = room
        for token, place in room.table.places.items():
            self._doors[token] = room, place
        room.drive()


def replay_of(room: Room) -> tuple[Any, ...]:
    """What `busenv.render.replay.replay_page` needs for the line on which a game stands."""
    table, tree = room.table, room.table.tree
    path = tree.path(table.node)
    positions = [tree.position_game(node).position() for node in path]
    actions = [tree.nodes[node].action for node in path[1:]]
    names = [
        chair.name or (short_spec(chair.spec) if chair.spec else f"player {seat}")
        for seat, chair in enumerate(table.seats)
    ]
    return tree.board, tree.begin.rules, positions, actions, (), "", names


def _begin_of(record: Record) -> Record:
    """A record before its first action."""
    return dataclasses.replace(record, actions=(), result=None)


def _read_record(text: str) -> Record:
    try:
        return Record.from_json(text)
    except RecordError as error:
        raise Refusal("bad_record", str(error)) from None


def _check_ply(ply: int | None, plies: int) -> None:
    if ply is not None and ply > plies:
        raise Refusal("bad_game", f"ply is {ply}; allowed: 0 to {plies}")


def _summary(room: Room) -> dict[str, Any]:
    """A game in the list of the start page."""
    table = room.table
    position = table.tree.position_game(table.node).position()
    return {
        "link": f"/play/{table.header.tokens.host}",
        "begun": table.header.begun,
        "seats": [short_spec(seat.spec) if seat.spec else seat.kind for seat in table.seats],
        "headline": headline(position),
        "over": table.now.turn < 0,
        "ply": table.now.ply,
    }
