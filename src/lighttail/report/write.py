"""The files of a report."""

from __future__ import annotations

import json
from pathlib import Path

from lighttail.report.comparison import Comparison
from lighttail.report.figures import SETTINGS, draw, histogram_figure, survival_figure
from lighttail.report.page import page
from lighttail.system.files import whole_files

FILES = ("survival.png", "survival.svg", "histograms.png", "histograms.svg", "results.json", "report.html")


def write_report(comparison: Comparison, folder: Path, command: str, above: str = "") -> Path:
    """Write report.html, its figures as PNG and SVG, and results.json; returns the page's path.

    above: HTML to stand before the page's heading.
    """
    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        figures = {"survival": survival_figure(comparison), "histograms": histogram_figure(comparison)}
    files = {
        f"{name}.{form}": content
        for name, figure in figures.items()
        for form, content in draw(figure, ("png", "svg")).items()
    }
    html = page(comparison, command, files["survival.svg"], files["histograms.svg"], above)
    files["results.json"] = json.dumps(comparison.to_dict(command), indent=2, allow_nan=False).encode()
    files["report.html"] = html.encode()
    whole_files(folder, files)
    return folder / "report.html"
