"""The program for GPUs, as far as it runs without one."""

import json
from pathlib import Path

import pytest
from safetensors import safe_open

from busenv.experiments.profiling import gpu_benchmark
from busenv.experiments.profiling.gpu_benchmark import COMPARED, compare


def test_the_program_runs_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts in small; the result holds each of them, and the model loads."""
    monkeypatch.setattr(gpu_benchmark, "SIZES", (32, 64, 10**6))
    monkeypatch.setattr(gpu_benchmark, "BOTS", ("random", "greedy"))
    arguments = (
        "--device cpu --seconds 6 --rating-seconds 2 --rating-parts 1 --compare 3000 "
        "--compare-games 8 --games 64 --steps 8 --batch-size 256 --width 16 --snapshot-every 2"
    )
    monkeypatch.setattr("sys.argv", ["gpu_benchmark", str(tmp_path), *arguments.split()])
    gpu_benchmark.main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["compared_decisions"] >= 2_900
    assert set(result["environment"]) == {"32", "64"}
    assert min(result["environment"].values()) > 0
    assert {"decisions", "per_second", "curve"} == set(result["ppo"])
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
        compare("cpu", COMPARED[0], 16, 400)
