"""Tables and progress bars are readable in a terminal of 80 columns, and of 60."""

import io

import pytest
from rich.console import Console

from busenv.common.console import TextTable

NAMES = ("random", "ppo:runs/a-long-name-of-a-folder/model.safetensors")
SHEET = TextTable(
    "Games won",
    ["agent", "against", "3 players\n(par 33%)", "4 players\n(par 25%)", "5 players\n(par 20%)"],
    [[name, "uct:300", *["52.1%\n[49.0, 55.2]"] * 3] for name in NAMES],
    names=2,
)


def shown(sheet: TextTable, width: int) -> list[str]:
    console = Console(record=True, width=width, file=io.StringIO())
    sheet.show(console)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [60, 80, 130, 200])
def test_tables_keep_names_and_figures_whole(width: int) -> None:
    lines = shown(SHEET, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert [text.count(cell) for cell in ("[49.0, 55.2]", "52.1%", "uct:300")] == [6, 6, 2]
    rule = next(number for number, line in enumerate(lines) if line.startswith("───"))
    column = lines[rule + 1].index("uct:300") - 1
    parts = "".join(line[:column].strip() for line in lines[rule + 1 :])
    assert parts == "".join(NAMES)  # folded, and nothing is lost
    one_line = any(line.count("52.1% [49.0, 55.2]") == 3 for line in lines)
    assert one_line == (width >= 130)


def test_tables_are_formatted_in_markdown() -> None:
    assert TextTable("t", ["a", "b\nc"], [["x|y", "1\n2"]]).markdown() == (
        "| a | b c |\n| --- | ---: |\n| x\\|y | 1 2 |\n"
    )
