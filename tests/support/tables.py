"""The generated tables of docs/: `python -m tests.support.tables` writes them into the pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import chain

import busenv
from busenv.observation import ObservationLayout
from busenv.train.config import PPOConfig, RunConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from tests.support.pages import ROOT

SUBCOMMANDS = {"bench": [("bench", "agents")]}  # commands with a help text of their own
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def observation_table() -> str:
    """The parts of an observation of the city board."""
    layout = ObservationLayout(busenv.load_board("city"))
    lines = []
    for name, block in layout.blocks.items():
        end = block.start + block.entries * block.width - 1
        order = "; all of one feature, then all of the next." if block.planes else "."
        lines += [
            f"### {name}",
            "",
            f"{block.entries} x {block.width} bytes, {block.start} to {end}{order}",
            "",
            "| part | shape | usual maximum | meaning |",
            "|---|---|---:|---|",
        ]
        lines += [
            f"| `{part.name}` | {part.shape} | {part.high} | {part.meaning} |"
            for part in layout.parts.values()
            if part.block == name
        ]
        lines.append("")
    return "\n".join(lines)


def editions_table() -> str:
    """The fields of every edition."""
    editions = busenv.EDITIONS
    lines = ["| field | " + " | ".join(f"`{name}`" for name in editions) + " |"]
    lines.append("|---|" + "---|" * len(editions))
    for field in [*next(iter(editions.values())).__dataclass_fields__]:
        values = [str(getattr(rules, field)) for rules in editions.values()]
        lines.append(f"| `{field}` | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def settings_table(config: type[RunConfig]) -> str:
    """The settings of a training run: name, allowed values, default."""
    properties = config.model_json_schema()["properties"]
    lines = ["| setting | allowed | default |", "|---|---|---|"]
    for name, field in config.model_fields.items():
        default = field.default
        text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        schema = properties[name]
        lines.append(f"| `{name}` | {_allowed(schema)} | {f'`{text}`' if text else 'empty'} |")
    return "\n".join(lines) + "\n"


def _allowed(schema: dict) -> str:
    """The type and range of a setting, from its JSON schema."""
    schema = schema.get("anyOf", [schema])[0]
    if schema["type"] == "array":
        return f"list of: {_allowed(schema['items'])}"
    if schema["type"] in ("integer", "number"):
        bounds = [
            f"{sign} {schema[key]:g}"
            for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="))
            if key in schema
        ]
        return " ".join(["int" if schema["type"] == "integer" else "float", ", ".join(bounds)])
    return {"string": "text", "boolean": "true, false"}[schema["type"]]


def commands_table() -> str:
    """The output of `busenv --help`, and the help of each command in it."""
    overview = _help()
    names = re.findall(r"^ {2,4}([a-z]+)(?: {2,}|$)", overview, re.MULTILINE)
    parts = [overview]
    for words in chain.from_iterable([(name,), *SUBCOMMANDS.get(name, [])] for name in names):
        parts.append(f"## {' '.join(words)}\n\n{_help(*words)}")
    return "\n\n".join(parts) + "\n"


def _help(*words: str) -> str:
    """The output of `busenv WORDS --help` at 80 columns, fenced."""
    environment = {**os.environ, "COLUMNS": "80"}
    command = [sys.executable, "-m", "busenv.experiments.cli", *words, "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return f"```text\n{done.stdout}```"


TABLES: dict[str, Callable[[], str]] = {
    "commands": commands_table,
    "editions": editions_table,
    "observation": observation_table,
    "ppo_settings": lambda: settings_table(PPOConfig),
    "expert_settings": lambda: settings_table(ExpertConfig),
}


def with_tables(text: str) -> str:
    """A page with its generated tables replaced by current ones."""
    return TABLE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}", text)


def main() -> None:
    """Write the tables into the pages that have markers for them."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
