"""The columns of the comparison's table, on the screen and in the page."""

from __future__ import annotations

from lighttail.report.comparison import Comparison, Entry
from lighttail.report.format import interval, number, probability


def headings(comparison: Comparison) -> list[str]:
    """What the columns hold."""
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
