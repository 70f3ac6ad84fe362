"""The figures of the pages: their registry, re-running them, and writing them into pages."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from busenv import cli
from busenv.common.runs import RunError
from busenv.evaluation.benchmark import claims
from tests.support.commands import refusal
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
    "apart": claim("48% [43, 53]", "54% [53.1, 60]"),
    "beyond": claim("22 to 28 million", "21,000,000"),
    "none": claim("5", "5", find="won"),
    "broken": claim("5", "5", command="python -c 'raise SystemExit(\"no games\")'"),
    "missing": claim("5", "5", command="no-such-program"),
}
PAGE = "Wins <!--claim overlap-->48% [43, 53]<!--/claim-->.\n\n<!--claim table-->\n<!--/claim-->\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a page and the claims."""
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "REGISTRY", tmp_path / "claims.json")
    (tmp_path / "claims.json").write_text(json.dumps(CLAIMS))
    (tmp_path / "README.md").write_text(PAGE)
    return tmp_path


def run(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str]:
    """The status and the output of `busenv bench claims`."""
    status = 0
    try:
        cli.main(["bench", "claims", *arguments])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    return status, capsys.readouterr().out


def test_claims_are_listed(clone: Path, capsys: pytest.CaptureFixture) -> None:
    status, out = run(capsys)
    assert status == 0
    assert "overlap: 48% [43, 53] games won, 10 games\n  2026-01-31, 0123456, 1 s" in out
    assert all(f"{key}: " in out for key in CLAIMS)
    error = refusal(capsys, "bench", "claims", "overlaps")
    assert "no claim 'overlaps'; did you mean 'overlap'?" in error
    error = refusal(capsys, "bench", "claims", "--cheap", "0.5")
    assert "no claim takes --cheap 0.5 seconds or less" in error


def test_figures_within_the_interval_agree(clone: Path, capsys: pytest.CaptureFixture) -> None:
    status, out = run(capsys, "exact", "overlap", "groups", "range", "table")
    assert status == 0
    assert "overlap: expected 48% [43, 53], measured 52.4% [47.5, 57.2]: agrees" in out
    assert len(re.findall(": agrees$", out, re.MULTILINE)) == 7


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("digest", f"measured {'3b' * 32}: differs"),
        ("other digits", "measured 48.1% [43.0, 53.0]: differs"),
        ("apart", "differs"),
        ("beyond", "measured 21,000,000: differs"),
        ("none", "failed: 0 figures in the output, 1 expected"),
        ("broken", "failed: status 1 of python .*: no games"),
        ("missing", "failed: .*no-such-program"),
    ],
)
def test_figures_that_differ_and_failed_commands_are_reported(
    key: str, words: str, clone: Path, capsys: pytest.CaptureFixture
) -> None:
    status, out = run(capsys, key, "overlap")
    assert status == 1
    assert re.search(f"^{key}: .*{words.replace('[', '.')}", out, re.MULTILINE)
    assert "overlap: expected" in out  # the others still run


def test_cheap_claims_fit_and_do_not_depend_on_the_machine() -> None:
    made = {
        key: claims.parse(claims.Claim, json.dumps(claim("1", "1", cost=cost, machine=machine)))
        for key, cost, machine in (
            ("c", 3.0, "any"), ("a", 1.0, "any"), ("b", 0.5, "2 cores"), ("d", 9.0, "any"),
        )
    }  # fmt: skip
    assert claims.select_claims(made, [], 4.0) == ["a", "c"]
    assert claims.select_claims(made, [], 3.9) == ["a"]
    assert claims.select_claims(made, ["b"], 0.0) == ["b"]


def test_update_writes_pages_and_measured_figures(
    clone: Path, capsys: pytest.CaptureFixture
) -> None:
    page = clone / "README.md"
    run(capsys, "--update")
    assert "<!--claim table-->\n| a | 17.1 [13.6, 20.3] |\n| 9 |" in page.read_text()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        user = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *user, *words], cwd=clone, check=True)
    status, _ = run(capsys, "table", "range", "apart", "digest", "broken", "--update")
    assert status == 1
    assert "| a | 18 [9, 21] |\n| 9 | 0 [-2, 1] |\n<!--/claim-->" in page.read_text()
    updated = claims.read_claims()
    assert updated["range"].text == "22 to 28 million"
    assert updated["apart"].text == "54% [53.1, 60]"
    assert updated["digest"].text == f"9 games, {'3b' * 32}"
    assert updated["apart"].commit != "0123456" < updated["apart"].date
    assert updated["broken"].commit == "0123456"


def test_updates_need_a_clone(clone: Path, capsys: pytest.CaptureFixture) -> None:
    (clone / "README.md").unlink()
    before = (clone / "claims.json").read_bytes()
    error = refusal(capsys, "bench", "claims", "table", "--update")
    assert "has no pages to update; allowed: a clone" in error
    assert (clone / "claims.json").read_bytes() == before


def test_pages_are_rewritten_from_the_registry(clone: Path) -> None:
    registry = claims.read_claims()
    assert claims.with_claims(PAGE, registry) != PAGE
    current = claims.with_claims(PAGE, registry)
    assert claims.with_claims(current, registry) == current
    with pytest.raises(RunError, match=r"claims.json has no claim 'unknown'"):
        claims.with_claims("<!--claim unknown-->5%<!--/claim-->", registry)


@pytest.mark.parametrize(
    "text",
    [
        "It wins 59% [54,\n64] of the games.",
        "| 17.1 [13.6, 20.3] |",
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
    assert unclaimed_figures(text)
    assert not unclaimed_figures(f"```sh\n{text}\n```\n<!--claim a-->{text}<!--/claim-->")


def test_settings_and_par_need_no_claim() -> None:
    text = "95% intervals, par 25%; 0.5 seconds per decision, [0, 1], 40% of the games, 5 of 12"
    assert not unclaimed_figures(text)
