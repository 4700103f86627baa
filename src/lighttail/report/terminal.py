"""The comparison as a table on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from lighttail.outcomes.comparison import Comparison


WIDE = 150  # columns in which every row fits on one line
NARROW = 112  # columns below which there is room for two intervals a row


def table(comparison: Comparison, width: int) -> Table:
    """One row per policy, intervals below the values where `width` is short; heavy tails in red."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = comparison.title()
    result = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    result.add_column("policy", no_wrap=True)
    for heading in comparison.headings():
        result.add_column(heading, justify="right")
    between = " " if width >= WIDE else "\n"
    for entry in comparison.entries:
        texts = [
            between.join(filter(None, (value, limits if width >= NARROW or place in (0, 4) else "")))
            for place, (value, limits) in enumerate(entry.cells())
        ]
        result.add_row(entry.label, *texts, style="red" if entry.heavy_here else None)
    return result
