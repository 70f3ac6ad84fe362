"""The command line: help, suggestions and wrong calls."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import busenv
from busenv import cli
from busenv.cli.command import new_folder
from tests.support.commands import refusal
from tests.support.tables import help_text

GAME = str(Path(busenv.__file__).parent / "pictures/game.json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rate greedy random --seed 1.5", "'1.5' is not a whole number from 0 to 2**31 - 1"),
        ("fly", "invalid choice: 'fly' (choose from"),
        ("demo --seconds nan", "'nan' is not a number greater than 0"),
        ("demo --games -3", "'-3' is not a whole number greater than 0"),
        ("rate uct greedy", "busenv: agent 'uct'; allowed: uct:SIMULATIONS"),
        ("rate plannr greedy", "busenv: unknown agent 'plannr'; did you mean 'planner'?"),
        ("rate greedy random --out file.json", "file.json is a file; allowed: a folder"),
        ("rate greedy random --out=", "argument --out: it is empty; give the path of a folder"),
        ("show file.json:3", "only a .jsonl file has numbered games; name file.json alone"),
        ("replay GAME -o folder", "folder: Is a directory"),
        ("train folder", "folder is not a run folder: it has no run.json"),
        ("train quick --set method=dqn", "method=dqn: input should be 'ppo'"),
        (
            "bench --against nowhere",
            "'nowhere' is neither a folder nor a commit of the current folder's repository: fatal:",
        ),
    ],
)
def test_invalid_arguments_are_reported_on_the_last_line(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.json").write_text("{}")
    error = refusal(capsys, *words.replace("GAME", GAME).split())
    assert message in error.splitlines()[-1]


def test_the_bare_command_prints_help(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([])
    assert stopped.value.code == 0
    assert "usage: busenv" in capsys.readouterr().out


def test_help_lists_commands_with_examples() -> None:
    text = help_text()
    assert max(map(len, text.splitlines())) <= 80
    for title, group in cli.GROUPS.items():
        lines = text[text.index(f"{title}:") :].splitlines()[1:]
        for command, line in zip(group, lines, strict=False):
            assert line.startswith(f"  {command.name} ")
            assert line.endswith(f"  busenv {command.examples[0].partition(' ')[2]}")


@pytest.mark.parametrize("name", [*cli.COMMANDS])
def test_every_command_has_examples_that_parse(name: str) -> None:
    text = help_text(name)
    assert max(map(len, text.splitlines())) <= 80
    for example in cli.COMMANDS[name].examples:
        assert f"  {example}" in text
        words = example.partition("  ")[0].split()
        assert words[0] == "busenv"
        assert cli.parser().parse_args(words[1:]).command == name


@pytest.mark.parametrize(
    ("variables", "words", "expected"),
    [
        ({"PYTHONOPTIMIZE": "2"}, ["--help"], b"usage: busenv COMMAND"),
        ({"PYTHONIOENCODING": "cp1252"}, ["show", GAME], rb"grow line 19\u219225"),
    ],
)
def test_commands_run_without_docstrings_and_write_every_character(
    variables: dict[str, str], words: list[str], expected: bytes
) -> None:
    command, environment = [sys.executable, "-m", "busenv", *words], {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert expected in done.stdout


def test_a_closed_pipe_ends_a_command_without_a_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "busenv", "show", GAME]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (cli.CLOSED_PIPE, b"")


def test_info_reports_versions_board_and_speed(capsys: pytest.CaptureFixture) -> None:
    cli.main(["info"])
    out = capsys.readouterr().out
    for word in ("numba", "36 intersections", "capstone-2024", "million decisions per second"):
        assert word in out


def test_commands_that_start_together_get_different_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [new_folder("rate") for _ in range(3)]
    assert len({*folders}) == 3
    assert all(folder.is_dir() for folder in folders)
