"""A test table: set up a game, play rounds marker by marker, read the legal lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from busenv import Board, Game, Phase, Rules, decode, encode, load_board, parse_action
from busenv.core.state import BoardAction, Building

LINES, BUSES, PASSENGERS, BUILDINGS, CLOCK, VROOM, START = BoardAction
HOUSE, OFFICE, PUB = Building
FEW_LINES = Rules(line_markers=(2,) * 5)

# Where lines stand when a test does not care: two streets each, far apart on the city.
CITY_LINES = ([0, 1, 2], [25, 29, 30], [3, 4, 11], [34, 35, 23], [5, 12, 18])


class Table:
    """A game and what is needed to bring it to a position."""

    def __init__(
        self,
        players: int = 3,
        rules: str | Rules = "capstone-2024",
        board: str | Board = "city",
        first: int = 0,
    ) -> None:
        self.board = load_board(board) if isinstance(board, str) else board
        self.game = Game(players, rules, self.board, first_player=first, seed=0)

    @property
    def turn(self) -> tuple[int, Phase]:
        return self.game.current_player, self.game.phase

    def setup(
        self,
        lines: Iterable[list[int]] = CITY_LINES,
        buildings: Iterable[tuple[int, Building]] | None = None,
    ) -> Table:
        """Play the setup: lines as paths of three intersections by seat; buildings in order."""
        self.first_buildings(buildings)
        lines = list(lines)
        for step in range(2):
            for _ in range(self.game.num_players):
                path = lines[self.game.current_player]
                self.grow(path[step], path[step + 1], first=step == 0)
        return self

    def first_buildings(self, buildings: Iterable[tuple[int, Building]] | None = None) -> Table:
        """Play the first buildings; offices on the lowest sites when none are given."""
        placed = list(buildings or [(site, OFFICE) for site in range(2 * self.game.num_players)])
        for site, kind in placed:
            self.game.step(encode(self.board, "build", site, kind))
        return self

    def grow(self, origin: int, goal: int, first: bool = False) -> None:
        """Grow the mover's line; a first marker (R3) has no direction."""
        action = parse_action(self.board, f"grow line {origin}->{goal}")
        self.game.step(action - (action - self.street_id(0)) % 2 if first else action)

    def street_id(self, street: int) -> int:
        return 8 + 3 * len(self.board.sites) + 2 * street

    def choose(self, *markers: list[BoardAction]) -> Table:
        """Play the selection: each seat places its markers in order, then passes."""
        hands = [list(hand) for hand in markers]
        while self.game.phase == Phase.SELECT_ACTIONS:
            hand = hands[self.game.current_player]
            self.game.step(int(hand.pop(0)) if hand else 7)
            if not any(hands) and 7 not in self.game.legal_actions():
                break
        assert not any(hands), f"markers left over: {hands}"
        return self

    def goals(self) -> set[tuple[int, int]]:
        """Line decisions: the (origin, goal) pairs on offer."""
        ends = [decode(self.board, action) for action in self.game.legal_actions()]
        assert all(kind == "grow" for kind, _, _ in ends)
        return {(self.board.streets[s][d], self.board.streets[s][1 - d]) for _, s, d in ends}

    def subjects(self) -> set[int]:
        """Sites, intersections or splits on offer."""
        return {decode(self.board, action).subject for action in self.game.legal_actions()}

    def take(self, subject: int) -> None:
        """Take the offered action about a subject (the first, where there are several)."""
        for action in self.game.legal_actions():
            if decode(self.board, action).subject == subject:
                self.game.step(action)
                return
        raise AssertionError(f"{subject} is not on offer: {self.subjects()}")

    def play_on(self, until: Callable[[Game], bool]) -> Table:
        """Take the lowest legal action (so: time advances) until a condition holds."""
        while not until(self.game):
            assert not self.game.is_over, "the game ended before the condition held"
            self.game.step(self.game.legal_actions()[0])
        return self

    def finish_round(self) -> Table:
        """Play the rest of the round with the lowest legal actions."""
        return self.play_on(lambda game: game.is_over or game.phase == Phase.SELECT_ACTIONS)

    def idle_round(self, *extra: list[BoardAction]) -> Table:
        """A round in which each seat takes what is named and fills up with what does least."""
        hands = [*extra, *[[]] * (self.game.num_players - len(extra))]
        filled = [
            hand + [LINES if seat < 3 else VROOM] * (2 - len(hand))
            for seat, hand in enumerate(hands)
        ]
        return self.choose(*filled).finish_round()
