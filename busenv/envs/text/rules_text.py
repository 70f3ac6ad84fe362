"""The rules as a short text for prompts; RULES.md in this package is the complete reference."""

from __future__ import annotations

from busenv.game.rules import Rules

RULES = """\
Seats 0 to {last} play clockwise. Each owns one line of streets and some buses, and earns a point
per passenger delivered and loses one per time stone taken. The most points win. Ties: more time
stones, then the earlier last delivery, then the seat that comes first clockwise from the first
starting player.

Board: streets join intersections. Intersections have building sites, each in a zone. Passengers
stand at intersections; {supply}. A player starts with 1 bus, {action_markers} action markers and
{line_markers}. Markers are spent for good. The clock points to house, office or pub, and holds
{stones} time stones at the start.

Setup: clockwise from the starting player each erects two buildings, on free sites of the lowest
zone that has one. Then clockwise each puts one line marker on any street. Then, in reverse order,
each adds a second street to the line as in Line Expansion.

A round first selects: from the starting player on, one after another places one action marker on
an action. A player with markers must place two in a round; then the player may pass, which is final
for the round. Buses, Clock and Starting Player take one marker a round, the other actions {spaces}
(spaces A, B, C, ...), several by one player if wanted. Selecting ends when no player can or wants
to place. Then the actions are resolved in the order below: Line Expansion and Buildings from the
last marker placed back to A, the others from A on.

The power of a marker is M - k: M is the largest number of buses that any player owns at that
moment, and k is 0 on space A, 1 on B, and so on.{extra} Power 0 or less does nothing. All power
must be used as far as possible.

1. Line Expansion: add as many streets as the power, one by one, each at either end of the line and
each for one line marker. Never add a street twice; the line may cross itself. Let X be the end to
extend. If a street at X bears no marker of anyone, take an empty street, or share one: every other
player with a marker on the shared street must have a line end at X{final}.{again} If no street at X
is empty, take any street at X without an own marker. When both ends are at one intersection, the
end that moved last moves next. If no end can move or the line markers are spent, the rest of the
power is lost.

2. Buses: own one more bus, at most {bus_limit}. M changes at once.

3. Passengers: as many passengers as the power arrive from the supply; the player divides them
between the two stations.

4. Buildings: erect as many buildings as the power, of any type, each on a free site of the lowest
zone that has one at that moment.

5. Clock: its player either lets time advance (house, office, pub, then house again) or stops time:
the clock stays and the player takes a time stone. Without a player it advances. Taking the last
time stone ends the game at once.

Then passengers enter buildings: where p passengers and b buildings of the clock's type are at one
intersection, max(0, p - b) passengers wait and max(0, b - p) buildings are free.

6. Vrrooomm!: each bus of the player must carry a waiting passenger from an intersection of the
player's line to a free building of the clock's type at an intersection of the line, while there are
both. Each delivery fills the building and earns a point. The power does not matter.

7. Starting Player: its player starts the next round. Without a player, the next seat clockwise
does.

The game also ends after a round if all sites are built on or at most one player has action markers.
"""
AGAIN = {
    "never": " An end whose arrival street bore another player's marker when it was added must not "
    "share at its new intersection.",
    "other_line": " An end that has just shared a street must not share at its new intersection "
    "with any of the same players.",
    "always": "",
}


def describe_rules(rules: Rules, num_players: int) -> str:
    """Return the rules for a number of players, without the forms of answers."""
    extra = ""
    if num_players == 5:
        condition = ", if that is 1 or more" if rules.extra_street == "with_power" else ""
        extra = f" On Line Expansion it is one more{condition}."
    final = rules.line_sharing == "final_segment"
    by_seat = (rules.line_markers or ())[:num_players]
    line_markers = f"{' '.join(map(str, by_seat))} line markers by seat"
    if len({*by_seat}) < 2:
        line_markers = f"{by_seat[0]} line markers" if by_seat else "line markers without limit"
    text = RULES.format(
        last=num_players - 1,
        supply=f"{rules.passengers - rules.start_passengers} more are in supply at the start",
        action_markers=rules.action_markers,
        line_markers=line_markers,
        stones=rules.stones_for(num_players),
        spaces=rules.spaces,
        extra=extra,
        final=", and that street must be the one by which the end arrived there" if final else "",
        again=AGAIN[rules.sharing_again],
        bus_limit=rules.bus_limit,
    )
    paragraphs = text.replace("\n\n", "\0").replace("\n", " ").split("\0")
    return "\n".join(paragraphs).strip()
