"""The files of a report."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lighttail.checks import file_path, refuse
from lighttail.outcomes.comparison import Comparison
from lighttail.report.figures import SETTINGS, draw, histogram_figure, survival_figure
from lighttail.report.page import page
from lighttail.system.files import output_folder, whole_files

FILES = ("survival.png", "survival.svg", "histograms.png", "histograms.svg", "results.json", "report.html")


def write_report(
    comparison: Comparison, folder: str | os.PathLike[str], command: str = "", above: str = ""
) -> Path:
    """Write report.html, its figures as PNG and SVG, and results.json; returns the page's path.

    folder: is made if it does not exist. command: the command that made the comparison, if it was not a call
    of `compare`. above: HTML before the heading of the page.

    >>> import lighttail as lt, tempfile
    >>> comparison = lt.compare([lt.UCB(lt.LightTailed(0.2))], lt.Bandit([0.2, 0.8]), horizon=50, seed=1)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     page = lt.write_report(comparison, place)
    ...     print(page.name, sorted(file.suffix for file in page.parent.iterdir()))
    report.html ['.html', '.json', '.png', '.png', '.svg', '.svg']
    """
    if not isinstance(comparison, Comparison):
        raise refuse("comparison", comparison, "a Comparison, which `compare` returns")
    for field, text in (("command", command), ("above", above)):
        if not isinstance(text, str):
            raise refuse(field, text, "a text")
    place = file_path("folder", folder, "the path of a folder")
    with output_folder("folder", place):
        whole_files(place, _files(comparison, command or comparison.made_by, above))
    return place / "report.html"


def _files(comparison: Comparison, command: str, above: str) -> dict[str, bytes]:
    """The content of each file."""
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
    return files
