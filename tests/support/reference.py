"""A slow, plainly written second engine for Bus, to compare the compiled core against.

It follows busenv/RULES.md; R1, R2 ... in the docstrings are the rules there.
The whole game is one generator, `_play`, that reads like the rules from top to bottom and stops
at a `yield` wherever a player decides (so a game cannot be copied; play its actions again).
"""

from collections import Counter
from itertools import combinations

LINE_EXPANSION, BUSES, PASSENGERS, BUILDINGS, CLOCK, VROOM, STARTING_PLAYER = ACTIONS = range(7)
ONE_SPACE = (BUSES, CLOCK, STARTING_PLAYER)
PASS = 7
TYPES = 3  # house, office, pub: also the order in which the clock goes round
MOST_NEW_PASSENGERS = 11  # there are ids for 0 to 11 of them to the first station


class ReferenceGame:
    def __init__(self, board: dict, rules: dict, num_players: int, first_player: int):
        """R1: the table before the first decision; where each block of action ids begins."""
        if num_players not in (3, 4, 5) or first_player not in range(num_players):
            raise ValueError("3 to 5 players, and one of them starts")
        self.rules = rules
        self.seats = list(range(num_players))
        self.first_player = self.starting_player = first_player
        nodes = board["intersections"]
        self.crossings = list(range(len(nodes)))
        self.streets = [tuple(street) for street in board["streets"]]
        self.site_crossing = [site["intersection"] for site in board["sites"]]
        self.site_zone = [site["zone"] for site in board["sites"]]
        self.stations = [c for c in self.crossings if nodes[c]["train_station"]]  # two
        self.build_ids = 8
        self.grow_ids = self.build_ids + TYPES * len(self.site_zone)
        self.passenger_ids = self.grow_ids + 2 * len(self.streets)
        self.advance_id = self.passenger_ids + MOST_NEW_PASSENGERS + 1
        self.stop_id = self.advance_id + 1
        self.pick_up_ids = self.stop_id + 1
        self.set_down_ids = self.pick_up_ids + len(self.crossings)
        self.action_markers = [rules["action_markers"]] * num_players  # in hand
        self.buses = [1] * num_players
        self.time_stones = [0] * num_players
        self.time_stones_left = rules["time_stones"][num_players]
        self.delivered = []  # the seat that made each delivery, in order, over the whole game
        self.supply = rules["passengers"] - rules["start_passengers"]
        if min(self.supply, rules["bus_limit"]) > MOST_NEW_PASSENGERS:
            raise ValueError("these rules need more passenger ids than there are")
        self.passengers = {c: 0 for c in self.crossings}
        roundabouts = [c for c in self.crossings if nodes[c]["roundabout"]]
        for i in range(rules["start_passengers"]):
            self.passengers[roundabouts[i % len(roundabouts)]] += 1
        self.buildings = {}  # site: type
        self.clock = 0
        # A trail is the drive from one end to the other: [crossing, street, crossing, ...].
        self.trail = [[] for _ in self.seats]
        self.moved_last = ["back" for _ in self.seats]  # or "front": that end of the trail
        self.markers = [set() for _ in self.seats]  # the streets with a marker of that seat
        # R9a: for each end the seats beside whose lines it came, if that matters where it is now.
        self.came_beside = [{"back": set(), "front": set()} for _ in self.seats]
        self.spaces = [[] for _ in ACTIONS]  # the seats on each action, A first
        self.passed = set()
        self.round, self.ending, self.events = 0, None, Counter()
        self._game = self._play()
        next(self._game)

    @property
    def is_over(self) -> bool:
        return self.phase == "OVER"

    def legal_actions(self) -> list[int]:
        return list(self._legal)

    def step(self, action: int) -> None:
        if action not in self._legal:
            raise ValueError(f"{action} is not legal for seat {self.current_player}, {self.phase}")
        self._game.send(int(action))

    def ranking(self) -> list[int]:
        """R20: the place of each seat."""
        order = sorted(self.seats, key=self._standing)
        return [order.index(seat) for seat in self.seats]

    def counts(self) -> dict:
        """The position as plain lists; spaces and passes stay as they lie when the game ends."""
        ends = [self._ends(seat) for seat in self.seats]
        return {
            "action_markers": list(self.action_markers),
            "line_markers": [self._line_markers_left(seat) for seat in self.seats],
            "buses": list(self.buses),
            "deliveries": [self.delivered.count(seat) for seat in self.seats],
            "time_stones": list(self.time_stones),
            "points": [self._points(seat) for seat in self.seats],
            "time_stones_left": self.time_stones_left,
            "supply": self.supply,
            "passengers": [self.passengers[c] for c in self.crossings],
            "buildings": [self.buildings.get(site, -1) for site in range(len(self.site_zone))],
            "streets": [sorted(self.markers[seat]) for seat in self.seats],
            "line_ends": [[crossing for _, crossing, _ in ends[seat]] for seat in self.seats],
            "arrivals": [[street for _, _, street in ends[seat]] for seat in self.seats],
            "shared_with": [
                [sorted(self.came_beside[seat][side]) for side, _, _ in ends[seat]]
                for seat in self.seats
            ],
            "clock": self.clock,
            "starting_player": self.starting_player,
            "spaces": [list(seats) for seats in self.spaces],
            "passed": sorted(self.passed),
        }

    def _play(self):
        """R6, R15, R18, R19: set up, then rounds until the game ends."""
        yield from self._setup()
        while self.ending is None:
            self.round += 1
            self.spaces = [[] for _ in ACTIONS]
            self.passed = set()
            yield from self._select_actions()
            for index, seat in reversed(list(enumerate(self.spaces[LINE_EXPANSION]))):
                yield from self._grow(seat, self._power(LINE_EXPANSION, index), "LINE_EXPANSION")
            for seat in self.spaces[BUSES]:
                self._buy_bus(seat)
            for index, seat in enumerate(self.spaces[PASSENGERS]):
                yield from self._bring_passengers(seat, self._power(PASSENGERS, index))
            for index, seat in reversed(list(enumerate(self.spaces[BUILDINGS]))):
                yield from self._erect(seat, self._power(BUILDINGS, index), "BUILDINGS")
            yield from self._resolve_clock()
            if self.time_stones_left == 0:
                self.ending = "time_stones"
                break
            for seat in self.spaces[VROOM]:
                yield from self._drive(seat)
            next_seat = (self.starting_player + 1) % len(self.seats)
            self.starting_player = (self.spaces[STARTING_PLAYER] or [next_seat])[0]
            self._note("start_taken" if self.spaces[STARTING_PLAYER] else "start_passed_on")
            if self._lowest_zone() is None:
                self.ending = "sites"
            elif sum(in_hand > 0 for in_hand in self.action_markers) <= 1:
                self.ending = "markers"
        self._note("ended_" + self.ending)
        self._note_ties()
        yield from self._decide(-1, "OVER", [])

    def _decide(self, seat, phase, legal):
        """Offer these ids to this seat, wait for step(), and return the one chosen."""
        self.current_player, self.phase, self._legal = seat, phase, sorted(legal)
        return (yield)

    def _note(self, event, happened=True, times=1):
        """Count a rare situation."""
        if happened:
            self.events[event] += times

    def _setup(self):
        """R2, R3: two buildings each, a first marker each, a second one in reverse order."""
        order = self.seats[self.first_player :] + self.seats[: self.first_player]
        for seat in order:
            yield from self._erect(seat, 2, "SETUP_BUILDINGS")
        for seat in order:
            legal = [self.grow_ids + 2 * street for street in range(len(self.streets))]
            action = yield from self._decide(seat, "SETUP_FIRST_LINE", legal)
            street = (action - self.grow_ids) // 2
            self.trail[seat] = [self.streets[street][0], street, self.streets[street][1]]
            self.markers[seat].add(street)
        for seat in reversed(order):
            yield from self._grow(seat, 1, "SETUP_SECOND_LINE")

    def _open_actions(self):
        """R5: one space on Buses, Clock and Starting Player, more on the others."""
        limits = [1 if action in ONE_SPACE else self.rules["spaces"] for action in ACTIONS]
        return [action for action in ACTIONS if len(self.spaces[action]) < limits[action]]

    def _may_still_place(self, seat):
        """R4: not passed this round, and a marker in hand."""
        return seat not in self.passed and self.action_markers[seat] > 0

    def _select_actions(self):
        """R4: one marker at a time; two must be placed, then one may pass for the round."""
        seat = self.starting_player
        while any(self._may_still_place(s) for s in self.seats):
            if not self._open_actions():
                self._note("spaces_all_full")
                break
            if self._may_still_place(seat):
                placed = sum(seats.count(seat) for seats in self.spaces)
                legal = self._open_actions() + ([PASS] if placed >= 2 else [])
                action = yield from self._decide(seat, "SELECT_ACTIONS", legal)
                if action == PASS:
                    self.passed.add(seat)
                else:
                    self.action_markers[seat] -= 1
                    self.spaces[action].append(seat)
                    full = action not in self._open_actions()
                    self._note("action_full", full and action not in ONE_SPACE)
            else:
                self._note("player_skipped_without_markers", seat not in self.passed)
            seat = (seat + 1) % len(self.seats)

    def _power(self, action, index):
        """R7: M less the index of the space; one more for Line Expansion with five players."""
        power = max(self.buses) - index
        bonus = 1 if action == LINE_EXPANSION and len(self.seats) == 5 else 0
        if self.rules["extra_street"] == "with_power" and power < 1:
            self._note("extra_street_needs_power", bonus and power == 0)
            bonus = 0
        power += bonus
        self._note("five_player_bonus", bonus and power > 0)
        self._note("power_zero", power <= 0)
        return power

    def _line_markers_left(self, seat):
        limit = self.rules["line_markers"][seat]
        return None if limit is None else limit - len(self.markers[seat])

    def _ends(self, seat):
        """The ends as (side, crossing, arrival street), the one that moved last first."""
        trail = self.trail[seat]
        if not trail:
            return []
        back, front = ("back", trail[-1], trail[-2]), ("front", trail[0], trail[1])
        return [back, front] if self.moved_last[seat] == "back" else [front, back]

    def _moving_ends(self, seat):
        """R8, R11: either end may grow; in a full loop only the one that moved last."""
        last, other = self._ends(seat)
        return [last] if last[1] == other[1] else [last, other]

    def _others_on(self, seat, street):
        return [o for o in self.seats if o != seat and street in self.markers[o]]

    def _is_empty(self, street):
        return all(street not in self.markers[seat] for seat in self.seats)

    def _streets_at(self, crossing):
        return [s for s in range(len(self.streets)) if crossing in self.streets[s]]

    def _has_empty_street(self, crossing):
        return any(self._is_empty(street) for street in self._streets_at(crossing))

    def _shared_by_exception(self, seat, street, crossing, sharing):
        """R9, R11: every other line on the street has an end here (that came by the street)."""
        for other in self._others_on(seat, street):
            arrivals = [arrival for _, end, arrival in self._ends(other) if end == crossing]
            if not arrivals or (sharing == "final_segment" and street not in arrivals):
                return False
        return True

    def _may_share_again(self, seat, side, street):
        """R9a: whether the exception holds for an end after the street by which it came here."""
        beside = self.came_beside[seat][side]
        if self.rules["sharing_again"] == "never":
            return not beside
        if self.rules["sharing_again"] == "other_line":
            return not beside.intersection(self._others_on(seat, street))
        return True

    def _streets_to_grow(self, seat, side, crossing):
        """R8 to R10: the streets that an end at this crossing may take."""
        streets = []
        for street in self._streets_at(crossing):
            if street in self.markers[seat]:
                continue
            if self._is_empty(street) or not self._has_empty_street(crossing):
                streets.append(street)  # empty, or no street here is
            elif self._shared_by_exception(seat, street, crossing, self.rules["line_sharing"]):
                if self._may_share_again(seat, side, street):
                    streets.append(street)
                    self._note("shared_again", self.came_beside[seat][side])
                else:
                    self._note("sharing_again_refused")
            elif self._shared_by_exception(seat, street, crossing, "line_end"):
                self._note("exception_refused_not_final")
        return streets

    def _growth_ids(self, seat):
        """R8 to R11: every street and direction by which the line may grow."""
        moving = self._moving_ends(seat)
        ends = [crossing for _, crossing, _ in moving]
        options = [self._streets_to_grow(seat, side, crossing) for side, crossing, _ in moving]
        if len(ends) == 2:
            self._note("other_end_only", bool(options[0]) != bool(options[1]))
            self._note("loop_choice", set(options[0]) & set(options[1]))
        return [
            self.grow_ids + 2 * street + self.streets[street].index(crossing)
            for crossing, streets in zip(ends, options, strict=True)
            for street in streets
        ]

    def _grow(self, seat, power, phase):
        """R8, R10: street by street; without a marker or a street the rest lapses."""
        for _ in range(power):
            if self._line_markers_left(seat) == 0:
                self._note("growth_lapsed_no_marker")
                return
            legal = self._growth_ids(seat)
            if not legal:
                self._note("growth_lapsed_no_street")
                return
            action = yield from self._decide(seat, phase, legal)
            street, direction = divmod(action - self.grow_ids, 2)
            start, goal = self.streets[street][direction], self.streets[street][1 - direction]
            self._note_growth(seat, street, start, goal)
            for side, crossing, _ in self._moving_ends(seat):
                if crossing == start:
                    self.moved_last[seat] = side
            if self.moved_last[seat] == "back":
                self.trail[seat] = self.trail[seat] + [street, goal]
            else:
                self.trail[seat] = [goal, street] + self.trail[seat]
            self._remember_sharing(seat, street, start)
            self.markers[seat].add(street)

    def _remember_sharing(self, seat, street, start):
        """R9a: what the end that moves remembers of the street that it is about to lay."""
        by_exception = self._has_empty_street(start)
        again = self.rules["sharing_again"]
        matters = again == "never" or (again == "other_line" and by_exception)
        others = set(self._others_on(seat, street)) if matters else set()
        self.came_beside[seat][self.moved_last[seat]] = others

    def _note_growth(self, seat, street, start, goal):
        """Count the rare situations in a line's growing from start to goal, before it does."""
        ends = [crossing for _, crossing, _ in self._ends(seat)]
        joins_the_ends = sorted(ends) == sorted([start, goal])
        self._note("moved_on_from_full_loop", ends[0] == ends[1])
        self._note("full_loop", joins_the_ends)
        self._note("self_crossing", goal in self.trail[seat][0::2] and not joins_the_ends)
        others = len(self._others_on(seat, street))
        empty = self._has_empty_street(start)
        self._note("shared_by_exception", others and empty)
        self._note("shared_by_exception_two_others", others >= 2 and empty)
        self._note("shared_no_empty", others and not empty)

    def _buy_bus(self, seat):
        """R12: one more bus, up to the limit."""
        if self.buses[seat] >= self.rules["bus_limit"]:
            self._note("bus_at_limit")
        else:
            self._note("max_buses_raised", self.buses[seat] == max(self.buses))
            self.buses[seat] += 1

    def _bring_passengers(self, seat, power):
        """R13: as many as power and supply allow, split over the two stations."""
        self._note("passengers_none", power > self.supply == 0)
        self._note("passengers_short", power > self.supply > 0)
        number = min(power, self.supply)
        if number > 0:
            legal = [self.passenger_ids + k for k in range(number + 1)]
            action = yield from self._decide(seat, "PASSENGERS", legal)
            k = action - self.passenger_ids
            self._note("passengers_split", 0 < k < number)
            self.passengers[self.stations[0]] += k
            self.passengers[self.stations[1]] += number - k
            self.supply -= number

    def _lowest_zone(self):
        """R14: the lowest zone with a free site; None when all sites are built on."""
        zones = [z for site, z in enumerate(self.site_zone) if site not in self.buildings]
        return min(zones, default=None)

    def _erect(self, seat, number, phase):
        """R2, R14: buildings of any type, each in the lowest zone with a free site."""
        for _ in range(number):
            zone = self._lowest_zone()
            if zone is None:
                self._note("buildings_short", phase == "BUILDINGS")
                return
            in_zone = [site for site, z in enumerate(self.site_zone) if z == zone]
            free = [site for site in in_zone if site not in self.buildings]
            legal = [self.build_ids + TYPES * site + t for site in free for t in range(TYPES)]
            action = yield from self._decide(seat, phase, legal)
            self.buildings[(action - self.build_ids) // TYPES] = (action - self.build_ids) % TYPES
            self._note("zone_opened", self._lowest_zone() not in (zone, None))

    def _resolve_clock(self):
        """R15: advance, or stop for a time stone. R16: then passengers step in."""
        self._note("clock_not_chosen", not self.spaces[CLOCK])
        action = self.advance_id
        for seat in self.spaces[CLOCK]:
            action = yield from self._decide(seat, "CLOCK", [self.advance_id, self.stop_id])
            self._note("clock_chosen_advance", action == self.advance_id)
        if action == self.advance_id:
            self.clock = (self.clock + 1) % TYPES
        else:
            self._note("clock_stopped")
            self.time_stones[seat] += 1
            self.time_stones_left -= 1
            self._note("last_stone", self.time_stones_left == 0)
        inside = sum(min(self.passengers[c], self._matching(c)) for c in self.crossings)
        self._note("stepped_in", self.time_stones_left > 0, times=inside)

    def _matching(self, crossing):
        """R16: how many buildings there are at the crossing of the type the clock is on."""
        here = [site for site in self.buildings if self.site_crossing[site] == crossing]
        return sum(self.buildings[site] == self.clock for site in here)

    def _drive(self, seat):
        """R16, R17: each bus carries a waiting passenger to a free building while both exist."""
        carried = 0
        on_line = set(self.trail[seat][0::2])
        for _ in range(self.buses[seat]):
            waiting = [c for c in on_line if self.passengers[c] > self._matching(c)]
            free = [c for c in on_line if self._matching(c) > self.passengers[c]]
            if not waiting or not free:
                break
            legal = [self.pick_up_ids + c for c in waiting]
            action = yield from self._decide(seat, "PICK_UP", legal)
            self.passengers[action - self.pick_up_ids] -= 1
            legal = [self.set_down_ids + c for c in free]
            action = yield from self._decide(seat, "SET_DOWN", legal)
            self.passengers[action - self.set_down_ids] += 1
            self.delivered.append(seat)
            carried += 1
        self._note("vroom_nothing", carried == 0)
        self._note("vroom_partial", 0 < carried < self.buses[seat])
        self._note("vroom_full", carried == self.buses[seat])

    def _points(self, seat):
        """R20: deliveries less time stones."""
        return self.delivered.count(seat) - self.time_stones[seat]

    def _standing(self, seat):
        """R20: points, stones, who got there first, nearness; the lowest tuple stands best."""
        # Level on points and stones is level on deliveries: who made the last of theirs first?
        last_delivery = max([i for i, s in enumerate(self.delivered) if s == seat], default=-1)
        nearness = (seat - self.first_player) % len(self.seats)
        return (-self._points(seat), -self.time_stones[seat], last_delivery, nearness)

    def _note_ties(self):
        """R20: count, for each pair of seats level on points, what decided between them."""
        reasons = ["", "tie_by_stones", "tie_by_first_delivery", "tie_by_seat"]
        for one, other in combinations([self._standing(seat) for seat in self.seats], 2):
            decided_by = next(i for i in range(4) if one[i] != other[i])
            self._note(reasons[decided_by], decided_by > 0)
