"""Settings of a run from a preset, a JSON file, which may be untrusted, or the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from busenv.agents.specs import runs_code
from busenv.error_text import did_you_mean, quote
from busenv.io import read_json
from busenv.schema import first_error
from busenv.train.config import PRESETS, PPOConfig, Settings, unknown_setting
from busenv.train.expert_iteration.expert_config import ExpertConfig, FitConfig

AnyConfig = PPOConfig | ExpertConfig | FitConfig
METHODS: dict[str, type[AnyConfig]] = {"ppo": PPOConfig, "expert": ExpertConfig, "fit": FitConfig}
ALL_PRESETS: dict[str, AnyConfig] = {
    **PRESETS,
    # An hour.
    "expert": ExpertConfig(
        width=384,
        players=(3, 4, 5),
        learning_rate=5e-4,
        temperature=0.1,
        seconds=3600.0,
        rated=("greedy", "planner", "uct:100"),
        rate_every=600.0,
        rate_games=100,
    ),
}


def read_config(
    source: str, assignments: Iterable[str] = (), replaced: Mapping[str, Any] | None = None
) -> AnyConfig:
    """Read a preset by name, or a JSON file of the settings that differ from the defaults of its
    `method`, and change some settings.

    `board` and `rules` may name files in the folder of the JSON file. A file may be untrusted: an
    agent that runs a program must be named by the assignments instead.
    assignments: such as `seconds=60`; see `parse_settings`. replaced: further settings, by name.
    Values of the file that these replace need not be valid.

    ValueError, in one line, for another source, a wrong setting, or a program; OSError when the
    file cannot be read.
    """
    if source in ALL_PRESETS:
        preset = ALL_PRESETS[source]
        return preset.changed(parse_settings(assignments, type(preset)))
    path = Path(source)
    if path.suffix != ".json":
        raise ValueError(
            f"no preset, settings file or run folder {source!r}{did_you_mean(source, ALL_PRESETS)}"
            f"; allowed: {', '.join(ALL_PRESETS)}, FILE.json, or a folder with run.json"
        )
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object")
    method = content.get("method", "ppo")
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"{path}: method is {quote(method)}; allowed: {', '.join(METHODS)}")
    config = METHODS[method]
    changes = {**parse_settings(assignments, config), **(replaced or {})}
    try:
        limits = {"seconds", "decisions"}  # one replaces the other
        dropped = {*changes} | (limits if limits & changes.keys() else set())
        if "rate_every" in changes:
            dropped.add("rate_decisions")
        content = {n: v for n, v in content.items() if n not in dropped}
        for name, spec in programs(content).items():
            raise ValueError(
                f"{name} has {quote(spec)}: a settings file cannot start programs or query "
                f"servers; to allow it, set {name} by --set {name}=..."
            )
        for name in ("board", "rules"):
            value = content.get(name)
            with suppress(OSError, ValueError):  # names that the system refuses
                if isinstance(value, str) and (path.parent / value).is_file():
                    content[name] = str(path.parent / value)
        return config().changed({**content, **changes})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def programs(settings: dict[str, Any]) -> dict[str, str]:
    """Return settings with an agent that runs a program or Python code, or asks a server.

    By name; the value is the last such agent of the setting.
    """
    lists = {n: v if isinstance(v, (list, tuple)) else [v] for n, v in settings.items()}
    return {
        name: text
        for name, values in lists.items()
        for text in values
        if isinstance(text, str) and runs_code(text)
    }


def resume_command(config: AnyConfig, folder: Path, **changes: str) -> list[str]:
    """Return the arguments of `busenv` that resume a run, with changed settings.

    Settings that name programs are repeated, because a settings file cannot start programs.
    """
    stored = config.to_dict()
    named = {name: json.dumps(stored[name]) for name in programs(stored)}
    settings = [f"{name}={text}" for name, text in (named | changes).items()]
    return ["train", str(folder), *(["--set", *settings] if settings else [])]


def parse_settings(assignments: Iterable[str], kind: type[Settings]) -> dict[str, Any]:
    """Parse settings such as `seconds=60`; tuples are written with commas, or as JSON lists.

    ValueError, in one line, names an unknown setting, or a wrong value and what is allowed.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ValueError(f"setting {assignment!r}; allowed: NAME=VALUE")
        field = kind.model_fields.get(name)
        if field is None:
            raise ValueError(unknown_setting(name, kind))
        value: Any = text
        if get_origin(field.annotation) is tuple:
            value = tuple(part for part in text.split(",") if part)
            if text.startswith("["):
                with suppress(ValueError):  # not JSON: validated as the parts between commas
                    value = tuple(from_json(text))
        annotated: Any = Annotated[field.annotation, field]
        try:
            settings[name] = TypeAdapter(annotated).validate_python(value)
        except ValidationError as error:
            raise ValueError(f"{assignment}: {first_error(error)}") from None
    return settings
