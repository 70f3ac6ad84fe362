"""The program for GPUs, as far as it runs without one."""

import json
from pathlib import Path

import pytest

from experiments import gpu_benchmark


def test_the_program_runs_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts in small; the result holds each of them."""
    monkeypatch.setattr(gpu_benchmark, "SIZES", (32, 64, 10**6))
    monkeypatch.setattr(gpu_benchmark, "BOTS", ("random",))
    monkeypatch.setattr(gpu_benchmark, "environment_speed", lambda device, games, seconds: games)
    monkeypatch.setattr(gpu_benchmark, "available_cores", lambda: 1)
    arguments = (
        "--device cpu --compare 3000 --compare-games 8 --largest 64 --seconds 2 --games 64 "
        "--steps 8 --batch-size 256 --rating-games 16"
    )
    monkeypatch.setattr("sys.argv", ["gpu_benchmark", str(tmp_path), *arguments.split()])
    gpu_benchmark.main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["compared_decisions"] >= 2_900
    assert result["environment"] == {"32": 32, "64": 64}
    assert result["ppo"]["training_decisions"] > 0 < result["ppo"]["per_second"]
    assert 0 <= result["random"] <= 1
    assert (tmp_path / "ppo/model.safetensors").is_file()
