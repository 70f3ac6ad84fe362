"""Golden playthroughs replay as recorded."""

import pytest

from tests.support.golden import FOLDER, GAMES, playthrough


@pytest.mark.parametrize(("name", "setup"), [(name, setup) for name, *setup in GAMES])
def test_golden(name: str, setup: list) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert playthrough(*setup) == text, (
        "rules changed? `python -m tests.support.golden` rewrites the games"
    )


def test_goldens_end_in_every_way() -> None:
    endings = {path.read_text().split("Over: ")[1].split()[0] for path in FOLDER.glob("*.txt")}
    assert endings == {"time_stones", "sites", "markers"}
