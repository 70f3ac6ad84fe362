"""The number of cores that a process may use."""

import os
from pathlib import Path

import pytest

from busenv.common import cores
from busenv.common.cores import available_cores


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000", 6), ("150000 100000", 2), ("10000 100000", 1), ("900000 100000", 6), ("", 6)],
)
def test_affinity_and_the_quota_of_a_container_limit_the_cores(
    quota: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "CPU_MAX", tmp_path / "cpu.max")
    if quota:
        (tmp_path / "cpu.max").write_text(quota + "\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert available_cores() == expected
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1
