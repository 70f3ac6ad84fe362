"""Folder of a training run: its settings, and copies of its board and rules files.

A resumed run may change its length and its ratings (CHANGEABLE), and no other setting.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from busenv.common.runs import SETTINGS, RunError
from busenv.error_text import truncate
from busenv.game.board_specs import board_names, load_board, load_boards
from busenv.game.rules import EDITIONS, as_rules
from busenv.io import write_whole
from busenv.train.checkpoint import CHECKPOINT_FILE, read_state
from busenv.train.config_files import AnyConfig, programs, read_config

BOARD, RULES = "board.json", "rules.json"
CHANGEABLE = ("seconds", "decisions", "rate_every", "rate_games", "rated")


def store_config(folder: Path, config: AnyConfig) -> None:
    """Write the settings of a run to its folder, after `changed_settings`."""
    path = folder / SETTINGS
    settings = config.to_dict()
    if path.exists():
        settings = json.loads(path.read_bytes()) | {name: settings[name] for name in CHANGEABLE}
    else:
        # The folder holds copies of other files, so that it can be moved.
        if config.board not in board_names() and not load_boards(config.board).generator:
            board = json.loads(Path(config.board).read_bytes())
            board["name"] = load_board(config.board).name  # may be that of the file
            write_whole(folder / BOARD, json.dumps(board))
            settings["board"] = BOARD
        if config.rules not in EDITIONS:
            write_whole(folder / RULES, json.dumps(as_rules(config.rules).to_dict(), indent=1))
            settings["rules"] = RULES
    write_whole(path, json.dumps(settings, indent=1) + "\n")


def changed_settings(folder: Path, config: AnyConfig) -> list[str]:
    """Describe the settings that change in the run in a folder; empty if there is no run.

    RunError when one of them cannot change, when the run is already longer than its new length, or
    when the stored settings are not those of the checkpoint.
    """
    path = folder / SETTINGS
    if not path.exists():
        if (folder / CHECKPOINT_FILE).exists():
            raise RunError(
                f"{folder} has a {CHECKPOINT_FILE} but no {SETTINGS}; choose another folder"
            )
        return []
    stored = read_config(str(path), programs(config.to_dict()))
    if stored.method != config.method:
        raise RunError(f"{folder} holds a run with method {stored.method!r}, not {config.method!r}")
    _check_unchanged(folder, stored)
    changed = {
        name: (old, new)
        for (name, old), new in zip(stored, dict(config).values(), strict=True)
        if _content(name, old) != _content(name, new)
    }
    if differences := ", ".join(
        f"{name} {_describe(name, old)}, not {_describe(name, new)}"
        for name, (old, new) in changed.items()
        if name not in CHANGEABLE
    ):
        raise RunError(
            f"{folder} holds a run with {differences}; give the same settings to resume it (except "
            f"{', '.join(CHANGEABLE)}), or another folder"
        )
    if {"seconds", "decisions"} & changed.keys():
        _check_length(folder, config)
    return [f"{name} {old} → {new}" for name, (old, new) in changed.items()]


def _check_unchanged(folder: Path, stored: AnyConfig) -> None:
    """RunError when the stored settings are not those that the run started with."""
    if not (folder / CHECKPOINT_FILE).exists():
        return
    original, now = read_state(folder).config, stored.to_dict()
    # `TrainingRun` compares board and rules, whose files may have moved.
    for name in original.keys() & now.keys() - {*CHANGEABLE, "board", "rules"}:
        if original[name] != now[name]:
            raise RunError(
                f"{folder / SETTINGS} has changed: {name} is {truncate(repr(now[name]), 80)}, but "
                f"the run started with {truncate(repr(original[name]), 80)}"
            )


def _check_length(folder: Path, config: AnyConfig) -> None:
    """RunError when a run is already as long as its new settings allow."""
    if not (folder / CHECKPOINT_FILE).exists():
        return
    limit = "seconds" if config.decisions is None else "decisions"
    done, length = getattr(read_state(folder), limit), getattr(config, limit)
    if length <= done:
        raise RunError(
            f"{limit} is {length:,}, but the run in {folder} already had {done:,.0f}; "
            "allowed: more, or another folder"
        )


def _content(name: str, value: Any) -> Any:
    """Value of a setting to compare: the content of a file, not its path."""
    if name == "board":
        return load_boards(value).fingerprint
    return as_rules(value).to_dict() if name == "rules" else value


def _describe(name: str, value: Any) -> str:
    """Describe a setting for an error, with the content of files."""
    if name == "board":
        return f"{value} (fingerprint {_content(name, value)})"
    if name == "rules" and value not in EDITIONS:
        return f"{value} ({_content(name, value)})"
    return repr(value)
