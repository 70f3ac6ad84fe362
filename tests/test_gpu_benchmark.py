"""The program for GPUs, as far as it runs without one."""

import json
from itertools import count
from pathlib import Path

import pytest
from safetensors import safe_open

from experiments import gpu_benchmark
from experiments.gpu_benchmark import COMPARED, compare


def test_the_program_runs_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts in small; the result holds each of them, and the model loads."""
    monkeypatch.setattr(gpu_benchmark, "SIZES", (32, 64, 10**6))
    monkeypatch.setattr(gpu_benchmark, "BOTS", ("random", "greedy"))
    seconds = count(0.0, 0.02)  # a clock that every reading advances
    monkeypatch.setattr(gpu_benchmark.time, "perf_counter", lambda: next(seconds))
    arguments = (
        "--device cpu --seconds 14 --rating-seconds 1 --rating-parts 1 --compare 3000 "
        "--compare-games 8 --largest 64 --games 64 --steps 8 --batch-size 256 --width 16 "
        "--snapshot-every 2"
    )
    monkeypatch.setattr("sys.argv", ["gpu_benchmark", str(tmp_path), *arguments.split()])
    gpu_benchmark.main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["compared_decisions"] >= 2_900
    assert set(result["environment"]) == {"32", "64"}
    assert min(result["environment"].values()) > 0
    assert {"training_decisions", "per_second", "curve"} == set(result["ppo"])
    assert result["ppo"]["curve"][-1]["total"] == result["ppo"]["training_decisions"]
    assert all(0 <= won <= played == 48 for won, played in result["wins"].values())
    with safe_open(tmp_path / "model.safetensors", "np") as model:
        assert "shared.weight" in model.keys()  # noqa: SIM118


def test_a_difference_from_the_cpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter([{"reward": "win"}, {"reward": "rank"}])
    make_env = gpu_benchmark.make_env
    monkeypatch.setattr(
        gpu_benchmark, "make_env", lambda *a, **settings: make_env(*a, **settings, **next(made))
    )
    with pytest.raises(AssertionError, match=r"rewards.* differs in step"):
        compare("cpu", COMPARED[0], 16, steps=400, seconds=60.0)


def test_a_time_that_leaves_none_for_ppo_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_benchmark, "BOTS", ("random",))
    arguments = "--device cpu --seconds 1 --compare 1 --compare-games 2 --largest 0 --games 4"
    monkeypatch.setattr("sys.argv", ["gpu_benchmark", str(tmp_path), *arguments.split()])
    with pytest.raises(ValueError, match="no time is left for PPO; increase --seconds by"):
        gpu_benchmark.main()
