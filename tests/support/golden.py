"""Golden playthroughs: whole games as readable text, so that a change of rules shows as a diff.

Each line ends with the ids of the legal actions and a digest of what the seat to decide sees.
`python -m tests.support.golden` rewrites them.
"""

import hashlib
import random
from pathlib import Path

import numpy as np

from busenv import Building, Game
from busenv.observation import observe
from tests.support.play import STYLES, choose

FOLDER = Path(__file__).parents[1] / "golden"

# Name, players, edition, seed, style of play (see tests.support.play).
GAMES = (
    ("capstone-2024-3-players", 3, "capstone-2024", 11, 1),
    ("capstone-2024-4-players", 4, "capstone-2024", 12, 6),
    ("capstone-2019-5-players", 5, "capstone-2019", 13, 4),
    ("splotter-1999-4-players-time-stones", 4, "splotter-1999", 14, 3),
    ("condensed-5-players-all-sites", 5, "condensed", 19, 5),
)


def state_lines(game: Game) -> list[str]:
    """The position between two rounds."""
    position = game.position()
    built = "".join(".HOP"[kind + 1] for kind in position.buildings)
    people = " ".join(f"{i}:{count}" for i, count in enumerate(position.passengers) if count)
    lines = [
        f"  clock {Building(position.clock).name.lower()}, "
        f"stones left {position.time_stones_left}, supply {position.supply}, "
        f"start seat {position.starting_player}",
        f"  sites {built}",
        f"  passengers {people}",
    ]
    for seat in range(game.num_players):
        ends = "-".join(map(str, position.line_ends[seat]))
        lines.append(
            f"  seat {seat}: markers {position.action_markers[seat]}, "
            f"buses {position.buses[seat]}, deliveries {position.deliveries[seat]}, "
            f"stones {position.time_stones[seat]}, ends {ends}, "
            f"streets {' '.join(map(str, position.streets[seat]))}"
        )
    return lines


def ranges(ids: list[int]) -> str:
    """Ascending ids, those in a row as first-last."""
    begins = [i for i in ids if i - 1 not in ids]
    ends = [i for i in ids if i + 1 not in ids]
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(begins, ends, strict=True))


def digest(observation: np.ndarray) -> str:
    """Eight hex digits of a hash of an observation."""
    return hashlib.blake2b(observation, digest_size=4).hexdigest()


def playthrough(players: int, rules: str, seed: int, style: int) -> str:
    """One game in words."""
    rng = random.Random(seed)
    game = Game(players, rules, seed=seed)
    lines = [f"Bus, {players} players, {rules}, seed {seed}, seat {game.first_player} starts"]
    shown = -1
    while not game.is_over:
        if game.round != shown:
            shown = game.round
            lines += ["", f"Round {shown}" if shown else "Setup", *state_lines(game)]
        seat, phase, legal = game.current_player, game.phase.name, game.legal_actions()
        streets = game.position().streets[seat]
        visited = {i for street in streets for i in game.board.streets[street]}
        action = choose(rng, game.board, legal, STYLES[style], visited)
        lines.append(
            f"{len(game.history):4} seat {seat} {phase:17} {len(legal):3} legal: "
            f"{action:3} {game.describe(action)}; {ranges(legal)}; {digest(observe(game))}"
        )
        game.step(action)
    lines += ["", f"Over: {game.ending}", *state_lines(game), f"  ranking {game.ranking()}", ""]
    return "\n".join(lines)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, *setup in GAMES:
        (FOLDER / f"{name}.txt").write_text(playthrough(*setup), encoding="utf-8")
        print(FOLDER / f"{name}.txt")


if __name__ == "__main__":
    main()
