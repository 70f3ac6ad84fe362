"""The program for GPUs, as far as it runs without one."""

import json
from pathlib import Path

import pytest

from experiments import gpu_benchmark


def test_the_program_runs_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts in small; the result holds each of them."""
    monkeypatch.setattr(gpu_benchmark, "SIZES", (32, 64))
    monkeypatch.setattr(gpu_benchmark, "BOTS", ("random",))
    monkeypatch.setattr(gpu_benchmark, "environment_speed", lambda device, games, seconds: games)
    monkeypatch.setattr(gpu_benchmark, "available_cores", lambda: 1)
    sizes = {"COMPARED_GAMES": 8, "COMPARED_STEPS": 62, "RATING_GAMES": 16}
    for name, value in (sizes | {"SELFPLAY_GAMES": 2, "COMPARED_SELFPLAY": 2}).items():
        monkeypatch.setattr(gpu_benchmark, name, value)
    small = {"games": 64, "steps": 8, "batch_size": 256}
    monkeypatch.setattr(gpu_benchmark, "PPO_SETTINGS", small)
    arguments = "--device cpu --seconds 2"
    monkeypatch.setattr("sys.argv", ["gpu_benchmark", str(tmp_path), *arguments.split()])
    gpu_benchmark.main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["compared_decisions"] >= 2_900
    assert result["environment"] == {"32": 32, "64": 64}
    assert result["selfplay"]["equal_games"] >= 1
    assert result["selfplay"]["positions_per_second"] > result["selfplay"]["samples_per_second"] > 0
    assert result["ppo"]["training_decisions"] > 0 < result["ppo"]["per_second"]
    assert 0 <= result["random"] <= 1
    assert (tmp_path / "ppo/model.safetensors").is_file()
