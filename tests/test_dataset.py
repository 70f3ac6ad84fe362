"""Datasets: `busenv export`, replayed transitions, resuming, damaged files, Minari."""

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import busenv
from busenv import Game, GameDataset, cli, load_dataset
from busenv import dataset as dataset_files
from busenv.common.runs import RunError
from busenv.common.worker_pool import worker_pool
from busenv.dataset import ARRAYS
from busenv.evaluation import dataset_export
from busenv.evaluation.dataset_export import export_games
from busenv.observation import absolute_action
from busenv.train.learning_curve import read_curve
from experiments import imitation

AGENTS = ("greedy", "random")
SETTINGS = {"players": 3, "seed": 7, "rules": "capstone-2024", "board": "city"}
pytestmark = pytest.mark.usefixtures("threads_as_workers")


def export(folder: Path, games: int = 6, workers: int = 1) -> GameDataset:
    console = Console(quiet=True)
    return export_games(AGENTS, folder, games=games, workers=workers, console=console, **SETTINGS)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> GameDataset:
    return export(tmp_path_factory.mktemp("export"))


@pytest.mark.parametrize("relative_types", [False, True])
def test_transitions_are_those_of_the_games(dataset: GameDataset, relative_types: bool) -> None:
    numbers = [4, 1]
    table, row = dataset.transitions(numbers, relative_types=relative_types), 0
    for number in numbers:
        first = int(dataset.first_players[number])
        game = Game(3, first_player=first)
        start = row
        while not game.is_over:
            seat = game.current_player
            assert (table.games[row], table.seats[row]) == (number, seat)
            assert table.agents[row] == dataset.agents[number, seat]
            seen = busenv.observe(game, relative_types=relative_types)
            assert (table.observations[row] == seen).all()
            assert (table.masks[row] == game.action_mask()).all()
            action = int(table.actions[row])
            game.step(absolute_action(game, action) if relative_types else action)
            row += 1
        for k in range(start, row):
            seat = table.seats[k]
            assert table.ranks[k] == game.ranking()[seat]
            assert table.points[k] == game.points[seat]
            assert table.is_last[k] == (seat not in table.seats[k + 1 : row])
    assert row == len(table.actions)


def test_games_are_named_by_their_indices(dataset: GameDataset) -> None:
    assert len(dataset.transitions([]).actions) == 0
    wrong: tuple[Any, ...] = ([6], [-1], [1.5], dataset.lengths < 100, ["1"])
    for games in wrong:
        with pytest.raises(IndexError, match="allowed: indices 0 to 5"):
            dataset.transitions(games)


def test_games_depend_on_the_settings_only(
    tmp_path: Path, dataset: GameDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.npz"
    dataset.save(copy)
    assert load_dataset(copy).digest == dataset.digest
    assert export(tmp_path / "more", games=7).digest != dataset.digest
    monkeypatch.setattr(dataset_export, "worker_pool", worker_pool)
    assert export(tmp_path / "two", workers=2).digest == dataset.digest
    assert {*dataset.agents.reshape(-1)} == {0, 1}
    with pytest.raises(RunError, match="holds a run with games 7, not 6"):
        export(tmp_path / "more")


def test_stopped_export_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_export, "GAMES_PER_PART", 2)
    straight, played = export(tmp_path / "straight"), []

    class Pool:
        """Plays in this process, and is interrupted before the third part."""

        def map(self, play: Callable[..., None], *columns: Sequence[Any]) -> Iterator[None]:
            for arguments in zip(*columns, strict=True):
                played.append(arguments[0])
                if played == [0, 1, 2]:
                    raise KeyboardInterrupt
                yield play(*arguments)

    monkeypatch.setattr(dataset_export, "worker_pool", lambda workers: nullcontext(Pool()))
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        export(folder)
    assert export(folder).digest == straight.digest
    assert played == [0, 1, 2, 2]
    assert {path.name for path in folder.iterdir()} == {"dataset.npz", "run.json", "lock"}


def test_a_failed_export_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise busenv.AgentError("no answer")

    monkeypatch.setattr(dataset_export, "_play_part", fail)
    message = f"no answer; the same command with --out {tmp_path} resumes"
    with pytest.raises(RunError, match=re.escape(message)):
        export(tmp_path)


def test_agents_that_cannot_be_exported_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agents, message in (
        (["llm:model"], "'llm:model' is a language model"),
        (["greedy"] * 256, "256 agents; allowed: 1 to 255"),
    ):
        monkeypatch.setattr(sys.modules[__name__], "AGENTS", agents)
        with pytest.raises(RunError, match=message):
            export(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_damaged_datasets_are_refused(
    tmp_path: Path, dataset: GameDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    actions = dataset.actions.copy()
    actions[3] = 60_000
    with pytest.raises(ValueError, match="game 0: action 60000 is illegal"):
        dataclasses.replace(dataset, actions=actions).transitions([0])
    lengths = dataset.lengths.copy()
    lengths[0] -= 1
    lengths[1] += 1
    with pytest.raises(ValueError, match="game is not over"):
        dataclasses.replace(dataset, lengths=lengths).transitions([0])
    with pytest.raises(ValueError, match="out of range"):
        dataclasses.replace(dataset, agents=dataset.agents + np.uint8(2))
    with pytest.raises(ValueError, match="different numbers"):
        dataclasses.replace(dataset, actions=actions[1:])
    path = tmp_path / "bad.npz"
    path.write_bytes(b"PK\3\4 no archive")
    with pytest.raises(ValueError, match=r"bad\.npz is not a dataset of games"):
        load_dataset(path)
    good = json.loads(str(dataset._content()["metadata"]))
    for metadata, message in (
        ("[" * 100_000, "recursion"),
        (json.dumps({**good, "board": {"generator": 99, "name": 3}}), "generator version 99"),
        (json.dumps({**good, "seed": "x"}), "seed is 'x'"),
        (json.dumps({**good, "agents": {"a": 1}}), "agents are {'a': 1}; allowed: a list of specs"),
    ):
        np.savez(path, metadata=metadata, **{name: getattr(dataset, name) for name in ARRAYS})
        with pytest.raises(ValueError, match=rf"bad\.npz is not a dataset of games: .*{message}"):
            load_dataset(path)
    np.savez_compressed(path, actions=np.zeros(10**7, np.uint16))
    with pytest.raises(ValueError, match="first_players"):  # small enough
        load_dataset(path)
    monkeypatch.setattr(dataset_files, "SMALL", 10**7)
    with pytest.raises(ValueError, match=r"it would take 20,000,.* bytes in memory, too many"):
        load_dataset(path)
    with pytest.raises(ValueError, match="/dev/zero is not a regular file"):
        load_dataset("/dev/zero")
    np.savez(path, actions=actions)
    with pytest.raises(ValueError, match="first_players"):
        load_dataset(path)


def test_export_writes_a_dataset_and_prints_its_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    cli.main(["export", "greedy", "--games", "3", "--workers", "1", "--out", str(out)])
    loaded = load_dataset(out / "dataset.npz")
    text = capsys.readouterr().out
    assert f"3 games, {loaded.num_decisions} decisions, SHA-256 {loaded.digest}" in text
    assert loaded.num_players == 4
    with pytest.raises(SystemExit):
        cli.main(["export", "unknown", "--out", str(tmp_path / "other")])
    assert "unknown agent 'unknown'" in capsys.readouterr().err


def test_minari_datasets_hold_the_episodes_of_one_agent(
    dataset: GameDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    from busenv.evaluation.minari_export import check_name, write_minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    check_name("bus/mixed-v0")
    write_minari(dataset, "bus/mixed-v0")
    written = minari.load_dataset("bus/mixed-v0")
    table = dataset.transitions(range(len(dataset)))
    assert written.total_episodes == (dataset.agents == 0).sum()
    assert written.total_steps == (table.agents == 0).sum()
    episodes = [*written.iterate_episodes()]
    ends = table.ranks[(table.agents == 0) & table.is_last]
    returns = [episode.rewards.sum() for episode in episodes]
    assert sorted(returns) == sorted(np.where(ends == 0, 1.0, -1 / (dataset.num_players - 1)))
    for episode in episodes:
        masks = np.asarray(episode.infos["action_mask"])
        assert len(masks) == len(episode.observations) == len(episode.actions) + 1
        assert masks[np.arange(len(episode.actions)), episode.actions].all()
        assert episode.terminations.tolist() == [False] * (len(episode.actions) - 1) + [True]
    env = written.recover_environment(opponents="greedy")
    env.reset(seed=1)
    assert env.unwrapped.game.num_players == dataset.num_players
    assert env.unwrapped.board == dataset.board
    with pytest.raises(ValueError, match="exists"):
        check_name("bus/mixed-v0")
    with pytest.raises(ValueError, match="--minari is 'no name'; allowed: NAMESPACE/NAME-vN"):
        check_name("no name")
    with pytest.raises(ValueError, match="--minari is 'bad'"):
        check_name("bad")


def test_imitation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(imitation, "SHUFFLED_GAMES", 15)
    export(tmp_path, games=60)
    out = tmp_path / "imitation"
    options = ["--out", str(out), "--games", "9", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", ["imitation", str(tmp_path / "dataset.npz"), *options])
    imitation.main()
    output = capsys.readouterr().out
    losses = [float(loss) for loss in re.findall(r"held-out ([\d.]+) nats", output)]
    curve = read_curve(out / "curve.csv")
    assert len(losses) == len(curve) > 2
    assert losses[-1] < losses[0]
    assert {*curve[-1].wins} == {"greedy", "planner"}
    won = re.findall(r"([\d.]+)% \[([\d.]+), ([\d.]+)\] against planner", output)
    assert len(won) == len(curve)
    assert float(won[-1][0]) == pytest.approx(100 * curve[-1].wins["planner"], abs=0.05)
    assert all(float(low) <= float(share) <= float(high) for share, low, high in won)
    with Image.open(out / "curve.png") as picture:
        assert picture.width > 500
    agent = busenv.make_agent(f"net:{out / 'model.safetensors'}")
    assert agent.act(Game(3, seed=1)) in Game(3, seed=1).legal_actions()
    card = json.loads((out / "model.json").read_text())
    assert (card["temperature"], card["players"]) == (imitation.TEMPERATURE, [3])
