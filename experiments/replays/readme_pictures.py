"""Draw the pictures of README.md and busenv/RULES.md: positions of one recorded game.

`python -m busenv.experiments.replays.readme_pictures` redraws them after the drawing has changed.
With `--play` it first plays the game again; if that game differs from the recorded one, check
`POSITIONS` and the captions of both pages.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import busenv
from busenv import Game
from busenv.agents import make_agent
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.replays.replay_files import draw_record

FOLDER = Path(busenv.__file__).parent / "pictures"
RECORD = "game.json"
PLAYERS, AGENT, SEED = 4, "uct:300", 24
POSITIONS = {  # ply by name of the picture
    "setup": 16,  # every player has two buildings and two streets
    "selected": 163,  # round 6: all actions are selected, none is resolved
    "delivery": 184,  # round 6: a passenger is in a bus
    "end": 277,  # three players with the same points
}


def play_game() -> Game:
    """Play a game of four copies of a search; the recorded one is of an older search."""
    game, agent = Game(PLAYERS, seed=SEED), make_agent(AGENT)
    agent.reset(SEED)
    while not game.is_over:
        game.step(agent.act(game))
    return game


def draw_pictures(folder: Path = FOLDER, record: Path = FOLDER / RECORD) -> None:
    """Write NAME.svg for each of `POSITIONS` of the recorded game."""
    for name, ply in POSITIONS.items():
        draw_record(record, ply, folder / f"{name}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.replays.readme_pictures", description=__doc__
    )
    parser.add_argument("--play", action="store_true", help="play the game again first")
    FOLDER.mkdir(exist_ok=True)
    if parser.parse_args().play:
        play_game().save(FOLDER / RECORD)
    draw_pictures()


if __name__ == "__main__":
    run_command(main)
