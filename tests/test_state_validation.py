"""GAME records from other programs: valid ones can be continued, invalid fields are named."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from numba import typeof

from busenv import EDITIONS, Batch, Board, Game, load_board
from busenv.core.state import ALWAYS, GAME, Phase
from busenv.game.states import check_games
from tests.support.play import picks

CITY = load_board("city")

# Continues each game of a file, in a process of its own, so that a crash is visible.
PLAY = """
import sys
import numpy as np
from busenv import load_board
from busenv.agents import make_agent
from busenv.game.states import check_games
from busenv.core import kernels
from busenv.core.state import Phase
from busenv.observation import observe_games
from tests.support.random_play import play_out

board = load_board("city")
games = check_games(np.load(sys.argv[1]), board)
rows, masks = observe_games(games, board)
for spec in ("greedy", "planner", "uct:8"):
    going = games[games["phase"] != Phase.OVER]
    agent = make_agent(spec, 1)
    for _ in range(3):
        going = going[going["phase"] != Phase.OVER]
        _, masks = observe_games(going, board)
        actions = agent.choose(going, board)
        assert masks[np.arange(len(going)), actions].all()
        assert kernels.step_games(going, board.array, actions) == -1
ended = games.copy()
play_out(ended, board.array, np.arange(len(games)).astype(np.uint64))
assert (ended["phase"] == Phase.OVER).all()
check_games(ended, board)
print(len(games))
"""


def played(board: Board = CITY, steps: int = 250) -> Iterator[np.ndarray]:
    """Games of every edition and number of players, after each of their decisions."""
    for rules in EDITIONS:
        for players in (3, 4, 5):
            batch = Batch(8, num_players=players, rules=rules, board=board)
            batch.reset(players)
            rng = np.random.default_rng(players)
            for _ in range(steps):
                yield batch.games
                batch.step(picks(batch.masks, rng))


def test_all_that_play_leads_to_is_accepted_24_000_games() -> None:
    over = 0
    for games in played():
        assert check_games(games, CITY).tobytes() == games.tobytes()
        over += int((games["phase"] == Phase.OVER).sum())
    assert over > 0


def test_kernels_receive_one_type_of_games() -> None:
    """For any other type, numba would compile each kernel again."""
    games = np.repeat(Game(3, seed=1).arrays()[0], 4)
    read_only = games.copy()
    read_only.flags.writeable = False
    for given in (games, games[::2], read_only):
        checked = check_games(given, CITY)
        assert typeof(checked) == typeof(games)
        assert (checked == given).all()


def accepted(games: np.ndarray) -> np.ndarray:
    """Those of the games that pass; each refusal names a field."""
    fine = []
    for i in range(len(games)):
        try:
            check_games(games[i : i + 1], CITY)
            fine.append(i)
        except ValueError as error:
            message = str(error)
            assert message.startswith("game 0 cannot be played on: ")
            assert message.split(": ")[1].split(" is ")[0] in GAME.names
    return games[fine]


def play_on(games: np.ndarray, path: str) -> None:
    """Have agents decide, and random play end, all of the games, in a process of their own."""
    np.save(path, games)
    done = subprocess.run(
        [sys.executable, "-c", PLAY, path], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, f"{len(games)}\n"), done.stderr[-2000:]


def test_games_of_another_board_are_refused() -> None:
    games = Game(3, seed=1).arrays()[0].copy()
    games["board_tag"] += 1
    with pytest.raises(ValueError, match="games of another board"):
        check_games(games, CITY)


def mutated(number: int, seed: int) -> np.ndarray:
    """Played games in which one to three bytes are others, most of them small."""
    rng = np.random.default_rng(seed)
    games = np.concatenate([g[g["phase"] != Phase.OVER] for g in list(played(steps=120))[::7]])
    games = games[rng.integers(len(games), size=number)]
    data = games.view(np.uint8).reshape(number, GAME.itemsize)
    for row in data:
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(GAME.itemsize)
            change = rng.integers(4)
            if change == 0:
                row[at] = rng.integers(256)
            elif change == 1:
                row[at] ^= 1 << rng.integers(8)
            elif change == 2:
                row[at] = rng.choice([0, 1, 2, 4, 5, 8, 127, 128, 254, 255])
            else:
                row[at] = row[rng.integers(GAME.itemsize)]
    games["board_tag"] = CITY.array["tag"]
    return games


def test_4_000_changed_games_are_refused_or_playable(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    games = mutated(4000, seed=2)
    fine = accepted(games)
    assert 500 < len(fine) < 3500
    play_on(fine, str(tmp_path_factory.mktemp("games") / "games.npy"))


def test_an_end_remembers_other_seats_on_its_street() -> None:
    """A seat's own bit, a seat without a marker there, and any if sharing again is free (R9a)."""
    games = next(games for games in played() if games["head_shared"].any())
    index, seat = np.argwhere(games["head_shared"])[0]
    fine = games[index : index + 1].copy()
    rules = EDITIONS["capstone-2024"]
    word, bit = divmod(int(fine["head_street"][0, seat]), 64)
    absent = [s for s in range(3) if not int(fine["line"][0, s, word]) >> bit & 1]
    assert absent
    position = Game.from_state(check_games(fine, CITY), rules, CITY).position()
    assert Game.from_position(position, rules, CITY).position() == position
    own, other, always = fine.copy(), fine.copy(), fine.copy()
    own["head_shared"][0, seat] |= 1 << seat
    other["head_shared"][0, seat] |= 1 << absent[0]
    always["sharing_again"] = ALWAYS
    for wrong in (own, other, always):
        with pytest.raises(ValueError, match="game 0 cannot be played on: head_shared is "):
            check_games(wrong, CITY)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("players", 2), ("players", 6), ("seat", 4), ("first", 9), ("start", 4), ("phase", 11),
        ("ending", 1), ("clock", 3), ("supply", 12), ("space", 9), ("zone", 200), ("action", 0),
        ("space_limit", 0), ("space_limit", 9), ("taken", 8), ("open", 0), ("open", 255),
        ("spaces", 4), ("spaces", 200), ("free_sites", 2**63), ("type_sites", 2**63),
        ("line", 2**62), ("reach", 2**63), ("reach", 0),
        ("head_shared", 32), ("tail_shared", 128), ("choosing", 0), ("choosing", 255),
        ("markers", 0), ("clock_stones", 0),
    ],
)  # fmt: skip
def test_invalid_fields_of_states_are_named(field: str, value: int) -> None:
    batch = Batch(3, num_players=4)
    batch.reset(1)
    while not (batch.games["phase"] == 3).all():
        batch.step(picks(batch.masks, np.random.default_rng(0)))
    games = check_games(batch.games, CITY).copy()
    if games[field].ndim == 1:
        games[field][2] = value
    else:
        games[field].reshape(3, -1)[2, 1 if field == "line" else 0] = value
    with pytest.raises(ValueError, match=f"game 2 cannot be played on: {field} is "):
        check_games(games, CITY)
