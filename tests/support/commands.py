"""Commands of the command line."""

import pytest

from busenv import cli


def refusal(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """The error output of a refused command."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err
