"""Run the commands behind the figures of README and docs again, and compare.

    python -m experiments.claims                              # lists the claims and commands
    python -m experiments.claims planner/greedy/4             # runs one again
    python -m experiments.claims --below 10                   # all that take less than 10 seconds

`claims.json` holds the claims by key: a text of the pages, and the command that measures its
figures. The exit status is 1 when a command fails or a figure differs.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from busenv.error_text import did_you_mean
from busenv.io import read_json

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
    command: one or several joined by " && "; they run beside copies of train/ and agents/.
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


def check_claim(key: str, claim: Claim) -> bool:
    """Run a claim, print each figure and the measured one, and return whether all agree."""
    try:
        matches = re.findall(claim.find, run(claim), re.MULTILINE)
        texts = (m if isinstance(m, str) else "{} [{}, {}]".format(*m) for m in matches)
        measured = find_figures(" ; ".join(texts))
        if len(measured) != len(claim.figures):
            raise ValueError(f"{len(measured)} figures in the output, not {len(claim.figures)}")
    except (ValueError, OSError) as error:
        print(f"{key}: failed: {error}", flush=True)
        return False
    agree = []
    for old, new in zip(claim.figures, measured, strict=True):
        agree.append(old == new if claim.exact else _overlap(old, new))
        words = "agrees" if agree[-1] else "differs"
        print(f"{key}: expected {old}, measured {new}: {words}", flush=True)
    return all(agree)


def run(claim: Claim) -> str:
    """Return what the commands of a claim print; ValueError when one fails."""
    output = ""
    environment = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("train", "agents"):  # scripts and recipes, which commands name
            shutil.copytree(ROOT / name, Path(folder, name))
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
    match = FIGURE.fullmatch(figure)
    assert match
    value, low, high, end, unit = match.groups()
    scale = SCALES.get(unit, 1.0)
    return [scale * float(bound.replace(",", "")) for bound in (low or value, high or end or value)]


def main() -> None:
    """List or check claims."""
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
    agree = [check_claim(key, claims[key]) for key in keys]
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
