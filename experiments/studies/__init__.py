"""Studies: fits of the parameters of bundled agents, comparison of training targets."""

from __future__ import annotations

import argparse


class _Formatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Keeps the lines of the description, and appends defaults to the help of options."""


def study_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a study. name: of its module. description: the module's docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m busenv.experiments.studies.{name}",
        description=description,
        formatter_class=_Formatter,
    )
