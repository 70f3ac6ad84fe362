"""Studies: tuning of the planner, generated boards, generalisation, imitation."""

from __future__ import annotations

import argparse


def study_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a study. name: of its module. description: the module's docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m experiments.studies.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
