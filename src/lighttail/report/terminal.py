"""Tables on the screen, which show every number whole however narrow the screen is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from lighttail.outcomes.comparison import Comparison


WIDE = 150  # columns of a screen or a pipe in which every row is on one line
NARROW = 112  # columns of a screen in which all numbers fit next to each other
FIRST = (0, 4)  # the columns of the first of two tables: the mean, and the chance of the threshold
SECOND = (1, 2, 3, 5)  # those of the second table


def plain_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Table:
    """A table whose first column is text and whose other columns are numbers.

    width: the columns of the screen. A cell that is too long continues on the next line after a word, and is
    never cut.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    cells = [columns, *rows]
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for place, (name, wide) in enumerate(zip(columns, widths(cells, width), strict=True)):
        table.add_column(name, justify="right" if place else "left", overflow="fold", width=wide)
    for row in cells[1:]:
        table.add_row(*row)
    return table


def widths(cells: Sequence[Sequence[str]], screen: int) -> list[int | None]:
    """The width of every column: the longest line, or less, down to the longest word, if the screen is
    narrow. None if even the words do not fit; they are then broken.

    >>> widths([["policy", "mean loss"], ["UCB + Standard(0.8)", "7.28 [5.69, 9.93]"]], 40)
    [18, 17]
    """
    across = list(zip(*cells, strict=True))
    wide = [max(len(line) for cell in column for line in cell.split("\n")) for column in across]
    least = [max(len(word) for cell in column for word in [*cell.split(), ""]) for column in across]
    excess = sum(wide) - (screen - (3 * len(wide) - 1))  # two spaces and the box between columns
    if sum(wide) - sum(least) < excess:
        return [None] * len(wide)
    for _ in range(excess):
        widest = max(
            (place for place in range(len(wide)) if wide[place] > least[place]), key=wide.__getitem__
        )
        wide[widest] -= 1
    return [*wide]


def comparison_tables(comparison: Comparison, width: int) -> list[Table]:
    """One row per policy. Intervals stand below their values if the screen is narrow; if it is narrower, the
    mean and the chance are in one table, and the rest of the law is in another."""
    everything = range(len(comparison.headings()))
    if width >= WIDE:
        return [_table(comparison, everything, width, " ")]
    if width >= NARROW:
        return [_table(comparison, everything, width)]
    return [_table(comparison, FIRST, width), _table(comparison, SECOND, width, title="")]


def _table(
    comparison: Comparison, places: Sequence[int], width: int, between: str = "\n", title: str | None = None
) -> Table:
    names, rows = comparison.headings(), []
    for entry in comparison.entries:
        cells = entry.cells()
        texts = (between.join(filter(None, cells[place])) for place in places)
        rows.append((entry.label, *(text.replace(" (", f"{between}(") for text in texts)))
    title = comparison.title() if title is None else title
    return plain_table(title, ("policy", *(names[place] for place in places)), rows, width)
