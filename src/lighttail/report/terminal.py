"""Tables on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from lighttail.outcomes.comparison import Comparison


WIDE = 150  # columns of the screen in which every row fits on one line
NARROW = 112  # columns of the screen below which there is room for two intervals per row


def plain_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> Table:
    """A table whose first column is text and whose other columns are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table


def comparison_table(comparison: Comparison, width: int) -> Table:
    """One row per policy. If `width` is short, intervals stand below their values."""
    table = plain_table(comparison.title(), ("policy", *comparison.headings()))
    table.columns[0].no_wrap = True
    between = " " if width >= WIDE else "\n"
    for entry in comparison.entries:
        texts = [
            between.join(filter(None, (value, limits if width >= NARROW or place in (0, 4) else "")))
            for place, (value, limits) in enumerate(entry.cells())
        ]
        table.add_row(entry.label, *texts)
    return table
