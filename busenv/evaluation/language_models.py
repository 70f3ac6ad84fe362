"""Tokens and cost of the language models in a rating, from the logs of their replies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from busenv.agents.specs import parse_spec
from busenv.common.console import TextTable
from busenv.common.runs import RunError
from busenv.evaluation.dependencies import has_language_model
from busenv.evaluation.schedule import Schedule

REPLIES = "replies"  # folder in a run folder, with a file for each game
HEADER = ["agent", "requests", "retries", "input tokens", "output tokens", "cost"]


def language_tables(schedule: Schedule, folder: Path) -> list[TextTable]:
    """Return the table of the language models of a rating, if it has one.

    Counts all logged replies, of unfinished games too. retries: requests after an invalid answer.
    """
    if not has_language_model(schedule.specs):
        return []
    from busenv.agents.external.llm_settings import load_settings
    from busenv.agents.external.reply_log import read_replies

    counts = {label: Counter[str]() for label in schedule.labels}
    for file in sorted((folder / REPLIES).glob("*.jsonl")):
        try:
            entrants = schedule.seating(int(file.stem))[0]
            for row in read_replies(file):
                count = counts[schedule.labels[entrants[row["seat"]]]]
                count["requests"] += 1
                count["retries"] += row["attempt"] > 0
                count["input"] += row["input_tokens"]
                count["output"] += row["output_tokens"]
        except (ValueError, IndexError) as error:
            raise RunError(f"{file}: {error}") from error
    prices, rows = load_settings().prices, []
    for label, spec in zip(schedule.labels, schedule.specs, strict=True):
        if model := parse_spec(spec).language_model:
            count, cost = counts[label], "no price"
            if model in prices:
                dollars = prices[model][0] * count["input"] + prices[model][1] * count["output"]
                cost = f"${dollars / 1e6:.4f}"
            numbers = (count[name] for name in ("requests", "retries", "input", "output"))
            rows.append([label, *(f"{number:,}" for number in numbers), cost])
    return [TextTable("requests to language models", HEADER, rows)]
