"""Scripts of train/, agents/ and docs/recipes run if their library is installed."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from busenv.agents import make_agent
from busenv.agents.match import play_match
from tests.support.pages import ROOT, blocks

PAGES = [*sorted((ROOT / "docs/recipes").glob("*.md")), ROOT / "docs/datasets.md"]
FILES = sorted([*ROOT.glob("train/*.py"), *ROOT.glob("agents/*.py")])
SCRIPTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
SCRIPTS |= {
    f"{path.stem} {number}": code
    for path in PAGES
    for number, code in enumerate(blocks(path, "python"), 1)
}

# Expressions for the masks, (..., num_actions), and actions, (...), that each learner stored.
STORED = {
    "train/sb3_maskable_ppo.py": (
        "model.rollout_buffer.action_masks, model.rollout_buffer.actions[..., 0]"
    ),
    "train/cleanrl_ppo.py": "masks, actions",
    "train/torchrl_ppo.py": "data['action_mask'], data['action']",
    "train/tianshou_dqn.py": "buffer.sample(0)[0].obs.mask, buffer.sample(0)[0].act",
    "train/agilerl_ppo.py": (
        "agent.rollout_buffer.buffer['action_masks'], "
        "agent.rollout_buffer.buffer['actions'].flatten(0, 1)"
    ),
    "train/skrl_ppo.py": (
        "memory.get_tensor_by_name('observations')[..., :375], memory.get_tensor_by_name('actions')"
    ),
}
CHECK = """
import numpy as np
stored_masks, stored_actions = (np.asarray(array) for array in ({stored}))
stored_masks = stored_masks.reshape(-1, 375).astype(bool)
stored_actions = stored_actions.reshape(-1).astype(int)
assert len(stored_masks) == len(stored_actions) > 0
print("legal:", stored_masks[np.arange(len(stored_actions)), stored_actions].mean())
"""


def run(code: str, folder: Path) -> str:
    """The output of a script that is shortened to its first update."""
    for line in ast.parse(code).body:
        names = []
        if isinstance(line, ast.ImportFrom):  # ray may be installed without RLlib
            rllib = line.module == "busenv.envs" and line.names[0].name == "rllib"
            names = ["ray.rllib.algorithms.ppo" if rllib else line.module]
        names += [alias.name for alias in line.names] if isinstance(line, ast.Import) else []
        names += ["jax"] if "minari" in names else []  # which its DataCollector requires
        for name in filter(None, names):
            pytest.importorskip(name, exc_type=ImportError)
    code = re.sub(r"^total = [\d_]+", "total = 160", code, flags=re.MULTILINE)
    code = code.replace("greedy, 200", "greedy, 20")  # games of an evaluation
    code = code.replace("default=1_000_000", "default=2000").replace("default=400", "default=16")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MINARI_DATASETS_PATH": str(folder)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in STORED])
def test_a_script_runs(name: str, tmp_path: Path) -> None:
    run(SCRIPTS[name], tmp_path)


@pytest.mark.parametrize("name", STORED)
def test_stored_actions_are_legal_by_the_stored_masks(name: str, tmp_path: Path) -> None:
    output = run(SCRIPTS[name] + CHECK.format(stored=STORED[name]), tmp_path)
    assert re.search(r"\d+% of games won", output), output
    assert output.splitlines()[-1] == "legal: 1.0"


def test_agilerl_credits_a_result_to_the_decisions_of_its_game(tmp_path: Path) -> None:
    """With the reward `win`, it is the return of the last decision."""
    script = SCRIPTS["train/agilerl_ppo.py"].replace('reward="shaped"', 'reward="win"')
    check = """
rewards, returns = (np.asarray(buffer.buffer[name]) for name in ("rewards", "returns"))
is_last = rewards != 0
print("games:", is_last.sum(), "credited:", np.allclose(returns[is_last], rewards[is_last]))
"""
    games, credited = run(script + check, tmp_path).splitlines()[-1].split()[1::2]
    assert int(games) > 0
    assert credited == "True"


def test_agents_to_copy_play_by_their_specs() -> None:
    specs = ["lookahead.py:Lookahead", "torch_policy.py:make"]
    agents = [make_agent(f"py:{ROOT}/agents/{spec}") for spec in specs]
    scores = play_match([*agents, make_agent("random")], 18)
    assert sum(score.wins for score in scores) == 18
    assert scores[0].points > scores[1].points  # random weights


def test_every_page_and_script_is_linked() -> None:
    index = (ROOT / "docs/recipes/index.md").read_text(encoding="utf-8")
    for path in PAGES:
        assert path.stem == "index" or path.name in index, path.name
    readme = ROOT / "agents/README.md"
    texts = "".join(path.read_text(encoding="utf-8") for path in (*PAGES, readme))
    for path in FILES:
        assert path.name in texts, path
