"""How the record of a game is written: as JSON text, and as bytes."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np

from busenv.error_text import quote
from busenv.errors import RecordError
from busenv.io import check_size

FORMAT = "busenv-game"
VERSION = 1
KEYS = frozenset(
    "format version rules board players first_player seed actions result".split()
)  # and "position", in the record of a game that began in one
MAGIC = b"BUSENV\0"
_HEAD = struct.Struct("<BII")  # version, length of the JSON head, CRC-32 of it and what follows


def check_format(fields: dict[str, Any]) -> None:
    """RecordError unless these are the fields of a record of a version that can be read."""
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise RecordError(f"not a game record: 'format' is not {FORMAT!r}")
    if type(fields.get("version")) is not int or fields["version"] != VERSION:
        raise RecordError(
            f"record version {quote(fields.get('version'))}; this busenv reads {VERSION}"
        )
    if wrong := (set(fields) ^ KEYS) - {"position"}:
        raise RecordError(f"record with missing or unknown keys: {quote(sorted(wrong))}")


def to_json(fields: dict[str, Any]) -> str:
    """A record's fields as JSON text, one key a line."""
    rows = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def parse_json(text: str | bytes) -> dict[str, Any]:
    """The fields in JSON text; RecordError when there are none."""
    check_size(text, "a game record", RecordError)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a game record: {error}") from error
    if not isinstance(data, dict):
        raise RecordError(f"not a game record: a JSON {type(data).__name__}, not an object")
    return data


def to_bytes(fields: dict[str, Any]) -> bytes:
    """A record's fields in compact form: a JSON head and two bytes an action, with a checksum."""
    head = json.dumps({**fields, "actions": []}).encode()
    body = head + np.array(fields["actions"], "<u2").tobytes()
    return MAGIC + _HEAD.pack(VERSION, len(head), zlib.crc32(body, len(head))) + body


def parse_bytes(data: bytes) -> dict[str, Any]:
    """The fields in what `to_bytes` wrote; RecordError says what is off."""
    check_size(data, "a game record", RecordError)
    start = len(MAGIC) + _HEAD.size
    if len(data) < start or not data.startswith(MAGIC):
        raise RecordError("not the bytes of a busenv game")
    version, length, checksum = _HEAD.unpack_from(data, len(MAGIC))
    if version != VERSION:
        raise RecordError(f"bytes of format version {version}; this busenv reads {VERSION}")
    if zlib.crc32(data[start:], length) != checksum or (len(data) - start - length) % 2:
        raise RecordError("the bytes of the game are damaged (checksum)")
    actions = np.frombuffer(data[start + length :], "<u2").tolist()
    return {**parse_json(data[start : start + length]), "actions": actions}
