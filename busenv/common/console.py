"""Tables and progress bars that stay readable in a terminal of 80 columns, and of 60."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from busenv.error_text import printable

BAR = 20  # width of a progress bar


@dataclass(frozen=True)
class TextTable:
    """A table of strings, ready to print.

    The first `names` columns hold names, left-aligned; the others hold figures, right-aligned. A
    line break in a cell is printed as a space if the table then fits the terminal.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    names: int = 1

    def show(self, console: Console) -> None:
        """Print the table within the terminal's width.

        A row is one line if it fits; otherwise figures are wrapped at their line breaks, and names
        anywhere.
        """
        console.print(Text(f"\n{printable(self.title)}", style="bold"))
        table = self._table(" ", padding=1)
        unlimited = console.options.update_width(10_000)
        if console.measure(table, options=unlimited).maximum > console.width:
            table = self._table("\n", padding=0)
        console.print(table)

    def markdown(self) -> str:
        """Return the table in Markdown."""
        marks = ["---"] * self.names + ["---:"] * (len(self.header) - self.names)
        cells = [[_cell(cell, " ").replace("|", "\\|") for cell in row] for row in self.rows]
        lines = [[_cell(cell, " ") for cell in self.header], marks, *cells]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"

    def _table(self, line_break: str, padding: int) -> Table:
        # Cells are Text, because rich would interpret brackets in an agent's name as markup.
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, padding, 0, 0))
        for k, name in enumerate(self.header):
            is_name = k < self.names
            table.add_column(
                Text(_cell(name, line_break)),
                justify="left" if is_name else "right",
                overflow="fold",
                no_wrap=not is_name,
            )
        for row in self.rows:
            table.add_row(*(Text(_cell(cell, line_break)) for cell in row))
        return table


def _cell(text: str, line_break: str) -> str:
    return line_break.join(map(printable, text.split("\n")))


def print_path(console: Console, label: str, path: Path) -> None:
    """Print `LABEL: PATH` in one line, however long."""
    console.print(f"{label}: {path}", markup=False, soft_wrap=True)


def progress_bar(console: Console, what: str) -> Progress:
    """Return a progress bar; each task requires a field `note`, a short text after the bar."""
    return Progress(
        TextColumn(what),
        BarColumn(BAR, table_column=Column(width=BAR)),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )
