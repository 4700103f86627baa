"""The dashboard: pages that say what a live experiment shows, where its traffic goes, and what it risks

A view is a dictionary of plain numbers (`view.py`); every page is made from a view, with or without a server
(docs/dashboard.md)."""

from lighttail.dashboard.history import History
from lighttail.dashboard.view import experiment_view, service_view

__all__ = ["History", "experiment_view", "service_view"]
