"""The folder of a training run: its settings, and copies of the board and rules files it plays by.

A run may be lengthened and rated otherwise (CHANGEABLE); all else stays as it began.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from busenv.experiments.ratings.schedule import RunError
from busenv.experiments.ratings.store import SETTINGS
from busenv.train.checkpoint import NAME, read_state
from busenv.train.config import Config, read_config

from busenv.board import board_names, load_board
from busenv.files import write_whole
from busenv.rules import EDITIONS, as_rules

BOARD, RULES = "board.json", "rules.json"
CHANGEABLE = ("seconds", "decisions", "rate_every", "rate_games", "rated")


def keep_config(folder: Path, config: Config) -> list[str]:
    """Keep the settings of a run in its folder; returns in words what has changed since before.

    RunError when the folder holds a run with other settings that cannot change, or one that has
    gone further than the new length.
    """
    path = folder / SETTINGS
    if not path.exists():
        settings = config.to_dict()
        if config.board not in board_names():
            write_whole(folder / BOARD, Path(config.board).read_bytes())
            settings["board"] = BOARD  # beside this file, so the folder can move
        if config.rules not in EDITIONS:
            write_whole(folder / RULES, json.dumps(as_rules(config.rules).to_dict(), indent=1))
            settings["rules"] = RULES
        _write_settings(path, settings)
        return []
    kept = read_config(str(path))
    names = [
        name
        for name in Config.model_fields
        if _content(name, getattr(kept, name)) != _content(name, getattr(config, name))
    ]
    if fixed := [name for name in names if name not in CHANGEABLE]:
        differences = ", ".join(
            f"{name} {_content(name, getattr(kept, name))!r}, "
            f"not {_content(name, getattr(config, name))!r}"
            for name in fixed
        )
        raise RunError(
            f"{folder} holds a run with {differences}; "
            f"give the same settings to go on (but for {', '.join(CHANGEABLE)}), or another folder"
        )
    if {"seconds", "decisions"} & set(names):
        _check_length(folder, config)
    if names:
        changes = {name: config.to_dict()[name] for name in names}
        _write_settings(path, json.loads(path.read_bytes()) | changes)
    return [f"{name} {getattr(kept, name)} → {getattr(config, name)}" for name in names]


def _check_length(folder: Path, config: Config) -> None:
    """RunError when a run has already gone as far as its new settings would let it."""
    if not (folder / NAME).exists():
        return
    limit = "seconds" if config.decisions is None else "decisions"
    done, length = read_state(folder)[limit], getattr(config, limit)
    if length <= done:
        raise RunError(
            f"{limit} is {length:,}, but the run in {folder} has already had {done:,.0f}; "
            "allowed: more than that, or another folder"
        )


def _content(name: str, value: Any) -> Any:
    """What a setting comes to: of files what they hold, not where they are."""
    if name == "board":
        board = load_board(value)
        return f"{board.name} (fingerprint {board.fingerprint})"
    if name == "rules":
        rules = as_rules(value)
        return rules.to_dict() if rules.name == "custom" else rules.name
    return value


def _write_settings(path: Path, settings: dict[str, Any]) -> None:
    write_whole(path, json.dumps(settings, indent=1) + "\n")
