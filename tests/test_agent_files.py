"""Files that agents need: their hashes, and batches with agents of files."""

import pickle
from pathlib import Path

from busenv import Batch
from busenv.agents.dependencies import file_hashes


def test_files_of_agents_are_hashed(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    specs = (
        "random",
        "uct:5",
        f"ppo:{path}",
        f"exec:python3 {path}",
        f"py:player.py:Player:{path}",
    )
    path.write_bytes(b"one")
    path.with_suffix(".json").write_text("{}")
    one = file_hashes(specs)
    path.write_bytes(b"two")
    two = file_hashes(specs)
    assert [*one] == [*two] == [*specs[2:]]
    assert all(one[spec] != two[spec] for spec in specs[2:])
    path.with_suffix(".json").write_text('{"temperature": 0}')
    assert file_hashes(specs)[specs[2]] != two[specs[2]]
    assert [*file_hashes(("net:city-2", "net@0.5:city-2"))] == ["net:city-2", "net@0.5:city-2"]
    assert not file_hashes((f"exec:python3 -c '{300 * '#'}'",))


def test_a_batch_with_an_opponent_of_a_file_is_pickled(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "class Own:\n    def act(self, game):\n        return game.legal_actions()[0]\n"
    )
    batch = Batch(2, opponents=f"py:{tmp_path}/own.py:Own")
    batch.reset(1)
    copied = pickle.loads(pickle.dumps(batch))
    for games in (batch, copied):
        games.step(games.masks.argmax(axis=1))
    assert copied.games.tobytes() == batch.games.tobytes()
