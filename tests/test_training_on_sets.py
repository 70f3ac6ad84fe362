"""Training on sets of boards: boards of a rollout, resumption, models, ratings."""

from pathlib import Path

import numpy as np
import pytest

from busenv import Game, load_board
from busenv.agents import make_agent
from busenv.experiments.training.demo import train_and_report
from busenv.experiments.training.training_run import against, rating_boards
from busenv.game import board_specs
from busenv.train.ppo_run import GAMES_PER_BOARD, PPORun
from tests.test_runs import SMALL, parameters, same

SET = SMALL.changed(
    {"board": "generated:small:train:6", "games": 2 * GAMES_PER_BOARD, "warm_start": "greedy"}
)


def test_a_rollout_is_played_on_several_boards(tmp_path: Path) -> None:
    run = PPORun(SET, tmp_path)
    games, _, _, decisions = run._play(5 * GAMES_PER_BOARD, np.random.default_rng(1))
    tags = games.states["board_tag"].reshape(5, GAMES_PER_BOARD)
    assert (tags == tags[:, :1]).all()
    boards = {load_board(f"generated:small:{seed}").array["tag"][0] for seed in range(6)}
    assert 2 < len({*tags[:, 0]}) <= 5
    assert {*tags[:, 0]} <= boards
    assert {*decisions.trajectories // 5} == {*range(5 * GAMES_PER_BOARD)}


def test_a_run_on_a_set_resumes_bit_for_bit(tmp_path: Path) -> None:
    straight, stopped = PPORun(SET, tmp_path / "straight"), PPORun(SET, tmp_path / "stopped")
    while not straight.is_done:
        straight.step()
    assert straight.iteration > straight.config.snapshot_every  # with past selves
    stopped.step()
    stopped.save()
    stopped.step()  # lost
    resumed = PPORun(SET, stopped.folder)
    while not resumed.is_done:
        resumed.step()
    assert same(parameters(straight), parameters(resumed))
    with pytest.raises(ValueError, match=r"a board with fingerprint .*small:train:7 is another"):
        PPORun(SET.changed({"board": "generated:small:train:7"}), stopped.folder)


def test_boards_of_a_large_set_are_generated_when_they_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    generate = board_specs.generate_board
    monkeypatch.setattr(
        board_specs, "generate_board", lambda seed, size: seeds.append(seed) or generate(seed, size)
    )
    run = PPORun(SET.changed({"board": "generated:small:train:1000000"}), tmp_path)
    run.step()
    assert len(seeds) < 20
    assert max(seeds) > 10_000


def test_a_model_of_a_set_plays_all_boards_of_the_size(tmp_path: Path) -> None:
    config = SET.changed({"decisions": 500, "rate_games": 32})
    train_and_report(config, tmp_path, games=32)
    report = (tmp_path / "report.md").read_text()
    assert "board generated:small:train:6," in report
    assert "; boards generated:small:validation:2." in report
    assert "--board generated:small:1000000000" in report
    model = str(tmp_path / "model.safetensors")
    agent = make_agent(f"net:{model}")
    for seed in (3, 7, 3):
        game = Game(board=f"generated:small:{seed}", seed=1)
        assert agent.act(game) in game.legal_actions()
    for board in ("generated:medium:1", "city"):
        with pytest.raises(ValueError, match=r"trained on .*small:train:6.*, not on Board"):
            agent.act(Game(board=board, seed=1))

    tuned = SET.changed({"board": "generated:small:7", "init_from": model})
    assert PPORun(tuned, tmp_path / "tuned").board.name == "generated:small:7"
    with pytest.raises(ValueError, match=r"trained on another board than .*medium:train"):
        PPORun(tuned.changed({"board": "generated:medium:train"}), tmp_path / "medium")


def test_ratings_share_their_games_among_boards_for_validation(tmp_path: Path) -> None:
    run = PPORun(SET, tmp_path)
    assert rating_boards(run, 5 * 16 + 3) == "generated:small:validation:5"
    own, others = against(run.agent, "random", 35, 1, board="generated:small:validation:2")
    assert (own.games, others.games, others.seats) == (35, 3 * 35, 3)
    assert own.wins + others.wins == 35
    assert own.rank + 3 * others.rank == pytest.approx(0 + 1 + 2 + 3)
