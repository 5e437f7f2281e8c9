"""What the demo prints: steps with their times, tables, and text to copy; plain lines where no terminal is."""

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

PLAIN_WIDTH = 160
FIRST_COLUMN = 17


class Screen:
    """The terminal, or whatever standard output is instead."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()
        self.console = Console(highlight=False, markup=False, width=None if self.terminal else PLAIN_WIDTH)

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print a text; its lines are never broken, so that commands can be copied."""
        self.console.print(text, style=style, soft_wrap=True)

    def title(self, text: str) -> None:
        """Print a heading."""
        self.say()
        self.say(text, "bold")

    def pairs(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Print names and values, one pair a line."""
        for name, value in pairs:
            self.say(f"  {name:<{FIRST_COLUMN}} {value}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table."""
        self.console.print(made(columns, rows))

    @contextlib.contextmanager
    def step(self, name: str, doing: str) -> Iterator[list[str]]:
        """Do something that takes a while; print its name, its time and what it put into the list."""
        started, done = time.monotonic(), [doing]
        with self.console.status(f"{name}: {doing} ...") if self.terminal else contextlib.nullcontext():
            yield done
        self.say(f"  {name:<{FIRST_COLUMN}} {time.monotonic() - started:4.1f} s   {done[-1]}")

    @contextlib.contextmanager
    def live(self) -> Iterator[Live | None]:
        """A part of the screen that can be updated; None where there is no terminal."""
        if not self.terminal:
            yield None
            return
        with Live(console=self.console, auto_refresh=False, vertical_overflow="visible") as live:
            yield live


def made(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table without much ado; the last column gives way where the terminal is narrow."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="ellipsis", no_wrap=column != columns[-1])
    for row in rows:
        table.add_row(*row)
    return table
