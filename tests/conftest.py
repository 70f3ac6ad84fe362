"""Fixtures of several test modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from busenv.agents.external import program
from tests.support.programs import READY, command


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes a program and tells the spec that plays it."""

    def spec(code: str, start: str = READY, seconds: float = 20) -> str:
        path = tmp_path / "a program.py"
        path.write_text(start + code)
        return f"exec@{seconds}:{command(path)}"

    return spec


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of the programs that a test starts, as they start."""
    start, found = program.Program.__init__, []

    def noted(self: program.Program, name: str, arguments: list[str]) -> None:
        start(self, name, arguments)
        found.append(self._process.pid)

    monkeypatch.setattr(program.Program, "__init__", noted)
    return found
