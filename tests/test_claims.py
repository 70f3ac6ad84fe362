"""The figures of the pages: re-running their commands, and writing them into pages."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments import claims
from tests.support.pages import unclaimed_figures


def claim(text: str | list[str], output: str, **fields: Any) -> dict[str, Any]:
    """A claim whose command prints the output."""
    command = f'python -c \'print("""{output}""")\''
    return {
        "text": text, "command": command, "find": ".+", "unit": "games won", "sample": "10 games",
        "date": "2026-01-31", "commit": "0123456", "cost": 1.0, **fields,
    }  # fmt: skip


CLAIMS = {
    "exact": claim("76 to 203, 119 to 246", "76 to 203\n119 to 246", exact=True),
    "overlap": claim("48% [43, 53]", "net:x  52.4%  [47.5, 57.2]", find=r"\d.*"),
    "groups": claim("48% [43, 53]", "52.4%  47% to 57%", find=r"(\S+) +(\d+)% to (\d+)%"),
    "range": claim("22 to 28 million", "23,900,000", machine="2 cores"),
    "table": claim(["| a | 17.1 [13.6, 20.3] |", "| 9 | 0.0 [0.0, 0.0] |"], "18 [9, 21] 0 [-2, 1]"),
    "digest": claim(f"9 games, {'3a' * 32}", f"9 games, {'3b' * 32}", exact=True),
    "other digits": claim("48.0% [43.0, 53.0]", "48.1% [43.0, 53.0]", exact=True),
    "apart": claim("47% [43, 53] of the games", "54% [53.1, 60]"),
    "none": claim("5", "5", find="won"),
    "broken": claim("5", "5", command="python -c 'raise SystemExit(\"no games\")'"),
}


@pytest.fixture(autouse=True)
def _registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "REGISTRY", tmp_path / "claims.json")
    for name in ("train", "agents"):
        (tmp_path / name).mkdir()
    (tmp_path / "claims.json").write_text(json.dumps(CLAIMS))


def run(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str]:
    """The status and the output of the program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["claims", *arguments])
        with pytest.raises(SystemExit) as stopped:
            claims.main()
    captured = capsys.readouterr()
    return int(stopped.value.code or 0), captured.out + captured.err


def test_claims_are_listed_and_compared(capsys: pytest.CaptureFixture) -> None:
    status, out = run(capsys)
    assert status == 0
    assert all(f"{key}: python -c " in out for key in CLAIMS)
    assert "no claim 'overlaps'; did you mean 'overlap'?" in run(capsys, "overlaps")[1]
    status, out = run(capsys, "exact", "overlap", "groups", "range", "table")
    assert status == 0
    assert "overlap: expected 48% [43, 53], measured 52.4% [47.5, 57.2]: agrees" in out
    assert len(re.findall(": agrees$", out, re.MULTILINE)) == 7


def test_figures_that_differ_and_failed_commands_are_reported(
    capsys: pytest.CaptureFixture,
) -> None:
    status, out = run(capsys, "--all")
    assert status == 1
    for words in (
        f"measured {'3b' * 32}: differs",
        "other digits: expected 48.0% [43.0, 53.0], measured 48.1% [43.0, 53.0]: differs",
        "apart: expected 47% [43, 53], measured 54% [53.1, 60]: differs",
        "none: failed: 0 figures in the output, not 1",
        "no games",
        "overlap: expected",
    ):
        assert words in out


def test_cheap_claims_do_not_depend_on_the_machine(capsys: pytest.CaptureFixture) -> None:
    _, out = run(capsys, "--below", "1.5")
    assert "overlap: expected" in out
    assert "range: " not in out
    assert run(capsys, "--below", "1")[1].startswith("exact: python -c ")  # lists the claims


@pytest.mark.parametrize(
    "text",
    [
        "It wins 59% [54,\n64] of the games.",
        "33,000 positions per second",
        "22 to 28 million decisions\nper second",
        "wins 83% against",
        "54.3%",
        "0.5 ± 0.1",
        "a median of 31 ms",
        "1.8 times as many",
    ],
)
def test_figures_without_a_claim_are_found(text: str) -> None:
    assert unclaimed_figures(text, ["64%"])
    assert not unclaimed_figures(f"```sh\n{text}\n```\n{text}", [text.replace("\n", " ")])


def test_settings_and_par_need_no_claim() -> None:
    text = "95% intervals, par 25%; 0.5 seconds per decision, [0, 1], 40% of the games, 5 of 12"
    assert not unclaimed_figures(text, [])
