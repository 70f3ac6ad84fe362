"""The pictures in README.md and busenv/RULES.md: moments of one recorded game.

`python -m busenv.experiments.replays.readme_pictures` draws them anew, for when the drawing has changed.
With `--play` the game is played first; if it comes out another, the moments and what the two pages
say of them have to be looked at too.
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
MOMENTS = {  # name of the picture: decisions made by then
    "setup": 16,  # everybody has two buildings and two streets
    "selected": 163,  # round 6: all actions are chosen, the first is to be resolved
    "delivery": 184,  # round 6: a passenger is in a bus
    "end": 277,  # three players with as many points
}


def play_game() -> Game:
    """A game of four copies of a search; the recorded one came out of an older search."""
    game, agent = Game(PLAYERS, seed=SEED), make_agent(AGENT)
    agent.reset(SEED)
    while not game.is_over:
        game.step(agent.act(game))
    return game


def draw_pictures(folder: Path = FOLDER, record: Path = FOLDER / RECORD) -> None:
    """Write NAME.svg into a folder for every moment of the recorded game."""
    for name, ply in MOMENTS.items():
        draw_record(record, ply, folder / f"{name}.svg")


def main() -> None:
    """Draw the pictures where they belong."""
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.replays.readme_pictures", description=__doc__
    )
    parser.add_argument("--play", action="store_true", help="play the game anew first")
    FOLDER.mkdir(exist_ok=True)
    if parser.parse_args().play:
        play_game().save(FOLDER / RECORD)
    draw_pictures()


if __name__ == "__main__":
    run_command(main)
