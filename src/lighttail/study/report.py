"""The report of a study: one page for each problem, sigma and horizon, and an index of them."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lighttail.checks import refuse
from lighttail.outcomes.comparison import Comparison
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import amount
from lighttail.outcomes.losing import EXPLAINED, Lost, check_lost, event, noun
from lighttail.report.document import cell, code, document, figure, made_by, table
from lighttail.report.figures import SETTINGS, draw, legend_words, styled
from lighttail.report.page import head, policy_row, problem_words
from lighttail.report.write import FILES, write_report
from lighttail.study.cells import slug
from lighttail.study.file import StudyProblem
from lighttail.study.folder import REPORT, check_file_or_folder
from lighttail.study.results import Results
from lighttail.system.files import output_folder, whole_files
from lighttail.system.progress import ReportPart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INDEX, RESULTS = "index.html", "results.json"


@dataclass(frozen=True)
class Summary:
    """What the index needs of a comparison, whose paths may fill the memory."""

    setting: StudyProblem
    horizon: int
    threshold: float
    page: str  # the path of the page, from the index
    rows: str  # of the table in the index, as HTML
    chances: dict[str, tuple[dict[str, Any], Estimate]]  # the look and the exceedance of each policy
    results: dict[str, Any]


def report_study(results: Results, progress: ReportPart | None = None, kind: Lost = "pseudo_regret") -> Path:
    """Write the report into the study's folder; returns the path of the index. kind: what counts as lost."""
    kind = check_lost(kind)
    if not results.finished:
        finished, found = "a study of which a piece is finished", f"is {str(results.path)!r}"
        raise refuse("folder", str(results.path), finished, verb="hold", found=found)
    folder = results.path / REPORT
    check_file_or_folder(folder, folder=True)
    other = [] if kind == "pseudo_regret" else ["--kind", kind]
    command = shlex.join(["lighttail", "report", str(results.path), *other])
    with output_folder("folder", folder):
        before = {page.name for page in folder.iterdir()}
        try:
            summaries = _write_pages(results, folder, command, progress, kind)
        except BaseException:  # such as a damaged piece: there must be no pages without an index
            for page in folder.iterdir():
                if page.name not in before:
                    shutil.rmtree(page)
            raise
        names = {Path(summary.page).parent.name for summary in summaries}
        for page in folder.iterdir():  # those of an earlier report, but nothing that a report does not write
            if page.is_dir() and page.name not in names and {f.name for f in page.iterdir()} <= set(FILES):
                shutil.rmtree(page)
        pages = {RESULTS: _json(results, summaries), INDEX: index(results, summaries, command, kind)}
        whole_files(folder, {name: text.encode() for name, text in pages.items()})
    return folder / INDEX


def _write_pages(
    results: Results, folder: Path, command: str, progress: ReportPart | None, kind: Lost
) -> list[Summary]:
    """Write the page of each problem and horizon."""
    summaries = []
    wanted = [(setting, horizon) for setting in results.study.problems for horizon in results.study.horizons]
    for turn, (setting, horizon) in enumerate(wanted):
        if progress is not None:
            progress(setting.title, turn)
        comparison = results.comparison(setting, horizon, kind)
        if comparison is not None:
            page = folder / f"{turn + 1:02}_{slug(setting.title)}_t-{horizon}"
            check_file_or_folder(page, folder=True)
            page.mkdir(exist_ok=True)
            write_report(comparison, page, command, _above(results, setting, horizon))
            summaries.append(_summary(setting, comparison, f"{page.name}/report.html", command))
    return summaries


def not_played_words(names: Iterable[str]) -> str:
    """The policies that a comparison lacks, as a sentence without its full stop; empty if it lacks none."""
    listed = ", ".join(names)
    return f"Not played yet: {listed}" if listed else ""


def _not_played(results: Results, setting: StudyProblem, horizon: int) -> str:
    words = not_played_words(results.not_played(setting, horizon))
    return f"<b>{escape(words)}.</b>" if words else ""


def _above(results: Results, setting: StudyProblem, horizon: int) -> str:
    """The lines of a page before its heading."""
    policies = results.study.policies_on(setting).items()
    named = "; ".join(f"{name}: {policy}" for name, policy in policies if name != str(policy))
    absent = _not_played(results, setting, horizon)
    return (
        f'<p><a href="../{INDEX}">{escape(results.study.name)}</a> › {escape(setting.title)}. '
        f"{escape(named)}.</p>\n{_unfinished(results)}" + (f"<p>{absent}</p>\n" if absent else "")
    )


def _unfinished(results: Results) -> str:
    if results.complete:
        return ""
    return (
        f"<p><b>Unfinished:</b> {results.finished:,} of {results.pieces:,} pieces of the study are played. "
        "A page shows the same number of paths for every policy, as many as every policy has.</p>\n"
    )


def _summary(setting: StudyProblem, comparison: Comparison, page: str, command: str) -> Summary:
    horizon, threshold = comparison.horizon, comparison.threshold
    link = f'<a href="{escape(page)}">{horizon:,} pulls</a>'
    title = f"{link}, {comparison.paths:,} paths, chance of {event(comparison.kind, threshold)}"
    rows, chances = [f'<tr><td colspan="7">{title}</td></tr>'], {}
    for entry, look in styled(comparison.entries):
        cells = entry.cells()
        rows.append(policy_row(entry, look, [cells[0], *cells[2:5]]))
        chances[entry.label] = look, entry.chance
    content = {"name": setting.name, "sigma": setting.sigma, "page": page, **comparison.to_dict(command)}
    return Summary(setting, horizon, threshold, page, "\n".join(rows), chances, content)


def _json(results: Results, summaries: Iterable[Summary]) -> str:
    content = {
        "study": results.study.name,
        "digest": results.manifest["digest"],
        "pieces": results.pieces,
        "finished": results.finished,
        "comparisons": [summary.results for summary in summaries],
        "not_played": [
            {"name": setting.name, "sigma": setting.sigma, "horizon": horizon, "policies": names}
            for setting in results.study.problems
            for horizon in results.study.horizons
            if (names := results.not_played(setting, horizon))
        ],
    }
    return json.dumps(content, indent=2, allow_nan=False)


def index(results: Results, summaries: list[Summary], command: str, kind: Lost) -> str:
    """The page that links to all others."""
    study = results.study
    digest = f" Digest of the results: <code>{results.manifest['digest']}</code>"
    described = {name: repr(policy) for name, policy in study.policies.items()}
    described |= {
        name: f"{words}, where s is the noise of the problem" for name, words in study.relative.items()
    }
    policies = [[cell(name), cell(policy, kind="text")] for name, policy in described.items()]
    sections = "".join(
        _section(results, setting, [one for one in summaries if one.setting is setting], kind)
        for setting in study.problems
    )
    body = f"""<h1>{escape(study.name)}</h1>
<p>Problems: {len(study.problems)}. Policies: {len(study.policies)}. Horizons: {len(study.horizons)}.
Seeds: {len(study.seeds)}, with {study.paths:,} paths each; the tables use the paths of all seeds together.
The brackets contain 95 % intervals. {EXPLAINED[kind]}</p>
{_unfinished(results)}{sections}
<h2>The policies</h2>
{table(("name", "policy"), policies, 2)}
{made_by(command, results.manifest["versions"], more=digest)}<h2>The study</h2>
<pre>{code(study.text)}</pre>
"""
    return document(f"lighttail: {study.name}", body)


def _section(results: Results, setting: StudyProblem, summaries: list[Summary], kind: Lost) -> str:
    """The table and the figure of one problem. Policies that were not played are named."""
    told = problem_words(setting.problem, setting.course)
    names = (f"mean {noun(kind)}", "99 % quantile", "mean of worst 1 %", "chance")
    rows, body = {summary.horizon: summary.rows for summary in summaries}, ""
    for horizon in results.study.horizons:
        absent = _not_played(results, setting, horizon)
        row = f'\n<tr><td colspan="7">{horizon:,} pulls. {absent}</td></tr>\n' if absent else ""
        body += rows.get(horizon, "") + row
    return (
        f"<h2>{escape(setting.title)}</h2>\n<p>{escape(told)}</p>\n"
        f'<div class="scroll"><table>{head(names)}{body}</table></div>\n{_picture(summaries, kind)}'
    )


def _picture(summaries: list[Summary], kind: Lost) -> str:
    """The chance of a large loss at each horizon. Empty for one horizon, and if no path lost that much."""
    horizons = sorted(summary.horizon for summary in summaries)
    if len(horizons) < 2 or not any(chance.value for one in summaries for _, chance in one.chances.values()):
        return ""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        canvas = Figure(figsize=(9, 3.6), layout="constrained")
        axes = canvas.add_subplot()
        lines, span = _lines(summaries), horizons[-1] / horizons[0]
        for turn, (label, (look, points)) in enumerate(lines.items()):
            aside = span ** (0.01 * (turn - (len(lines) - 1) / 2))  # so that bars stand side by side
            _draw_line(axes, label, look, [(horizon * aside, chance) for horizon, chance in points])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(horizons, [f"{horizon:,}" for horizon in horizons])
        axes.minorticks_off()
        axes.grid(axis="y", color="0.9", linewidth=0.8)
        axes.set_xlabel("horizon (pulls; log scale)")
        axes.set_ylabel("chance (log scale)")
        title = legend_words(summaries[0].setting.problem, summaries[0].setting.course)
        canvas.legend(loc="outside right upper", frameon=False, handlelength=3, title=title)
    losses = ", ".join(f"{amount(one.threshold)} after {one.horizon:,} pulls" for one in summaries)
    caption = (
        f"The chance of a {noun(kind)} of at least {losses}; with 95 % intervals. "
        "A hollow triangle is an upper limit: no path lost that much"
    )
    return figure(draw(canvas, ("svg",))["svg"], caption)


def _draw_line(axes: Axes, label: str, look: dict[str, Any], points: list[tuple[float, Estimate]]) -> None:
    color = look["color"]
    line = [(horizon, chance.value or float("nan")) for horizon, chance in points]
    axes.plot(*zip(*line, strict=True), label=label, marker="o", color=color, linestyle=look["linestyle"])
    for horizon, chance in points:
        if chance.value:
            axes.plot([horizon, horizon], [chance.low, chance.high], color=color, alpha=0.6)
        else:
            axes.plot([horizon], [chance.high], marker="v", color=color, fillstyle="none", linestyle="none")


def _lines(summaries: list[Summary]) -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """The look of each policy, and its chance at each horizon."""
    lines: dict[str, tuple[dict[str, Any], list[Any]]] = {}
    for summary in sorted(summaries, key=lambda one: one.horizon):
        for label, (look, chance) in summary.chances.items():
            lines.setdefault(label, (look, []))[1].append((summary.horizon, chance))
    return lines
