"""The paper's numerical section as one page, and the files of its tables and figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from lighttail.paper.decay import LinearRegretChances, exponents_figure
from lighttail.paper.experiments import PARTS, PaperExperiment, Results
from lighttail.paper.figures import certain_figure, decay_figure, rewards_figure
from lighttail.paper.linear import LINEAR_PARTS, changing_table, horizons_table, noise_table, shapes_figure
from lighttail.paper.tables import PaperTable, arms_table, means_table, reach_table, readings_table
from lighttail.report.document import document, figure, made_by
from lighttail.report.figures import SETTINGS, draw
from lighttail.system.files import whole_files
from lighttail.system.progress import ReportPart

EXPERIMENTS = tuple(PaperExperiment(*part) for part in (*PARTS, *LINEAR_PARTS))
FIGURES: dict[str, Callable[[PaperExperiment, Results], Any]] = {
    "certain": certain_figure,
    "rewards": rewards_figure,
    "decay": decay_figure,
    "noisier": partial(rewards_figure, per_pull=True),
    "linear-shapes": shapes_figure,
}
TABLES: dict[str, Callable[[PaperExperiment, Results], PaperTable]] = {
    "means": means_table,
    "readings": readings_table,
    "arms": arms_table,
    "reach": reach_table,
    "linear-noise": noise_table,
    "linear-horizons": horizons_table,
    "linear-changing": changing_table,
}
CAPTIONS = {
    "certain": "With the reward estimator the regret of the shifted problem differs widely from path to "
    "path. With the loss estimator and a known bound it does not",
    "rewards": "The histograms of standard policies are hatched, and those of the new policies are filled. A "
    "hump far to the left consists of paths that stay with a bad arm",
    "decay": "The bars are 95 % intervals. If no path lost so much, a caret shows the upper limit. A level "
    "line means a polynomial tail on the left and an exponential tail on the right. A falling line means "
    "that the tail falls faster",
    "noisier": "The hyper-parameters are tuned for variance 1. The horizon grows with the variance, so that "
    "the problem is as hard as before",
    "linear-shapes": "Each curve is the chance to lose x T or more, with its 95 % band. The dotted line is "
    "at 0.1 T. A curve that is level on the right shows paths that stay with a bad action",
    "exponents": "P is the chance that the pseudo regret is 0.2 T or more, with two arms; it goes down from "
    "1e-2 to 1e-110. The bars are 95 % intervals, most of them smaller than the markers. On the left the "
    "standard policy is almost level: its chance of a linear regret falls like a power of T. On the right "
    "the new policies are level apart from √ln T: their chance falls exponentially in √(T ln T). The "
    "exponents of theory leave out the constants before the exponential. The theorem's exponent holds for "
    "every problem and is far below the exponent that we see on this problem",
}
INTRODUCTION = (
    "Every table and figure of the numerical section of “A Simple and Optimal Policy Design with Safety "
    "against Heavy-Tailed Risk for Stochastic Bandits” (Simchi-Levi, Zheng and Zhu), simulated again. The "
    "tables show our mean, the published mean, the difference, and z, which is the difference divided by its "
    "standard error. Cells with |z| > 4 are marked, and explained if an explanation is known."
)


def write_paper(
    experiments: Sequence[PaperExperiment],
    results: Results,
    folder: Path,
    command: str,
    progress: ReportPart | None = None,
    paths: int | None = None,
    chances: LinearRegretChances | None = None,
) -> Path:
    """Write paper.html, the figures as PNG, PDF and SVG, and the tables as CSV and LaTeX. Returns the path of
    the page.

    The page also shows the parts that an earlier run with the same settings left in the folder.
    progress: a function that is called with (part, parts done).
    paths: the number of paths that the user asked for; some settings play only a share of it.
    chances: the chances from `run_tails`, for the parts that show them.
    """
    settings = dict(next(iter(results.values())).settings)
    settings["paths"] = settings["paths"] if paths is None else paths
    stamp = json.dumps([settings["paths"], settings["seed"], settings["versions"]])
    (folder / "parts").mkdir(exist_ok=True)
    for done, experiment in enumerate(experiments):
        if progress is not None:
            progress(f"drawing {experiment.name}", done)
        files, inner = _draw(experiment, results, chances or {})
        files[f"parts/{experiment.name}.html"] = f"<!-- {stamp} -->\n{inner}".encode()
        whole_files(folder, files)
    parts = [(experiment, _part(folder, experiment, stamp)) for experiment in EXPERIMENTS]
    html = _page([(experiment, part) for experiment, part in parts if part is not None], settings, command)
    whole_files(folder, {"paper.html": html.encode()})
    return folder / "paper.html"


def _draw(
    experiment: PaperExperiment, results: Results, chances: LinearRegretChances
) -> tuple[dict[str, bytes], str]:
    """The files of one part, and its HTML for the page."""
    import matplotlib

    if experiment.view in CAPTIONS:
        with matplotlib.rc_context(SETTINGS):
            if experiment.tails:
                drawing = exponents_figure(experiment, results, chances)
            else:
                drawing = FIGURES[experiment.view](experiment, results)
        pictures = draw(drawing, ("png", "svg", "pdf"))
        files = {f"{experiment.name}.{form}": content for form, content in pictures.items()}
        return files, figure(pictures["svg"], CAPTIONS[experiment.view])
    table = TABLES[experiment.view](experiment, results)
    texts = {"csv": table.to_csv(), "tex": table.to_latex()}
    return {f"{experiment.name}.{form}": text.encode() for form, text in texts.items()}, table.to_html()


def _part(folder: Path, experiment: PaperExperiment, stamp: str) -> str | None:
    """The HTML of a part from a run with the same settings; None if there is none."""
    file = folder / "parts" / f"{experiment.name}.html"
    first, _, inner = file.read_text().partition("\n") if file.exists() else ("", "", "")
    return inner if first == f"<!-- {stamp} -->" else None


def _page(parts: Sequence[tuple[PaperExperiment, str]], settings: dict[str, Any], command: str) -> str:
    body = [
        f"<h1>The paper, reproduced</h1><p>{escape(INTRODUCTION)}</p>",
        f"<p>{settings['paths']:,} paths per setting, fewer for linear bandits; seed {settings['seed']}.</p>",
    ]
    section = ""
    for experiment, inner in parts:
        if experiment.section not in ("", section):
            body.append(f"<h1>{experiment.section}</h1>")
        section = experiment.section
        name = f"{experiment.name.replace('-', ' ').capitalize()}: "
        body.append(f'<h2 id="{experiment.name}">{escape(name + experiment.title)}</h2>{inner}')
    body.append(made_by(command, settings["versions"]))
    return document("lighttail: the paper, reproduced", "\n".join(body))
