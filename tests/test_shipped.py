"""The trained agent of the package: it is there, as it says, and plays well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from busenv import load_board
from busenv.agents import make_agent
from busenv.agents.neural.files import SHIPPED, load_model, model_path, shipped_models
from busenv.experiments.training.curve import read_curve
from busenv.experiments.training.runs import against
from busenv.train.config import Config
from busenv.train.settings import read_config

RECIPES = Path(__file__).parents[1] / "train/recipes"


def test_models_are_small_and_tell_how_they_were_made() -> None:
    assert shipped_models() == ["city-2"]
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 10_000_000
    _, card = load_model(model_path("city-2"), load_board("city"))
    stages = card["training"]["stages"]
    assert sum(stage["decisions"] for stage in stages) == card["training"]["decisions"]
    for number, stage in enumerate(stages, 1):
        recipe = RECIPES / f"city-2-{number}.json"
        assert f"busenv train train/recipes/{recipe.name} " in stage["command"]
        assert stage["config"] == json.loads(recipe.read_text())
        assert read_config(str(recipe)) == Config().changed(stage["config"])
    curve = read_curve(RECIPES / "city-2.csv")
    assert curve[-1].decisions == card["training"]["decisions"]
    assert set(card["ratings"]) == {"3 players", "4 players", "5 players"}


@pytest.mark.parametrize(("bot", "share"), [("greedy", 0.8), ("planner", 0.55)])
def test_the_shipped_agent_beats_the_scripted_ones(bot: str, share: float) -> None:
    score, _ = against(make_agent("ppo:city-2"), bot, 100, seed=1)
    assert score.wins / score.games > share
