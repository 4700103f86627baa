"""The comparison as a table: its columns, and the table on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lighttail.report.format import interval, number, probability

if TYPE_CHECKING:
    from rich.table import Table

    from lighttail.report.comparison import Comparison, Entry


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


def table(comparison: Comparison) -> Table:
    """One row a policy; heavy tails in red where there are colours."""
    from rich.table import Table

    title = (
        f"Regret after {comparison.horizon:,} pulls, {comparison.paths:,} paths, "
        f"seed {comparison.seed}; 95 % intervals in brackets"
    )
    result = Table(title=title, title_justify="left", header_style="bold")
    result.add_column("policy")
    for heading in headings(comparison):
        result.add_column(heading, justify="right")
    for entry in comparison.entries:
        texts = [" ".join(filter(None, cell)) for cell in cells(entry)]
        result.add_row(entry.label, *texts, style="red" if entry.heavy_here else None)
    return result
