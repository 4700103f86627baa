"""Several policies on one problem: a table, figures and a page that needs no network."""

from lighttail.report.comparison import Comparison, Entry, compare
from lighttail.report.write import write_report

__all__ = ["Comparison", "Entry", "compare", "write_report"]
