"""Typed values from untrusted files: limited in size, with one-line error messages."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from busenv.error_text import truncate

LONGEST_SENTENCE = 1000  # characters of an error message
LONGEST_VALUE = 80  # characters of a quoted value


class Schema(BaseModel):
    """A typed value from a file: strict types, finite numbers, no unknown keys."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


Kind = TypeVar("Kind", bound=Schema)


def parse(kind: type[Kind], data: str | bytes) -> Kind:
    """Return a typed value from JSON text in any encoding of JSON.

    ValueError names the first error in one line.
    """
    try:
        if isinstance(data, bytes):
            data = data.decode(json.detect_encoding(data))
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
