"""What was computed, shown: a table, figures and a page that needs no network."""

from lighttail.report.write import write_report

__all__ = ["write_report"]
