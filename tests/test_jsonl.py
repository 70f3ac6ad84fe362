"""Logs of JSON lines survive kills, full disks and damage."""

import errno
import os
import re
from pathlib import Path

import pytest

from busenv.common.jsonl import MAX_LINE, append_lines, read_lines


def test_a_half_written_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append_lines(path, [1, {"two": 2}])
    whole = path.read_bytes()
    for torn in (b"", b"3", b'{"three"'):
        path.write_bytes(whole + torn)
        assert [*read_lines(path)] == [1, {"two": 2}]
        append_lines(path, ["four"])
        assert [*read_lines(path)] == [1, {"two": 2}, "four"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{1\n", "line 2, is damaged: Expecting"),
        (b"[" * 100_000 + b"\n", "line 2, is damaged: maximum recursion"),
        (b"1" * MAX_LINE + b"\n", "line 2, is longer than 1,048,576 bytes"),
    ],
)
def test_damaged_lines_are_refused(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"1\n" + line + b"3\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {message}")):
        list(read_lines(path))


def test_a_full_disk_leaves_the_log_as_it_was_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    append_lines(path, [1])

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device") as error:
            append_lines(path, [2])
    assert error.value.filename == str(path)
    assert [*read_lines(path)] == [1]
