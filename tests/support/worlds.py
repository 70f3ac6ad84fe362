"""Boards and rules other than the published ones."""

import json
import random
from pathlib import Path

from busenv import Rules
from busenv.game.board import BOARDS


def random_board(rng: random.Random) -> dict:
    """A small connected board, unlike the city."""
    size = rng.randint(2, 9)
    joined = {(rng.randrange(i), i) for i in range(1, size)}
    for _ in range(rng.randint(0, size)):
        a, b = sorted(rng.sample(range(size), 2))
        joined.add((a, b))
    streets = [list(ends) if rng.random() < 0.5 else list(ends)[::-1] for ends in sorted(joined)]
    stations = rng.sample(range(size), 2)
    roundabouts = rng.sample(range(size), rng.randint(1, size))
    zones = rng.randint(1, 4)
    sites = [i % zones + 1 for i in range(rng.randint(zones, 20))]
    return {
        "intersections": [
            {
                "id": i,
                "x": i,
                "y": 0,
                "roundabout": i in roundabouts,
                "train_station": i in stations,
            }
            for i in range(size)
        ],
        "streets": streets,
        "sites": [
            {"id": i, "intersection": rng.randrange(size), "zone": zone}
            for i, zone in enumerate(sites)
        ],
    }


def write_town(path: Path) -> str:
    """Write the city with its streets in another order, which is another board; return the path."""
    data = json.loads((BOARDS / "city.json").read_text())
    data["streets"].reverse()
    path.write_text(json.dumps({key: data[key] for key in data if key != "name"}))
    return str(path)


def random_rules(rng: random.Random) -> Rules:
    """Rules with every field changed."""
    start = rng.randint(0, 6)
    return Rules(
        action_markers=rng.randint(1, 25),
        line_markers=rng.choice([None, tuple(rng.randint(2, 12) for _ in range(5))]),
        bus_limit=rng.randint(1, 9),
        spaces=rng.randint(1, 8),
        time_stones=(rng.randint(1, 6), rng.randint(1, 6)),
        passengers=start + rng.randint(0, 11),
        start_passengers=start,
        line_sharing=rng.choice(["final_segment", "line_end"]),
        sharing_again=rng.choice(["never", "other_line", "always"]),
        extra_street=rng.choice(["always", "with_power"]),
    )


def largest() -> dict:
    """The largest board: 64 intersections, 128 streets, 64 sites, each in a zone of its own."""
    ring = [[i, (i + 1) % 64] for i in range(64)]
    return {
        "name": "ring",
        "intersections": [
            {"id": i, "x": i, "y": 0, "roundabout": i == 63, "train_station": i in (0, 63)}
            for i in range(64)
        ],
        "streets": ring + [[i, (i + 5) % 64] for i in range(64)],
        "sites": [{"id": i, "intersection": i, "zone": i + 1} for i in range(64)],
    }


def one_street(sites: int) -> dict:
    """The smallest board, with a number of sites."""
    places = [
        {"id": i, "x": i, "y": 0, "roundabout": True, "train_station": True} for i in range(2)
    ]
    zone = [{"id": i, "intersection": 1, "zone": 1} for i in range(sites)]
    return {"intersections": places, "streets": [[0, 1]], "sites": zone}
