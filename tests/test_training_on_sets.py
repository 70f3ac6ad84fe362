"""Training on sets of boards: models, ratings, samples, boards of all sizes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busenv import Batch, Board, BoardError, Game, load_board
from busenv.agents import Agent, make_agent, match
from busenv.agents.match import play_games_to_end, seat_line_up
from busenv.cli.train_report import train_and_report
from busenv.networks.factory import build_network
from busenv.train.config import training_boards
from busenv.train.expert_iteration import selfplay_run
from busenv.train.expert_iteration.expert_config import FitConfig, SelfPlayConfig
from busenv.train.expert_iteration.expert_run import FitRun
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer
from busenv.train.expert_iteration.samples import make_batch
from busenv.train.expert_iteration.selfplay_run import play_agent_games, run_selfplay
from busenv.train.ppo_run import PPORun
from busenv.train.run_training import evaluate, evaluate_against, rating_boards
from tests.support.training import RULES, SMALL_EXPERT, SMALL_PPO

SET = SMALL_PPO.changed(
    {"board": "generated:small:train:6", "games": 12, "bots": ("greedy", "planner")}
)

BOARDS = training_boards(SET.board)
EXPERT_SET = SMALL_EXPERT.changed({"board": SET.board, "games": 6, "decisions": 1000})


def test_a_model_of_a_set_plays_all_boards_of_the_size(tmp_path: Path) -> None:
    config = SET.changed({"decisions": 500, "rate_games": 32})
    train_and_report(config, tmp_path, games=32)
    report = (tmp_path / "report.md").read_text()
    assert "board generated:small:train:6," in report
    assert "; boards generated:small:validation:2." in report
    assert "--board generated:small:1000000000" in report
    games = [part.games.batch.games for part in PPORun(config, tmp_path)._parts]
    tags = {*np.concatenate(games)["board_tag"].tolist()}
    assert 2 < len(tags & {board.array["tag"][0] for board in BOARDS}) == len(tags)
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


def test_ratings_divide_their_games_among_validation_boards(tmp_path: Path) -> None:
    run = PPORun(SET, tmp_path)
    assert rating_boards(run, 5 * 16 + 3).name == "generated:small:validation:5"
    score = evaluate_against(run.agent, "random", 35, 1, board="generated:small:validation:2")
    assert score.games == 35
    assert 0 < score.wins < 35
    assert 0 < score.rank < 3


def test_ratings_number_their_games_across_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise seats and starting player would not rotate, since each board has few games."""
    played = []

    def spy(agents: list[Agent], owners: np.ndarray, *others: Any, **more: Any) -> Any:
        played.append((more["board"].name, owners))
        return play_games_to_end(agents, owners, *others, **more)

    monkeypatch.setattr(match, "play_games_to_end", spy)
    for games in (7, 2):
        board = "generated:small:train:3"
        evaluate_against(make_agent("greedy"), "random", games, 1, board=board)
    names, owners = zip(*played, strict=True)
    boards = tuple(board.name for board in training_boards("generated:small:train:3"))
    assert names == (*boards, *boards[:2])
    assert [*map(len, owners)] == [3, 2, 2, 1, 1]
    seats, _ = seat_line_up((0, 1, 2, 3), np.arange(7))
    assert (np.concatenate(owners[:3]) == seats).all()


def samples_of_boards(indices: list[int], boards: Sequence[Board] = BOARDS) -> np.ndarray:
    """Samples of two games on each of these boards of a set."""
    rng, parts = np.random.default_rng(1), []
    for index in indices:
        part = play_agent_games(
            make_agent("greedy"), boards[index], RULES,
            num_players=np.array([3, 5]), sample_share=0.1, rng=rng,
        )  # fmt: skip
        part["board_index"] = index
        parts.append(part)
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", ["features", "board"])
def test_a_batch_holds_the_rows_of_each_board(kind: str) -> None:
    samples = samples_of_boards([2, 4, 0])
    inputs = build_network(kind, BOARDS[0], 8, relative_types=True).inputs
    whole = make_batch(samples, BOARDS, 0.5, inputs)
    for index in (2, 4, 0):
        where = samples["board_index"] == index
        part = make_batch(samples[where], BOARDS[index], 0.5, inputs)
        for array, expected in zip(whole, part, strict=True):
            assert (array[where] == expected).all()


MIXED = FitConfig(
    board="generated:mixed:train:6", network="board", width=8, threads=1, rated=("random",)
)


def test_mixed_sets_alternate_all_sizes() -> None:
    names = [board.name for board in training_boards(MIXED.board)]
    sizes = ("small", "medium", "city", "large", "small", "medium")
    assert names == [f"generated:{size}:{seed}" for seed, size in enumerate(sizes)]
    assert training_boards(MIXED.board)[-1].name == names[-1]
    with pytest.raises(BoardError, match=r"allowed: generated:mixed:SPLIT with one of train"):
        load_board("generated:mixed:3")
    with pytest.raises(BoardError, match=r"allowed: small, .*, mixed; did you mean 'mixed'"):
        load_board("generated:mixd:train")
    with pytest.raises(BoardError, match=r"boards of different sizes in one set: .*medium:1"):
        Batch(4, board=MIXED.board)
    for config in (SET, EXPERT_SET):
        message = f"network is '{config.network}'; allowed with board 'generated:mixed:train:6'"
        with pytest.raises(ValueError, match=message):
            config.changed({"board": MIXED.board})


def test_a_network_for_every_board_is_fitted_and_rated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfplay_run, "PART_GAMES", 16)
    games = SelfPlayConfig(agent="greedy", board=MIXED.board, samples=1, full_search_share=0.05)
    run_selfplay(games, tmp_path / "games")
    run = FitRun(MIXED.changed({"data": (str(tmp_path / "games"),)}), tmp_path / "run")
    (samples,) = run._parts
    assert len({*(samples["board_index"] % 4)}) > 2  # sizes
    assert run.step()["train/policy_loss"] > 0
    counts = {games: rating_boards(run, games).name for games in (16, 32, 100, 130)}
    boards = (4, 4, 4, 8)
    assert [*counts.values()] == [f"generated:mixed:validation:{count}" for count in boards]
    assert evaluate(run, run.agent, "random", 16).games == 16


def test_replay_files_of_other_boards_are_refused(tmp_path: Path) -> None:
    samples = samples_of_boards([1])
    for index, message in (
        (2, r"games of another board than .*small:2"),
        (6, "board number 6; the run"),
    ):
        samples["board_index"] = index
        ReplayBuffer(tmp_path, BOARDS, 100).add(0, samples)
        with pytest.raises(ValueError, match=message):
            ReplayBuffer(tmp_path, BOARDS, 100).restore(1)
