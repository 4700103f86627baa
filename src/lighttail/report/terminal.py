"""The comparison as a table: its columns, and the table on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lighttail.report.format import interval, number, probability

if TYPE_CHECKING:
    from rich.table import Table

    from lighttail.report.comparison import Comparison, Entry


WIDE = 150  # columns in which every row fits on one line
NARROW = 112  # columns below which there is room for two intervals a row


def headings(comparison: Comparison) -> list[str]:
    """What the columns hold, on the screen and in the page."""
    return [
        "mean regret",
        "95 % quantile",
        "99 % quantile",
        "mean of worst 1 %",
        f"P(regret ≥ {comparison.threshold:g})",
        "worst path",
    ]


def cells(entry: Entry) -> list[tuple[str, str]]:
    """A policy's numbers in that order, each with its interval."""
    return [
        interval(entry.mean),
        interval(entry.quantile_95),
        interval(entry.quantile_99),
        interval(entry.cvar_99),
        probability(entry.exceedance),
        (number(entry.worst), ""),
    ]


def table(comparison: Comparison, width: int) -> Table:
    """One row a policy, intervals below the values where `width` is short; heavy tails in red."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = (
        f"Regret after {comparison.horizon:,} pulls, {comparison.paths:,} paths, "
        f"seed {comparison.seed}; 95 % intervals in brackets"
    )
    result = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    result.add_column("policy", no_wrap=True)
    for heading in headings(comparison):
        result.add_column(heading, justify="right")
    between = " " if width >= WIDE else "\n"
    for entry in comparison.entries:
        texts = [
            between.join(filter(None, (value, limits if width >= NARROW or place in (0, 4) else "")))
            for place, (value, limits) in enumerate(cells(entry))
        ]
        result.add_row(entry.label, *texts, style="red" if entry.heavy_here else None)
    return result
