"""The comparison as one HTML page that needs no network."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import Any

from lighttail.course import Course
from lighttail.outcomes.comparison import Comparison, Entry, uncovered
from lighttail.outcomes.format import amount, chance, counted, probability, rounded
from lighttail.outcomes.growth import BULK, CUT, HARDLY, POWER, SHORTEST, Growth
from lighttail.outcomes.losing import EXPLAINED, event, noun
from lighttail.problems import Problem
from lighttail.report.document import cell, document, figure, made_by, table, unbroken
from lighttail.report.figures import styled


def page(comparison: Comparison, command: str, survival: bytes, histograms: bytes, above: str = "") -> str:
    """The whole page. survival, histograms: the figures as SVG. above: HTML before the heading."""
    told = problem_words(comparison.problem, comparison.course)
    policies = counted(len(comparison.entries), "policy", "policies")
    rows = "\n".join(policy_row(entry, look, entry.cells()) for entry, look in styled(comparison.entries))
    lost = noun(comparison.kind)
    versions = comparison.entries[0].outcome.settings["versions"]
    body = f"""{above}<h1>What is the chance of {event(comparison.kind, comparison.threshold)}?</h1>
<p>{policies}, {comparison.horizon:,} pulls per path, {comparison.paths:,}
simulated paths each. {escape(told)}</p>
<p class="verdict">{unbroken(comparison.verdict())}</p>
<h2>The numbers</h2>
<div class="scroll"><table>{head(comparison.headings())}{rows}</table></div>
<p>{EXPLAINED[comparison.kind]} The brackets contain 95 % intervals.
“≥” marks a quantile that {comparison.paths:,} paths cannot bound from above. “&lt;” marks the upper limit
for an event that happened in no path. The chance is exact, or comes from more paths, where a cell says
so.</p>
<h2>The chance of a large {lost}</h2>
{figure(survival, f"The chance that the {lost} is x or more, counted over {comparison.paths:,} paths each")}
<h2>The {lost} of every path</h2>
{figure(histograms, _histograms(comparison))}
{_growth_section(comparison)}<h2>How to read this</h2>
<p>“Light-tailed by theorem” means that Simchi-Levi, Zheng and Zhu prove for
sub-Gaussian noise that the policy's chance of a large loss falls exponentially with the square root of the
horizon. At a given horizon this chance may still be visible.</p>
{made_by(command, versions, comparison.seeds, _law_words(comparison))}"""
    return document(f"lighttail: {policies} compared", body)


def _growth_section(comparison: Comparison) -> str:
    """The table of the chances at T/4, T/2 and T; empty if this was not asked."""
    told = [(entry, entry.growth) for entry in comparison.entries if entry.growth is not None]
    if not told:
        return ""
    each = zip(told[0][1].horizons, told[0][1].thresholds, strict=True)
    names = [f"{horizon:,} pulls, {amount(lost)} lost" for horizon, lost in each]
    columns = ("policy", *names, "exponents", "their ratio", "this chance falls", "light-tailed by theorem")
    return f"""<h2>How the chance falls as the experiment grows</h2>
{table(columns, (_growth_row(entry, growth) for entry, growth in told))}
<p>The chances belong to experiments of a quarter, a half and all of the length T, and to the same share of
each. Between two lengths, a chance falls like T to the power of minus the exponent. If the second exponent is
about as large as the first, the chance falls like a power of T; if the second exponent is larger by about the
square root of 2, the chance falls exponentially in the square root of T. The answer is “like T⁻ᵇ or
slower”, b being the exponent, if the 95 % limits of the ratio lie below {CUT:g}: a ratio well below 1
belongs to a chance that levels off. The answer is “like exp(−√T)” if these limits lie
above {CUT:g} and the first chance is at most {chance(BULK)}, by its upper limit: a higher chance is no
tail, because a loss that is usual in a short experiment becomes rare in a longer one for every policy that
learns. Experiments whose quarter is shorter than {SHORTEST} pulls get neither of these answers. The last
column says what a theorem proves, whatever these numbers are.</p>
"""


def _growth_row(entry: Entry, growth: Growth) -> list[str]:
    told = zip(map(probability, growth.chances), growth.sources, strict=True)
    chances = [cell(value, "" if source == "exact" else limits, source) for (value, limits), source in told]
    ratio, (early, late) = growth.ratio, growth.exponents
    limits = f"[{rounded(max(0.0, ratio.low))}, {rounded(ratio.high)}]"
    value = "unknown" if math.isnan(ratio.value) else f"{ratio.value:.2f}"
    exponents = [cell(f"{early:.3g}, {late:.3g}"), cell(value, limits)]
    answer = escape(": ".join(filter(None, (growth.short, growth.why_not))))
    proved = cell("yes" if entry.light_tailed else "no")
    return [cell(entry.label), *chances, *exponents, f'<td class="words">{answer}</td>', proved]


def _histograms(comparison: Comparison) -> str:
    """The caption of the histograms."""
    why = uncovered(comparison.problem, comparison.course)
    fills = f"{why[0].upper()}{why[1:]}" if why else "Filled: light-tailed by theorem; hatched: not"
    return f"{fills}. Triangle: the mean; dotted line: the threshold"


def _law_words(comparison: Comparison) -> str:
    """How exact the numbers are if no path was kept."""
    if comparison.entries[0].outcome.keep == "paths":
        return ""
    return (
        " Only the law of the paths was kept: counts in narrow bins, exact sums, and the largest losses. "
        "The error of a quantile is at most a thousandth of the quantile or, if larger, a "
        "thousandth of the standard deviation of the noise in a path; the intervals include this error."
    )


def problem_words(problem: Problem, course: Course) -> str:
    """The problem, its noise, and when rewards become known in a few sentences."""
    return f"{problem.about()} Noise: {problem.noise!r}. {course.words()}".rstrip()


def head(names: Iterable[str]) -> str:
    """The first row of a table whose other rows are those of `policy_row`."""
    columns = ("policy", *names, "this chance falls", "light-tailed by theorem")
    return "<thead><tr>" + "".join(f"<th>{unbroken(name)}</th>" for name in columns) + "</tr></thead>\n"


def policy_row(entry: Entry, look: dict[str, Any], cells: Iterable[tuple[str, str]]) -> str:
    """The row of a policy in a table, as HTML. cells: texts of values, each with the text of its interval."""
    line = "solid" if entry.light_tailed else "dashed"
    swatch = f'<span class="swatch" style="border-top-style:{line};color:{look["color"]}"></span>'
    numbers = "".join(
        f"<td>{escape(value)}<small>{escape(limits).replace(' (', '<br>(')}</small></td>"
        for value, limits in cells
    )
    name = escape(entry.label).replace("σ ", "σ&nbsp;")
    proved, growth = "yes" if entry.light_tailed else "no", entry.growth
    falls = f'<td class="words">{escape(growth.short) if growth else "not asked"}</td>'
    kind = ' class="heavy"' if growth and growth.answer in (POWER, HARDLY) else ""
    return f"<tr{kind}><td>{swatch}{name}</td>{numbers}{falls}<td>{proved}</td></tr>"
