"""Run the commands behind the figures of README and docs again, and compare.

    python -m experiments.claims                              # lists the claims and commands
    python -m experiments.claims planner/greedy/4             # runs one again
    python -m experiments.claims --below 10                   # all that take less than 10 seconds
    python -m experiments.claims planner/greedy/4 --update    # writes the measured figures

`claims.json` holds the claims by key: a text of the pages, and the command that measures its
figures. The exit status is 1 when a command fails or a figure differs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from busenv.common.cores import available_cores
from busenv.error_text import did_you_mean
from busenv.io import read_json, write_whole

ROOT = Path(__file__).parents[1]
REGISTRY = Path(__file__).with_name("claims.json")
RATED = r"par +rank +points\n.*\n\S+ +[\d,]+ +([\d.]+% +\[[^]]+\])"  # the first row of a rating
NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?"
DIGEST = "[0-9a-f]{64}"  # SHA-256
FIGURE = re.compile(
    rf"{DIGEST}|({NUMBER})%?(?: \[({NUMBER}), ({NUMBER})\]| to ({NUMBER})%?)?( thousand| million)?"
)
SCALES = {" thousand": 1e3, " million": 1e6}
PROGRAMS = {"busenv": [sys.executable, "-m", "busenv"], "python": [sys.executable]}


@dataclass(frozen=True)
class Claim:
    """One or more figures that a command prints.

    text: as pages show it; a list holds the rows of a table. Its figures are the numbers with an
    interval, such as 92.2% [89.2, 94.5] or 22 to 28 million, or all numbers and SHA-256 digests if
    none has one.
    command: one or several joined by " && "; they run in a folder with a copy of train/.
    unit, sample: what is counted, and out of how many. date, commit: of the measurement.
    cost: seconds, approximately.
    find: regular expression; its matches in the output hold the figures in the order of the text,
    whole, in one group, or as three groups: value, low, high.
    machine: "any" if the result depends on seeds only. exact: a new run prints the same digits;
    otherwise an interval that overlaps.
    """

    text: str | list[str]
    command: str
    unit: str
    sample: str
    date: str
    commit: str
    cost: float
    find: str = RATED
    machine: str = "any"
    exact: bool = False

    @property
    def shown(self) -> str:
        """The text as a page shows it."""
        return self.text if isinstance(self.text, str) else "\n".join(self.text)

    @property
    def figures(self) -> list[str]:
        """The figures of the text."""
        return find_figures(self.shown)


def read_claims() -> dict[str, Claim]:
    """Read the claims by key."""
    return {key: Claim(**entry) for key, entry in read_json(REGISTRY).items()}


def find_figures(text: str) -> list[str]:
    """Return the figures of a text in order; see `Claim`."""
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
            raise ValueError(f"{len(measured)} figures in the output, not {len(claim.figures)}")
    except (ValueError, OSError) as error:
        print(f"{key}: failed: {error}", flush=True)
        return False, []
    agree = []
    for old, new in zip(claim.figures, measured, strict=True):
        agree.append(old == new if claim.exact else _overlap(old, new))
        words = "agrees" if agree[-1] else "differs"
        print(f"{key}: expected {old}, measured {new}: {words}", flush=True)
    return all(agree), measured


def run(claim: Claim) -> str:
    """Return what the commands of a claim print; ValueError when one fails."""
    output = ""
    environment = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "train", Path(folder, "train"))  # recipes, which commands name
        for command in claim.command.split(" && "):
            program, *arguments = shlex.split(command)
            words = [*PROGRAMS.get(program, [program]), *arguments]
            done = subprocess.run(
                words, cwd=folder, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                lines = done.stderr.strip().splitlines() or ["no message"]
                raise ValueError(f"status {done.returncode} of {command}: {lines[-1]}")
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

    def figure(match: re.Match[str]) -> str:
        current = next(new) if match[0] in old else match[0]
        # A range from several days is kept when one run prints one number.
        return match[0] if match[4] and " to " not in current else current

    text = FIGURE.sub(figure, claim.shown)
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return replace(
        claim,
        text=text if isinstance(claim.text, str) else text.split("\n"),
        machine="any" if claim.machine == "any" else f"{available_cores()} cores",
        date=time.strftime("%Y-%m-%d"),
        commit=commit.strip(),
        cost=round(seconds),
    )


def pages() -> list[Path]:
    """Return the pages that state claims."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def update(claims: dict[str, Claim], key: str, current: Claim) -> None:
    """Write a claim's current figures into the registry and the pages."""
    old = claims[key].shown
    claims[key] = current
    defaults = {field.name: field.default for field in fields(Claim)}
    entries = {
        key: {name: value for name, value in asdict(claim).items() if value != defaults[name]}
        for key, claim in claims.items()
    }
    write_whole(REGISTRY, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    if current.shown != old and old in {claim.shown for claim in claims.values()}:
        print(f"{key}: another claim has the same text; edit the pages: {current.shown}")
        return
    pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (changed := pattern.sub(lambda _: current.shown, text)) != text:
            write_whole(path, changed)
            print(f"Updated: {path}")


def main() -> None:
    """List, check or update claims."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.claims",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="claims to measure again")
    parser.add_argument("--all", action="store_true", help="all claims, which takes days")
    parser.add_argument(
        "--below",
        type=float,
        metavar="SECONDS",
        default=0.0,
        help="claims that do not depend on the machine and take less time",
    )
    parser.add_argument(
        "--update", action="store_true", help="write the figures into claims.json and the pages"
    )
    arguments = parser.parse_args()
    claims = read_claims()
    for key in arguments.keys:
        if key not in claims:
            parser.error(f"no claim {key!r}{did_you_mean(key, claims)}")
    keys = [*claims] if arguments.all else arguments.keys
    keys += [
        key
        for key, claim in claims.items()
        if claim.machine == "any" and claim.cost < arguments.below and key not in keys
    ]
    if not keys:
        print("\n".join(f"{key}: {claim.command}" for key, claim in claims.items()))
    status = 0
    for key in keys:
        start = time.monotonic()
        agree, figures = check_claim(key, claims[key])
        status = status if agree else 1
        if arguments.update and figures:
            update(claims, key, with_figures(claims[key], figures, time.monotonic() - start))
    sys.exit(status)


if __name__ == "__main__":
    main()
