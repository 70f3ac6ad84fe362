"""Files that may come from anyone, read into typed values: of limited size, and refused in one
sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from busenv.error_text import truncate

SMALL_FILE = 1_000_000  # bytes at most of a card, of settings
LONGEST_SENTENCE = 1000  # characters of an error
LONGEST_VALUE = 80  # of what is quoted in it


class Schema(BaseModel):
    """A typed value from a file: numbers are numbers, and finite."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


Kind = TypeVar("Kind", bound=Schema)


def read_limited(path: Path, limit: int = SMALL_FILE) -> bytes:
    """All of a file; ValueError when it holds more than `limit` bytes."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ValueError(f"{path} is no file")
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"{path} is too large; allowed: {limit:,} bytes")
    return data


def parse(kind: type[Kind], data: str | bytes) -> Kind:
    """A typed value from JSON text; ValueError, in one sentence, says what is wrong first."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise ValueError(what_is_wrong(error)) from None


def what_is_wrong(error: ValidationError) -> str:
    """The first thing that a value is refused for, in one sentence."""
    first = error.errors(include_url=False)[0]
    words = first["msg"][0].lower() + first["msg"][1:]
    where = ".".join(map(str, first["loc"]))
    where = truncate(where if where.isprintable() else repr(where), LONGEST_VALUE)
    if first["type"] == "missing":
        return f"{where} is missing"
    if where:
        words = f"{where} is {truncate(repr(first['input']), LONGEST_VALUE)}; {words}"
    return truncate(words, LONGEST_SENTENCE)
