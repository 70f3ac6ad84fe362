"""The folder of a training run: its settings, and copies of the board and rules files it plays by.

A run may be lengthened and rated otherwise (CHANGEABLE); all else stays as it began.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from busenv.error_text import truncate
from busenv.experiments.common.runs import SETTINGS, RunError
from busenv.game.board import board_names, load_board
from busenv.game.rules import EDITIONS, as_rules
from busenv.io import write_whole
from busenv.train.checkpoint import NAME, read_state
from busenv.train.config_files import AnyConfig, programs, read_config

BOARD, RULES = "board.json", "rules.json"
CHANGEABLE = ("seconds", "decisions", "rate_every", "rate_games", "rated")


def keep_config(folder: Path, config: AnyConfig) -> None:
    """Keep the settings of a run in its folder, after `changes`."""
    path = folder / SETTINGS
    settings = config.to_dict()
    if path.exists():
        settings = json.loads(path.read_bytes()) | {name: settings[name] for name in CHANGEABLE}
    else:
        # Of what is in other files there are copies beside this one, so that the folder can move.
        if config.board not in board_names():
            board = json.loads(Path(config.board).read_bytes())
            board["name"] = load_board(config.board).name  # which may be that of the file
            write_whole(folder / BOARD, json.dumps(board), follow_links=False)
            settings["board"] = BOARD
        if config.rules not in EDITIONS:
            write_whole(
                folder / RULES,
                json.dumps(as_rules(config.rules).to_dict(), indent=1),
                follow_links=False,
            )
            settings["rules"] = RULES
    write_whole(path, json.dumps(settings, indent=1) + "\n", follow_links=False)


def changes(folder: Path, config: AnyConfig) -> list[str]:
    """In words, what settings change in the run that a folder holds; none if it holds no run.

    RunError when one of them cannot change, or the run has gone further than its new length, or the
    kept settings are not those of the checkpoint beside them.
    """
    path = folder / SETTINGS
    if not path.exists():
        if (folder / NAME).exists():
            raise RunError(f"{folder} has a {NAME} but no {SETTINGS}; choose another folder")
        return []
    kept = read_config(str(path), programs(config.to_dict()))
    if kept.method != config.method:
        raise RunError(f"{folder} holds a run with method {kept.method!r}, not {config.method!r}")
    _check_unchanged(folder, kept)
    names = [
        name
        for name in type(config).model_fields
        if _content(name, getattr(kept, name)) != _content(name, getattr(config, name))
    ]
    if fixed := [name for name in names if name not in CHANGEABLE]:
        differences = ", ".join(
            f"{name} {_words(name, getattr(kept, name))}, not {_words(name, getattr(config, name))}"
            for name in fixed
        )
        raise RunError(
            f"{folder} holds a run with {differences}; "
            f"give the same settings to go on (but for {', '.join(CHANGEABLE)}), or another folder"
        )
    if {"seconds", "decisions"} & set(names):
        _check_length(folder, config)
    return [f"{name} {getattr(kept, name)} → {getattr(config, name)}" for name in names]


def _check_unchanged(folder: Path, kept: AnyConfig) -> None:
    """RunError when the settings in a folder are no longer those that its run began with.

    Of board and rules, whose files may have moved, the content is compared (`Run`).
    """
    if not (folder / NAME).exists():
        return
    begun, now = read_state(folder).config, kept.to_dict()
    for name in begun.keys() & now.keys() - {*CHANGEABLE, "board", "rules"}:
        if begun[name] != now[name]:
            raise RunError(
                f"{folder / SETTINGS} has changed: {name} is {truncate(repr(now[name]), 80)}, but "
                f"the run began with {truncate(repr(begun[name]), 80)}"
            )


def _check_length(folder: Path, config: AnyConfig) -> None:
    """RunError when a run has already gone as far as its new settings would let it."""
    if not (folder / NAME).exists():
        return
    limit = "seconds" if config.decisions is None else "decisions"
    done, length = getattr(read_state(folder), limit), getattr(config, limit)
    if length <= done:
        raise RunError(
            f"{limit} is {length:,}, but the run in {folder} has already had {done:,.0f}; "
            "allowed: more than that, or another folder"
        )


def _content(name: str, value: Any) -> Any:
    """What a setting comes to: of files what they hold, not where they are."""
    if name == "board":
        return load_board(value).fingerprint
    return as_rules(value).to_dict() if name == "rules" else value


def _words(name: str, value: Any) -> str:
    """A setting for an error: of files what they hold, too."""
    if name == "board":
        return f"{value} (fingerprint {_content(name, value)})"
    if name == "rules" and value not in EDITIONS:
        return f"{value} ({_content(name, value)})"
    return repr(value)
