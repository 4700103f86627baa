"""The comparison as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from lighttail.outcomes.comparison import RARE, Comparison, Entry, uncovered
from lighttail.outcomes.format import counted
from lighttail.problems import Problem
from lighttail.report.document import document, figure, unbroken
from lighttail.report.figures import looks
from lighttail.system.versions import versions_line


def page(comparison: Comparison, command: str, survival: bytes, histograms: bytes, above: str = "") -> str:
    """The whole page. survival, histograms: the figures as SVG. above: HTML before the heading."""
    problem = comparison.problem
    policies = counted(len(comparison.entries), "policy", "policies")
    looked = zip(comparison.entries, looks(comparison.entries), strict=True)
    rows = "\n".join(policy_row(entry, look, entry.cells()) for entry, look in looked)
    made = versions_line(comparison.entries[0].outcome.settings["versions"])
    body = f"""{above}<h1>What is the chance of losing {comparison.threshold:g} or more?</h1>
<p>{policies}, {comparison.horizon:,} pulls per path, {comparison.paths:,}
simulated paths each. {escape(" ".join(filter(None, (about(problem), comparison.course.words()))))}</p>
<p class="verdict">{unbroken(comparison.verdict())}</p>
<h2>The numbers</h2>
<div class="scroll"><table>{head(comparison.headings())}{rows}</table></div>
<p>The regret is what the best arm would have earned on average, minus what the path earned; the regret of a
lucky path is negative. The brackets contain 95 % intervals. “≥” marks a quantile that {comparison.paths:,}
paths cannot bound from above. “&lt;” marks the upper limit for an event that happened in no path.</p>
<h2>The chance of a large regret</h2>
{figure(survival, "The chance that the regret is x or more, for each policy")}
<h2>The regret of every path</h2>
{figure(histograms, _histograms(comparison))}
<h2>How to read this</h2>
<p>A policy has a heavy tail here if two things hold. First, with 95 % confidence, more than
{100 * RARE:g}&nbsp;% of its paths lose {comparison.threshold:g} or more by pulling bad arms (pseudo regret).
Second, this loss lies far above what the better paths lose: a normal law with their spread would exceed it
with a chance of 0.003&nbsp;%. “Light-tailed by theorem” means that Simchi-Levi, Zheng and Zhu prove for
sub-Gaussian noise that the policy's chance of a large regret falls exponentially with the square root of the
horizon. At a given horizon this chance may still be visible.</p>
<h2>Made by</h2>
<pre>{escape(command)}</pre>
<p>{escape(made)}; {comparison.seeds}. The same command with the same versions gives the same numbers.
{_kept(comparison)}</p>
"""
    return document(f"lighttail: {policies} compared", body)


def _histograms(comparison: Comparison) -> str:
    """The caption of the histograms."""
    why = uncovered(comparison.problem, comparison.course)
    fills = f"{why[0].upper()}{why[1:]}" if why else "Filled: light-tailed by theorem; hatched: not"
    return f"{fills}. Triangle: the mean; dotted line: the threshold"


def _kept(comparison: Comparison) -> str:
    """How exact the numbers are if no path was kept."""
    if comparison.entries[0].outcome.keep == "paths":
        return ""
    return (
        "Only the law of the paths was kept: counts in narrow bins, exact sums, and the largest regrets. "
        "The error of a quantile of the regret is at most a thousandth of the quantile or, if larger, a "
        "thousandth of the standard deviation of the noise in a path; the intervals include this error."
    )


def about(problem: Problem) -> str:
    """The problem and its noise in a few sentences."""
    return f"{problem.about()} Noise: {problem.noise!r}."


def head(names: Iterable[str]) -> str:
    """The first row of a table whose other rows are those of `policy_row`."""
    columns = ("policy", *names, "heavy tail here")
    return "<tr>" + "".join(f"<th>{unbroken(name)}</th>" for name in columns) + "</tr>\n"


def policy_row(entry: Entry, look: dict[str, Any], cells: Iterable[tuple[str, str]]) -> str:
    """The row of a policy in a table, as HTML. cells: texts of values, each with the text of its interval."""
    line = "solid" if entry.light_tailed else "dashed"
    swatch = f'<span class="swatch" style="border-top-style:{line};color:{look["color"]}"></span>'
    numbers = "".join(f"<td>{escape(value)}<small>{escape(limits)}</small></td>" for value, limits in cells)
    kind, flag = (' class="heavy"', "yes") if entry.heavy_here else ("", "not shown")
    name = escape(entry.label).replace("σ ", "σ&nbsp;")
    return f"<tr{kind}><td>{swatch}{name}</td>{numbers}<td>{flag}</td></tr>"
