"""Tables on a narrow screen: no number and no name is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import lighttail as lt
from lighttail.report.terminal import comparison_tables, plain_table, widths

LONG = [
    (
        "choice: UCB + ArmOptimal(0.138, 0.138)",
        "6.28 [6.1, 6.48]",
        "0.98 % [0.97, 0.98] %",
        "simulated paths",
    ),
    ("least mean loss: UCB + Standard(0.0982)", "1,234 [1,201, 1,297]", "< 1.3 %", "importance sampling"),
]
COLUMNS = ("policy", "mean loss", "chance of the limit or more", "chance from")


def shown(tables: list[object], width: int) -> str:
    screen = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    for table in tables:
        screen.print(table)
    text: str = screen.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    return text


@pytest.mark.parametrize("width", [80, 100, 112, 140, 160])
def test_a_comparison_loses_no_number(width: int) -> None:
    policies = [lt.UCB(lt.AnyTime(0.282843)), lt.UCB(lt.ArmOptimal(0.138, 0.138)), lt.ThompsonSampling(0.8)]
    comparison = lt.compare(policies, lt.Bandit([0.2, 0.8]), horizon=200, paths=300, seed=1, growth=False)
    text = shown(comparison_tables(comparison, width), width)
    assert "…" not in text
    words = text.split()
    for entry in comparison.entries:
        for part in (entry.label, *(text for cell in entry.cells() for text in cell)):
            assert set(part.split()) <= set(words), part


@pytest.mark.parametrize("width", [62, 70, 80, 120])
def test_a_table_breaks_lines_between_words_alone(width: int) -> None:
    text = shown([plain_table("", COLUMNS, LONG, width)], width)
    assert {word for row in LONG for cell in row for word in cell.split()} <= set(text.split())


def test_a_table_that_is_too_wide_for_its_words_breaks_them_and_cuts_nothing() -> None:
    assert widths([COLUMNS, *LONG], 40) == [None] * 4
    text = shown([plain_table("", COLUMNS, LONG, 40)], 40)
    assert "…" not in text


def test_a_table_that_cuts_would_be_noticed() -> None:
    """Negative control: rich's own way cuts."""
    table = plain_table("", COLUMNS, LONG, 62)
    for column in table.columns:
        column.overflow, column.width = "ellipsis", 9
    assert "…" in shown([table], 62)
