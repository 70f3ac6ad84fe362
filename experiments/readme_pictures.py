"""Draw the pictures of README.md and busenv/RULES.md: positions of one recorded game.

`python -m experiments.readme_pictures` redraws them after the drawing has changed.
"""

from __future__ import annotations

from pathlib import Path

import busenv
from busenv.evaluation.replay_files import draw_record

FOLDER = Path(busenv.__file__).parent / "pictures"
RECORD = "game.json"
POSITIONS = {  # ply by name of the picture
    "setup": 16,  # every player has two buildings and two streets
    "selected": 163,  # round 6: all actions are selected, none is resolved
    "delivery": 184,  # round 6: a passenger is in a bus
    "end": 277,  # three players with the same points
}


def draw_pictures(folder: Path = FOLDER) -> None:
    """Write NAME.svg for each of `POSITIONS` of the recorded game."""
    for name, ply in POSITIONS.items():
        draw_record(FOLDER / RECORD, ply, folder / f"{name}.svg")


if __name__ == "__main__":
    draw_pictures()
