"""Tokens of the language models in a rating, from the logs of their answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from busenv.common.console import TextTable
from busenv.common.jsonl import read_lines

REPLIES = "replies"  # folder in a run folder, with a file for each game
HEADER = ["agent", "requests", "retries", "input tokens", "output tokens"]


def language_tables(folder: Path) -> list[TextTable]:
    """Return the table of the language models of a rating, if it has one.

    Counts all logged answers, of unfinished games too. retries: requests after an invalid answer.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for file in sorted((folder / REPLIES).glob("*.jsonl")):
        rows: Iterable[dict[str, Any]] = read_lines(file)
        for row in rows:
            numbers = {"retries": row["attempt"] > 0, "input tokens": row["input_tokens"]}
            numbers |= {"requests": 1, "output tokens": row["output_tokens"]}
            counts[row["agent"]].update(numbers)
    table = [
        [name, *(f"{count[column]:,}" for column in HEADER[1:])] for name, count in counts.items()
    ]
    return [TextTable("requests to language models", HEADER, table)] if table else []
