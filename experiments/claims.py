"""Claims: the figures of README and docs, each with the command that measures it.

`claims.json` holds the claims by key. A page marks the figures of a claim by two comments,
`<!--claim KEY-->92.2% [89.2, 94.5]<!--/claim-->`, and `update_pages` writes the claim's text
between them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from busenv.common.cores import available_cores
from busenv.common.runs import RunError
from busenv.error_text import did_you_mean
from busenv.io import write_whole
from busenv.schema import Schema, parse, read_limited

ROOT = Path(__file__).parents[1]
REGISTRY = Path(__file__).with_name("claims.json")
FOLDERS = ("tests", "train")  # of a clone, which commands name
MARKED = re.compile(r"(<!--claim ([a-z][^\s>]*)-->)(.*?)(<!--/claim-->)", re.DOTALL)
RATED = r"par +rank +points\n.*\n\S+ +[\d,]+ +([\d.]+% +\[[^]]+\])"  # the first row of a rating

NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?"
DIGEST = "[0-9a-f]{64}"  # SHA-256
FIGURE = re.compile(
    rf"{DIGEST}|({NUMBER})%?(?: \[({NUMBER}), ({NUMBER})\]| to ({NUMBER})%?)?( thousand| million)?"
)
SCALES = {" thousand": 1e3, " million": 1e6}
PROGRAMS = {"busenv": [sys.executable, "-m", "busenv.cli"], "python": [sys.executable]}


class Claim(Schema):
    """One or more figures that a command prints.

    text: what pages show; a list holds the lines of a table. Its figures are the numbers with an
    interval, such as 92.2% [89.2, 94.5] or 22 to 28 million, or all numbers and SHA-256 digests if
    none has one.
    command: one or several joined by " && "; they run in a folder with copies of FOLDERS.
    find: regular expression; its matches in the output hold the figures in the order of the text,
    whole, in one group, or as three groups: value, low, high.
    unit, sample: what is counted, and out of how many. machine: "any" if the result depends on
    seeds only. exact: a new run prints the same digits; otherwise an interval that overlaps.
    date, commit: of the measurement. cost: seconds, approximately.
    """

    text: str | tuple[str, ...]
    command: str
    find: str = RATED
    unit: str
    sample: str
    machine: str = "any"
    exact: bool = False
    date: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    commit: str = Field(pattern=r"^[0-9a-f]{7,40}$")
    cost: float

    @property
    def shown(self) -> str:
        """The text between the marks of a page."""
        return self.text if isinstance(self.text, str) else "\n".join(["", *self.text, ""])

    @property
    def figures(self) -> list[str]:
        """The figures of the text."""
        return find_figures(self.shown)


def read_claims() -> dict[str, Claim]:
    """Read the claims by key; ValueError names an invalid field in one line."""
    entries = json.loads(read_limited(REGISTRY))
    return {key: parse(Claim, json.dumps(fields)) for key, fields in entries.items()}


def write_claims(claims: Mapping[str, Claim]) -> None:
    """Write the claims to the registry."""
    entries = {key: claim.model_dump(exclude_defaults=True) for key, claim in claims.items()}
    write_whole(REGISTRY, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")


def select_claims(claims: Mapping[str, Claim], keys: Sequence[str], seconds: float) -> list[str]:
    """Return the keys, and those of the cheapest claims of any machine that fit in the seconds.

    ValueError when a key has no claim.
    """
    for key in keys:
        if key not in claims:
            raise ValueError(f"no claim {key!r}{did_you_mean(key, claims)}")
    selected = dict.fromkeys(keys)
    portable = [key for key, claim in claims.items() if claim.machine == "any"]
    for key in sorted(portable, key=lambda key: claims[key].cost):
        seconds -= claims[key].cost
        if seconds >= 0:
            selected[key] = None
    return [*selected]


def describe_claim(key: str, claim: Claim) -> str:
    """Describe a claim in two lines."""
    figures = claim.figures
    value = ", ".join(figures) if len(figures) <= 5 else f"{len(figures)} figures"
    exact = ", exact" if claim.exact else ""
    return (
        f"{key}: {value} {claim.unit}, {claim.sample}\n"
        f"  {claim.date}, {claim.commit}, {claim.cost:,.0f} s, machine: {claim.machine}{exact}: "
        f"{claim.command}"
    )


def find_figures(text: str) -> list[str]:
    """Return the figures of a text in order; see `Claim.text`."""
    matches = [*FIGURE.finditer(" ".join(text.split()))]
    return [match[0] for match in matches if match[2] or match[4]] or [m[0] for m in matches]


def check_claim(key: str, claim: Claim) -> tuple[bool, list[str]]:
    """Run a claim, and print each figure and the measured one.

    Returns whether all figures agree, and the measured ones; False and none when it fails.
    """
    try:
        matches = re.findall(claim.find, run(claim), re.MULTILINE)
        texts = (m if isinstance(m, str) else "{} [{}, {}]".format(*m) for m in matches)
        measured = find_figures(" ; ".join(texts))
        if len(measured) != len(claim.figures):
            raise RunError(f"{len(measured)} figures in the output, {len(claim.figures)} expected")
    except (RunError, OSError) as error:
        print(f"{key}: failed: {error}", flush=True)
        return False, []
    agree = []
    for old, new in zip(claim.figures, measured, strict=True):
        agree.append(old == new if claim.exact else _overlap(old, new))
        words = "agrees" if agree[-1] else "differs"
        print(f"{key}: expected {old}, measured {new}: {words}", flush=True)
    return all(agree), measured


def run(claim: Claim) -> str:
    """Return what the commands of a claim print; RunError when one fails."""
    output = ""
    environment = {**os.environ, "COLUMNS": "200"}  # one line for each row of a table
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name in FOLDERS if (ROOT / name).exists()):
            shutil.copytree(ROOT / name, Path(folder, name))
        for command in claim.command.split(" && "):
            program, *arguments = shlex.split(command)
            words = [*PROGRAMS.get(program, [program]), *arguments]
            done = subprocess.run(
                words, cwd=folder, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                lines = done.stderr.strip().splitlines() or ["no message"]
                raise RunError(f"status {done.returncode} of {command}: {lines[-1]}")
            output += done.stdout
    return output


def _overlap(one: str, other: str) -> bool:
    """Return whether the intervals of two figures overlap; that of a lone number is the number."""
    (low, high), (other_low, other_high) = _bounds(one), _bounds(other)
    return low <= other_high and other_low <= high


def _bounds(figure: str) -> list[float]:
    """Return the lower and upper bound of a figure."""
    match = FIGURE.fullmatch(figure)
    assert match
    value, low, high, end, unit = match.groups()
    scale = SCALES.get(unit, 1.0)
    return [scale * float(bound.replace(",", "")) for bound in (low or value, high or end or value)]


def with_figures(claim: Claim, measured: Sequence[str], seconds: float) -> Claim:
    """Return a claim with the figures of a run of so many seconds at this clone's commit."""
    old, new = claim.figures, iter(measured)

    def replace(match: re.Match[str]) -> str:
        figure = next(new) if match[0] in old else match[0]
        # A range from several days is kept when one run prints one number.
        return match[0] if match[4] and " to " not in figure else figure

    text = FIGURE.sub(replace, claim.shown)
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    changes = {
        "text": text if isinstance(claim.text, str) else tuple(text.split("\n")[1:-1]),
        "machine": "any" if claim.machine == "any" else f"{available_cores()} cores",
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit.strip(),
        "cost": round(seconds),
    }
    return claim.model_copy(update=changes)


def pages() -> list[Path]:
    """Return the pages that state claims."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def check_clone() -> None:
    """Raise RunError unless this is a clone of the repository, whose pages can be updated."""
    if not (ROOT / "README.md").is_file():
        raise RunError(f"{ROOT} has no pages to update; allowed: a clone of the repository")


def update_pages(claims: Mapping[str, Claim]) -> None:
    """Write the texts of the claims into the pages of a clone."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (current := with_claims(text, claims)) != text:
            write_whole(path, current)
            print(f"Updated: {path}")


def with_claims(page: str, claims: Mapping[str, Claim]) -> str:
    """Return a page with the texts of the claims between their marks; RunError for other keys."""

    def replace(match: re.Match[str]) -> str:
        if match[2] not in claims:
            raise RunError(f"{REGISTRY.name} has no claim {match[2]!r}")
        return f"{match[1]}{claims[match[2]].shown}{match[4]}"

    return MARKED.sub(replace, page)
