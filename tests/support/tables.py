"""The generated tables of docs/: `python -m tests.support.tables` writes them into the pages."""

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from typing import Any

import pytest

import busenv
from busenv import cli
from busenv.observation import ObservationLayout
from busenv.train.config import PRESETS, PPOConfig, Settings
from busenv.train.expert_iteration.expert_config import ExpertConfig, FitConfig, SelfPlayConfig
from tests.support.pages import ROOT

TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def observation_table() -> str:
    """The parts of an observation of the city board."""
    layout = ObservationLayout(busenv.load_board("city"))
    lines = []
    for name, section in layout.sections.items():
        end = section.start + section.entries * section.width - 1
        order = ", stored feature by feature." if section.planes else "."
        lines += [
            f"### {name}",
            "",
            f"{section.entries} x {section.width} bytes, {section.start} to {end}{order}",
            "",
            "| part | shape | usual maximum | meaning |",
            "|---|---|---:|---|",
        ]
        lines += [
            f"| `{part.name}` | {part.shape} | {part.high} | {part.meaning} |"
            for part in layout.parts.values()
            if part.section == name
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


def settings_table(config: type[Settings]) -> str:
    """The settings of a training run: name, allowed values, default, meaning."""
    properties = config.model_json_schema()["properties"]
    lines = ["| setting | allowed | default | meaning |", "|---|---|---|---|"]
    for name, field in config.model_fields.items():
        columns = (
            f"`{name}`",
            _allowed(properties[name]),
            _value(field.default),
            field.description,
        )
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def presets_table() -> str:
    """The settings that differ between the presets of PPO."""
    names = [name for name, config in PRESETS.items() if isinstance(config, PPOConfig)]
    lines = ["| setting | " + " | ".join(f"`{name}`" for name in names) + " |"]
    lines.append("|---|" + "---|" * len(names))
    for field in PPOConfig.model_fields:
        values = [_value(getattr(PRESETS[name], field)) for name in names]
        if len({*values}) > 1:
            lines.append(f"| `{field}` | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """The value of a setting, in the form of the command line."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if text else "empty"


def _allowed(schema: dict) -> str:
    """The type and range of a setting, from its JSON schema."""
    schema = schema.get("anyOf", [schema])[0]
    if "const" in schema or "enum" in schema:
        values = schema.get("enum") or [schema["const"]]
        return ", ".join(f"`{value}`" for value in values)
    if schema["type"] == "array":
        return f"list of: {_allowed(schema['items'])}"
    if schema["type"] in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        above = "above " if "exclusiveMinimum" in schema else ""
        high = f"{schema['maximum']:,.16g}" if schema["maximum"] < 2**62 else "2**63 - 1"
        return f"{'int' if schema['type'] == 'integer' else 'float'}, {above}{low:g} to {high}"
    return {"string": "text", "boolean": "true, false"}[schema["type"]]


def commands_table() -> str:
    """The output of `busenv --help`, and the help of each command in it."""
    overview = f"```text\n{help_text()}```"
    names = re.findall(r"^ {2,4}([a-z]+)(?: {2,}|$)", overview, re.MULTILINE)
    parts = [overview]
    parts += [f"## {name}\n\n```text\n{help_text(name)}```" for name in names]
    return "\n\n".join(parts) + "\n"


@cache
def help_text(*words: str) -> str:
    """The output of `busenv WORDS --help` at 80 columns."""
    output = io.StringIO()
    with redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit, match="0"):
            cli.main([*words, "--help"])
    return output.getvalue()


TABLES: dict[str, Callable[[], str]] = {
    "commands": commands_table,
    "editions": editions_table,
    "observation": observation_table,
    "ppo_presets": presets_table,
    "ppo_settings": lambda: settings_table(PPOConfig),
    "expert_settings": lambda: settings_table(ExpertConfig),
    "selfplay_settings": lambda: settings_table(SelfPlayConfig),
    "fit_settings": lambda: settings_table(FitConfig),
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
