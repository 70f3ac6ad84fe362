"""Tables and progress bars that stay readable in a terminal of 80 columns, and of 60."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from busenv.error_text import printable

GAPS = (2, 1)  # spaces between columns: usual, and in a narrow terminal
NAME = 10  # width to which a column of names may shrink
BAR = 20  # width of a progress bar


@dataclass(frozen=True)
class TextTable:
    """A table of strings, ready to print.

    The first `names` columns hold names, left-aligned, and long names are wrapped. All other
    columns hold figures, right-aligned, which are never wrapped inside a word. A line break in a
    figure or a header marks where it may be wrapped; in a wide terminal it is printed as a space.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    names: int = 1

    def show(self, console: Console) -> None:
        """Print the table within the terminal's width.

        A row is one line if it fits, otherwise several lines. If even wrapped columns do not fit,
        each figure is printed on its own line below the row's names.
        """
        console.print(Text(f"\n{printable(self.title)}", style="bold"))
        for broken, gap in ((False, GAPS[0]), *((True, gap) for gap in GAPS)):
            lines = self._lines(broken)
            room = console.width - gap * (len(self.header) - 1)
            widths = self._widths(lines, room if broken else None)
            if sum(widths) <= room:
                self._print_table(console, lines, widths, gap)
                return
        self._print_stack(console)

    def markdown(self) -> str:
        """Return the table in Markdown."""
        header, *rows = self._lines(broken=False)
        marks = ["---"] * self.names + ["---:"] * (len(header) - self.names)
        cells = [[cell.replace("|", "\\|") for cell in line] for line in (header, marks, *rows)]
        return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"

    def _lines(self, broken: bool) -> list[list[str]]:
        """Return header and rows, with line breaks kept or replaced by spaces."""
        gap = "\n" if broken else " "
        return [
            [gap.join(map(printable, cell.split("\n"))) for cell in row]
            for row in (self.header, *self.rows)
        ]

    def _widths(self, lines: list[list[str]], room: int | None) -> list[int]:
        """Return the columns' widths.

        room: total width, to which names, and headers between words, are wrapped as far as
            possible; None for no limit.
        """
        columns = [*zip(*lines, strict=True)]
        widths = [max(map(_width, column)) for column in columns]
        least = [
            min(width, NAME)
            if k < self.names
            else max([*map(_width, column[1:]), *map(cell_len, column[0].split())])
            for k, (width, column) in enumerate(zip(widths, columns, strict=True))
        ]
        while room is not None and sum(widths) > room:
            wide = [k for k in range(len(widths)) if widths[k] > least[k]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
        return widths

    def _print_table(
        self, console: Console, lines: list[list[str]], widths: list[int], gap: int
    ) -> None:
        # Cells are Text, because rich would interpret brackets in an agent's name as markup.
        columns = [
            Column(
                Text(name),
                width=width,
                overflow="fold",
                justify="left" if k < self.names else "right",
            )
            for k, (name, width) in enumerate(zip(lines[0], widths, strict=True))
        ]
        table = Table(*columns, box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        table.padding = (0, gap - 1, 0, 0)  # the box adds one more space
        for row in lines[1:]:
            table.add_row(*map(Text, row))
        console.print(table)

    def _print_stack(self, console: Console) -> None:
        header, *rows = self._lines(broken=False)
        for row in rows:
            console.print(Text(", ".join(row[: self.names])))
            for name, cell in zip(header[self.names :], row[self.names :], strict=True):
                console.print(Text(f"  {name}: {cell}"))


def _width(cell: str) -> int:
    """Return the width of a cell's widest line, in terminal columns."""
    return max(map(cell_len, cell.split("\n")))


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
