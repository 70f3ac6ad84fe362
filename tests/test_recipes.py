"""The recipes of docs/recipes run where their library is there, by the masks that they store."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import ROOT, blocks

PAGES = sorted((ROOT / "docs/recipes").glob("*.md"))
SCRIPTS = {
    f"{path.stem} {number}": code
    for path in PAGES
    for number, code in enumerate(blocks(path, "python"), 1)
}

# What each learner has kept: the masks, (..., num_actions), and the actions that it took, (...).
KEPT = {
    "stable-baselines3": "model.rollout_buffer.action_masks, model.rollout_buffer.actions[..., 0]",
    "cleanrl": "masks, actions",
    "torchrl": "data['action_mask'], data['action']",
    "tianshou": "buffer.sample(0)[0].obs.mask, buffer.sample(0)[0].act",
    "agilerl": (
        "agent.rollout_buffer.buffer['action_masks'], "
        "agent.rollout_buffer.buffer['actions'].flatten(0, 1)"
    ),
}
LOOK = """
import numpy as np
kept_masks, kept_actions = (np.asarray(kept) for kept in ({kept}))
kept_masks = kept_masks.reshape(-1, 375).astype(bool)
kept_actions = kept_actions.reshape(-1).astype(int)
assert len(kept_masks) == len(kept_actions) > 0
print("legal:", kept_masks[np.arange(len(kept_actions)), kept_actions].mean())
"""


def run(code: str, folder: Path) -> str:
    """What a script prints that is cut down to its first update."""
    for line in ast.parse(code).body:
        names = []
        if isinstance(line, ast.ImportFrom):  # ray alone is without it
            rllib = line.module == "busenv" and line.names[0].name == "rllib"
            names = ["ray.rllib.algorithms.ppo" if rllib else line.module]
        names += [alias.name for alias in line.names] if isinstance(line, ast.Import) else []
        for name in filter(None, names):
            pytest.importorskip(name, exc_type=ImportError)
    code = re.sub(r"^total = [\d_]+", "total = 160", code, flags=re.MULTILINE)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name.removesuffix(" 1") not in KEPT])
def test_a_script_runs(name: str, tmp_path: Path) -> None:
    run(SCRIPTS[name], tmp_path)


@pytest.mark.parametrize("name", KEPT)
def test_a_learner_goes_by_the_masks_that_it_stores(name: str, tmp_path: Path) -> None:
    told = run(SCRIPTS[f"{name} 1"] + LOOK.format(kept=KEPT[name]), tmp_path)
    assert re.search(r"\d+% of games won", told), told
    assert told.splitlines()[-1] == "legal: 1.0"


def test_every_page_is_linked_from_the_table() -> None:
    text = (ROOT / "docs/recipes/index.md").read_text(encoding="utf-8")
    for path in PAGES:
        assert path.stem == "index" or f"({path.name})" in text, path.name
