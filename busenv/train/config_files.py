"""Settings of a run from a preset or a JSON file, which may be untrusted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from busenv.agents.specs import runs_code
from busenv.error_text import did_you_mean, truncate
from busenv.io import read_json
from busenv.schema import LONGEST_SENTENCE
from busenv.train.config import PRESETS, PPOConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig

AnyConfig = PPOConfig | ExpertConfig
CONFIG_CLASSES: dict[str, type[PPOConfig] | type[ExpertConfig]] = {
    "ppo": PPOConfig,
    "expert": ExpertConfig,
}
ALL_PRESETS: dict[str, AnyConfig] = {**PRESETS, "expert": ExpertConfig()}


def _config_class(content: dict[str, Any]) -> type[PPOConfig] | type[ExpertConfig]:
    """Return the class of a file's settings by its `method`; ValueError for an unknown one."""
    method = content.get("method", "ppo")
    if not isinstance(method, str) or method not in CONFIG_CLASSES:
        raise ValueError(
            f"method is {truncate(repr(method), 80)}; allowed: {', '.join(CONFIG_CLASSES)}"
        )
    return CONFIG_CLASSES[method]


def config_class_of(source: str) -> type[PPOConfig] | type[ExpertConfig]:
    """Return the class of the settings that `read_config` reads, and raise the same errors."""
    return type(ALL_PRESETS[source]) if source in ALL_PRESETS else _read(Path(source))[0]


def _read(path: Path) -> tuple[type[PPOConfig] | type[ExpertConfig], dict[str, Any]]:
    """Return the class of a file's settings, and the settings, which are not validated."""
    if path.suffix != ".json" or not path.exists():
        error = FileNotFoundError if path.suffix == ".json" else ValueError
        raise error(
            f"no preset, settings file or run folder {str(path)!r}"
            f"{did_you_mean(str(path), ALL_PRESETS)}; allowed: {', '.join(ALL_PRESETS)}, "
            "FILE.json, or a folder with run.json"
        )
    content = read_json(path)
    try:
        if not isinstance(content, dict):
            raise ValueError("expected a JSON object")
        return _config_class(content), content
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_config(source: str, named: Iterable[str] = ()) -> AnyConfig:
    """Read a preset by name, or a JSON file of the settings that differ from the defaults of its
    `method`.

    `board` and `rules` may name files in the folder of the JSON file.
    named: programs (`programs`) that the user has named on the command line; the file, which may be
        untrusted, may name no others, since an agent `exec:COMMAND` runs a command.

    ValueError when it is neither, has a wrong field or names another program, OSError when the
    file cannot be read.
    """
    if source in ALL_PRESETS:
        return ALL_PRESETS[source]
    path = Path(source)
    config_class, content = _read(path)
    try:
        if foreign := sorted(programs(content) - {*named}):
            raise ValueError(_program_error(content, foreign[0]))
        for name in ("board", "rules"):
            value = content.get(name)
            if isinstance(value, str) and _is_file(path.parent / value):
                content[name] = str(path.parent / value)
        return config_class().changed(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def programs(settings: dict[str, Any]) -> set[str]:
    """Return the agents that run programs or Python code, or ask a server."""
    return {spec for value in settings.values() for spec in _texts(value) if runs_code(spec)}


def _texts(value: Any) -> list[str]:
    """Return the texts of a setting, which may be a list."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [text for text in values if isinstance(text, str)]


def _program_error(content: dict[str, Any], program: str) -> str:
    """Describe that a file names a program, and how to allow it."""
    name, specs = next((n, _texts(v)) for n, v in content.items() if program in _texts(v))
    message = f"{name} has {program!r}: a settings file cannot start programs or query servers"
    listed = json.dumps(specs) if any("," in spec for spec in specs) else ",".join(specs)
    setting = f"{name}={listed}"
    if setting.isprintable():  # printed to the terminal
        message += f"; to allow it, add --set {shlex.quote(setting)}"
    return truncate(message, LONGEST_SENTENCE)


def _is_file(path: Path) -> bool:
    """Whether there is a file; False for names that the system refuses."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
