"""Typed values from untrusted files: limited in size, with one-line error messages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from busenv.error_text import truncate

SMALL_FILE = 1_000_000  # bytes at most of a card or of settings
LONGEST_SENTENCE = 1000  # characters of an error message
LONGEST_VALUE = 80  # characters of a quoted value


class Schema(BaseModel):
    """A typed value from a file: strict types, finite numbers, no unknown keys."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


Kind = TypeVar("Kind", bound=Schema)


def read_limited(path: Path, limit: int = SMALL_FILE) -> bytes:
    """Return a file's content; ValueError when it holds more than `limit` bytes."""
    if path.exists() and not path.is_file():  # reading a pipe would block
        raise ValueError(f"{path} is not a file")
    with path.open("rb") as file:
        # Python allocates what it is asked for, and the file may grow.
        data = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
    if len(data) > limit:
        raise ValueError(f"{path} is too large; allowed: {limit:,} bytes")
    return data


def parse(kind: type[Kind], data: str | bytes) -> Kind:
    """Return a typed value from JSON text; ValueError names the first error in one line."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise ValueError(first_error(error)) from None


def first_error(error: ValidationError) -> str:
    """Return the first error of a value in one line."""
    first = error.errors(include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    where = ".".join(map(str, first["loc"]))
    where = truncate(where if where.isprintable() else repr(where), LONGEST_VALUE)
    if first["type"] == "missing":
        return f"{where} is missing"
    if where:
        message = f"{where} is {truncate(repr(first['input']), LONGEST_VALUE)}; {message}"
    return truncate(message, LONGEST_SENTENCE)
