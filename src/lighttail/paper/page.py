"""The paper's numerical section as one page, and all of its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from lighttail.paper.decay import Chances, exponents_figure
from lighttail.paper.experiments import EXPERIMENTS, PaperExperiment
from lighttail.paper.figures import certain_figure, decay_figure, noisier_figure, rewards_figure
from lighttail.paper.linear_views import changing_table, horizons_table, noise_table, shapes_figure
from lighttail.paper.run import Results
from lighttail.paper.tables import PaperTable, arms_table, means_table, reach_table, readings_table
from lighttail.report.document import document, figure
from lighttail.report.figures import SETTINGS, draw
from lighttail.system.files import whole_files
from lighttail.system.versions import versions_line

FIGURES: dict[str, Callable[[PaperExperiment, Results], Any]] = {
    "certain": certain_figure,
    "rewards": rewards_figure,
    "decay": decay_figure,
    "noisier": noisier_figure,
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
    "certain": "With the reward estimator the regret of the shifted problem is a gamble; the loss "
    "estimator with a known bound cures it",
    "rewards": "Hatched: standard policies; filled: the new ones. A hump far to the left is runs that "
    "locked onto a bad arm",
    "decay": "Bars: 95 % intervals. A caret without a point: no path was that bad, and the caret is the "
    "upper limit. A level line is a polynomial tail on the left and an exponential one on the right; a line "
    "that falls decays faster still",
    "noisier": "Hyper-parameters stay as tuned for variance 1; the horizon grows with the variance, so "
    "that the problem is as hard as before",
    "linear-shapes": "The chance to lose x T or more, with 95 % bands; the dotted line is 0.1 T. A curve "
    "that runs level to the right is paths that locked onto a bad action",
    "exponents": "P is the chance that the pseudo regret is 0.2 T or more, two arms, from 1e-2 down to "
    "1e-110. Bars: 95 % intervals, mostly smaller than the markers. On the left the standard policy is all "
    "but level: its chance of a linear regret falls like a power of T. On the right the new ones are level "
    "but for √ln T: theirs falls exponentially in √(T ln T). The exponents of theory leave out the constants "
    "before the exponential; the theorem's holds for every problem and is far from what happens on this one",
}
INTRODUCTION = (
    "Every table and figure of the numerical section of “A Simple and Optimal Policy Design with Safety "
    "against Heavy-Tailed Risk for Stochastic Bandits” (Simchi-Levi, Zheng and Zhu), simulated anew. The "
    "tables show our mean with the published one, the difference, and z: the difference in standard "
    "errors of both. Cells with |z| > 4 are marked, and explained where an explanation is known."
)


def write_paper(
    experiments: Sequence[PaperExperiment],
    results: Results,
    folder: Path,
    command: str,
    progress: Callable[[str, int], None] | None = None,
    paths: int | None = None,
    chances: Chances | None = None,
) -> Path:
    """Write paper.html, figures as PNG, PDF and SVG, tables as CSV and LaTeX; returns the page's path.

    The page also holds the parts that an earlier run with the same settings left in the folder.
    progress: called with (part, parts done). paths: as asked for, of which some settings have a share.
    chances: what `run_tails` found, for parts that show it.
    """
    made = dict(next(iter(results.values())).settings)
    made["paths"] = made["paths"] if paths is None else paths
    stamp = json.dumps([made["paths"], made["seed"], made["versions"]])
    (folder / "parts").mkdir(exist_ok=True)
    for done, experiment in enumerate(experiments):
        if progress is not None:
            progress(f"drawing {experiment.name}", done)
        files, inner = _draw(experiment, results, chances or {})
        files[f"parts/{experiment.name}.html"] = f"<!-- {stamp} -->\n{inner}".encode()
        whole_files(folder, files)
    parts = [(experiment, _part(folder, experiment, stamp)) for experiment in EXPERIMENTS]
    html = _page([(experiment, part) for experiment, part in parts if part is not None], made, command)
    whole_files(folder, {"paper.html": html.encode()})
    return folder / "paper.html"


def _draw(experiment: PaperExperiment, results: Results, chances: Chances) -> tuple[dict[str, bytes], str]:
    """The files of one part, and its place in the page."""
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
    files = {
        f"{experiment.name}.csv": table.to_csv().encode(),
        f"{experiment.name}.tex": table.to_latex().encode(),
    }
    return files, table.to_html()


def _part(folder: Path, experiment: PaperExperiment, stamp: str) -> str | None:
    """What a run with the same settings wrote for the page, if it did."""
    file = folder / "parts" / f"{experiment.name}.html"
    if not file.exists():
        return None
    first, _, inner = file.read_text().partition("\n")
    return inner if first == f"<!-- {stamp} -->" else None


def _page(parts: Sequence[tuple[PaperExperiment, str]], made: dict[str, Any], command: str) -> str:
    versions = versions_line(made["versions"])
    body = [
        f"<h1>The paper, reproduced</h1><p>{escape(INTRODUCTION)}</p>",
        f"<p>{made['paths']:,} paths a setting, fewer for linear bandits; seed {made['seed']}.</p>",
    ]
    for place, (experiment, inner) in enumerate(parts):
        if experiment.section and (place == 0 or parts[place - 1][0].section != experiment.section):
            body.append(f"<h1>{experiment.section}</h1>")
        name = f"{experiment.name.replace('-', ' ').capitalize()}: " if experiment.label else ""
        body.append(f'<h2 id="{experiment.name}">{escape(name + experiment.title)}</h2>{inner}')
    body.append(f"<h2>Made by</h2><pre>{escape(command)}</pre><p>{escape(versions)}.</p>")
    return document("lighttail: the paper, reproduced", "\n".join(body) + "\n")
