"""The trained models of the package: size, cards, playing strength."""

import json
import subprocess
from pathlib import Path

import pytest

from busenv import cli, load_board
from busenv.agents import make_agent
from busenv.networks.model_files import BUNDLED, bundled_models, load_model, model_path
from busenv.train.config_files import parse_settings, read_config
from busenv.train.expert_iteration.expert_config import FitConfig, SelfPlayConfig
from busenv.train.learning_curve import read_curve
from busenv.train.run_training import evaluate_against
from tests.support.pages import ROOT

RECIPES = ROOT / "train/recipes"
MODELS = ["city-2", "city-3", "city-4", "city-5", "generated-4"]


def test_models_are_small() -> None:
    assert bundled_models() == MODELS
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 23_000_000


@pytest.mark.parametrize("name", MODELS)
def test_model_cards_hold_the_training_procedure(name: str) -> None:
    card = load_model(model_path(name), load_board("city"))[1].model_dump()
    stages = card["training"]["stages"]
    assert sum(stage["decisions"] for stage in stages) == card["training"]["decisions"]
    curve = read_curve(RECIPES / f"{name}.csv")
    assert curve[-1].decisions == card["training"]["decisions"]
    assert set(card["ratings"]) == {"3 players", "4 players", "5 players"}


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.json")), ids=lambda path: path.stem)
def test_recipes_are_settings_of_this_version(path: Path) -> None:
    assert read_config(str(path)).to_dict().items() >= json.loads(path.read_text()).items()


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.sh")), ids=lambda path: path.stem)
def test_recipes_are_commands_of_this_version(path: Path, tmp_path: Path) -> None:
    """A program that prints its arguments stands in for `busenv`."""
    program = tmp_path / "busenv"
    program.write_text("#!/bin/sh\necho $*\n")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    output = subprocess.check_output(["sh", str(path)], env=environment, text=True)
    for line in output.splitlines():
        args = cli.parser().parse_args(line.split())
        settings = parse_settings(
            args.set, {"selfplay": SelfPlayConfig, "fit": FitConfig}[args.command]
        )
        assert args.command == "fit" or SelfPlayConfig(**settings).samples > 100_000


def test_a_bundled_model_guides_a_search() -> None:
    score = evaluate_against(make_agent("az:city-4:32"), "uct:32", 64, seed=1)
    assert score.wins / score.games > 0.3


@pytest.mark.parametrize("size", ["small", "medium", "city", "large"])
def test_the_network_for_every_board_beats_greedy_on_unseen_boards(size: str) -> None:
    boards = f"generated:{size}:test:8"
    score = evaluate_against(make_agent("net:generated-4"), "greedy", 64, seed=1, board=boards)
    assert score.wins / score.games > 0.5


@pytest.mark.parametrize(("bot", "share"), [("greedy", 0.8), ("planner", 0.55)])
def test_city_2_beats_the_scripted_agents(bot: str, share: float) -> None:
    score = evaluate_against(make_agent("ppo:city-2"), bot, 100, seed=1)
    assert score.wins / score.games > share
