"""The files of a report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lighttail.checks import file_path, refuse
from lighttail.outcomes.comparison import Comparison
from lighttail.planning import Plan
from lighttail.report import plan_page
from lighttail.report.figures import SETTINGS, draw, histogram_figure, survival_figure
from lighttail.report.page import page
from lighttail.report.plan_figure import frontier_figure, losses_figure
from lighttail.system.files import output_folder, whole_files

FILES = ("survival.png", "survival.svg", "histograms.png", "histograms.svg", "results.json", "report.html")


def write_report(
    result: Comparison | Plan, folder: str | os.PathLike[str], command: str = "", above: str = ""
) -> Path:
    """Write a page, its figures as PNG and SVG, and results.json; returns the page's path.

    result: a `Comparison`, whose page is report.html, or a `Plan`, whose page is index.html.
    folder: is made if it does not exist. command: the command that made the result, if it was not a call
    of `compare` or `plan`. above: HTML before the heading of the page.

    >>> import lighttail as lt, tempfile
    >>> comparison = lt.compare([lt.UCB(lt.LightTailed(0.2))], lt.Bandit([0.2, 0.8]), horizon=50, seed=1)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     page = lt.write_report(comparison, place)
    ...     print(page.name, sorted(file.suffix for file in page.parent.iterdir()))
    report.html ['.html', '.json', '.png', '.png', '.svg', '.svg']
    """
    known = PAGES.get(getattr(type(result), "shown_as", ""))
    if known is None:
        raise refuse("result", result, "a Comparison or a Plan, which `compare` and `plan` return")
    for field, text in (("command", command), ("above", above)):
        if not isinstance(text, str):
            raise refuse(field, text, "a text")
    name, page_of, figures = known
    path = file_path("folder", folder, "the path of a folder")
    with output_folder("folder", path):
        command = command or result.made_by
        files = _drawn(result, figures)
        html = page_of(result, command, *(files[f"{figure}.svg"] for figure in figures), above)
        files["results.json"] = json.dumps(result.to_dict(command), indent=2, allow_nan=False).encode()
        whole_files(path, {**files, name: html.encode()})
    return path / name


def _drawn(result: Any, figures: Figures) -> dict[str, bytes]:
    """The figures by the names of their files."""
    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        drawn = {name: figure_of(result) for name, figure_of in figures.items()}
    return {
        f"{name}.{form}": content
        for name, figure in drawn.items()
        for form, content in draw(figure, ("png", "svg")).items()
    }


Figures = dict[str, Callable[[Any], Any]]  # by name: what draws a result
PAGES: dict[str, tuple[str, Callable[..., str], Figures]] = {  # by `shown_as` of the result
    "comparison": ("report.html", page, {"survival": survival_figure, "histograms": histogram_figure}),
    "plan": ("index.html", plan_page.page, {"frontier": frontier_figure, "losses": losses_figure}),
}
