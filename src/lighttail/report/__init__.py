"""Shows results: tables on the screen, figures, and pages that need no network."""

from lighttail.report.write import write_report

__all__ = ["write_report"]
