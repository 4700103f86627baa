"""Figures of the distribution of the loss.

Light-tailed designs have cool colours, and the others have warm ones. A line is solid if a theorem proves
that the policy is light-tailed on this problem.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttail.course import Course
from lighttail.outcomes.comparison import Comparison, Entry, uncovered
from lighttail.outcomes.estimates import survival_curve
from lighttail.outcomes.format import amount
from lighttail.outcomes.losing import noun
from lighttail.outcomes.tally import Values, sample_of
from lighttail.problems import Problem
from lighttail.records import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Light-tailed designs are dark and the others are light, so that they differ in a grey print, too.
LIGHT = ("#08306b", "#00694c", "#2f7ebc", "#3b3486", "#1a9c8c", "#5a5a8a")
OTHER = ("#e6762b", "#d9a400", "#d1495b", "#c98bb9", "#b07d4f", "#e8a798")
MARKERS = ("o", "s", "^", "D", "v")
WIDEST = 40  # letters per line above a histogram
TOGETHER = 8  # curves that a reader can distinguish in one picture
UNDATED = {"png": ["Software"], "svg": ["Date"], "pdf": ["Creator", "Producer", "CreationDate"]}
SETTINGS: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "svg.hashsalt": "lighttail",  # the same figure gives the same bytes
    "figure.autolayout": False,  # a figure asks for its layout itself, whatever the user's settings are
    "figure.constrained_layout.use": False,
}

Styled = list[tuple[Entry, dict[str, Any]]]


def styled(entries: Sequence[Entry]) -> Styled:
    """Each policy with its colour and its line style, the same in every figure and table.

    The colour depends on the policy and not on the problem; the theorem decides between solid and dashed.
    """
    styles: Styled = []
    for entry in entries:
        palette = LIGHT if entry.policy.light_tailed else OTHER
        again = entry.turn // len(palette)  # how often the colour was used before
        marks = {} if again == 0 else {"marker": MARKERS[again % len(MARKERS)], "markevery": 0.1}
        dash: Any = "-" if entry.light_tailed else (0, (5, 2))
        styles.append((entry, {"color": palette[entry.turn % len(palette)], "linestyle": dash, **marks}))
    return styles


def legend_words(problem: Problem, course: Course) -> str:
    """What the style of a line means."""
    return uncovered(problem, course) or "solid: light-tailed by theorem"


def survival_figure(comparison: Comparison) -> Figure:
    """The chance of losing x or more on a log scale, with a band of 95 % intervals."""
    from lighttail.report.picture import Picture

    shown = styled(comparison.entries)
    if len(shown) > TOGETHER:
        return _survival_panels(comparison, shown)
    figure = Picture(figsize=(9, 5.0), layout="constrained")
    axes = figure.add_subplot()
    _draw_survival(axes, comparison, shown)
    lost = noun(comparison.kind)
    axes.set_xlabel(f"{lost} x after {comparison.horizon:,} pulls (in units of reward)")
    axes.set_ylabel(f"chance of a {lost} of x or more (log scale)")
    axes.set_title(f"The chance of each {lost}; shaded: 95 % intervals", loc="left")
    figure.legend(
        loc="outside right upper", frameon=False, title=legend_words(comparison.problem, comparison.course)
    )
    return figure


def _survival_panels(comparison: Comparison, shown: Styled) -> Figure:
    """`survival_figure` for many policies: one panel per kind of policy, all with the same axes."""
    kinds: dict[str, Styled] = {}
    for entry, look in shown:
        kinds.setdefault(entry.label.partition("(")[0], []).append((entry, look))
    longest = max(map(len, kinds.values()))
    figure, panels = panels_of(len(kinds), 3.6, 2.6 + 0.18 * longest)
    for axes, (kind, alike) in zip(panels, kinds.items(), strict=True):
        _draw_survival(axes, comparison, alike)
        axes.set_title(kind, loc="left")
        axes.tick_params(labelbottom=True)
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.1), frameon=False, fontsize=8)
    lost = noun(comparison.kind)
    figure.supxlabel(
        f"{lost} x after {comparison.horizon:,} pulls (in units of reward); "
        f"{legend_words(comparison.problem, comparison.course)}; shaded: 95 % intervals",
        fontsize=10,
    )
    figure.supylabel(f"chance of a {lost} of x or more (log scale)", fontsize=10)
    return figure


def panels_of(number: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with up to three panels per row, all with the same axes. width, height: inches per panel."""
    from lighttail.report.picture import Picture

    columns = min(3, number)
    rows = math.ceil(number / columns)
    figure = Picture(figsize=(width * columns + 0.4, height * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    for axes in panels[number:]:
        axes.set_visible(False)
    return figure, panels[:number]


def _draw_survival(axes: Axes, comparison: Comparison, shown: Styled) -> None:
    for entry, look in shown:
        draw_curve(axes, entry.outcome.sample(entry.kind), entry.label, look)
    axes.set_yscale("log")
    axes.set_ylim(0.3 / comparison.paths, 1.3)
    # Leave out the 2 % of the paths with the least loss, where the curves are flat.
    left = min(entry.outcome.sample(entry.kind).interpolated(0.02) for entry in comparison.entries)
    if left < axes.get_xlim()[1]:
        axes.set_xlim(left=left)
    _mark_threshold(axes, comparison, f"{noun(comparison.kind)} {amount(comparison.threshold)}")
    axes.grid(axis="y", color="0.9", linewidth=0.8)


def draw_curve(axes: Axes, values: Values, label: str, look: dict[str, Any]) -> None:
    """P(value >= x) with the band of its 95 % intervals."""
    x, value, low, high = survival_curve(values)
    axes.fill_between(x, low, high, step="pre", color=look["color"], alpha=0.12, linewidth=0)
    axes.plot(x, value, drawstyle="steps-pre", label=label, linewidth=1.9, markersize=5, **look)


def histogram_figure(comparison: Comparison) -> Figure:
    """A histogram of the loss for each policy, on a log scale so that rare large losses are visible."""
    entries = comparison.entries
    figure, panels = panels_of(len(entries), 3.2, 2.3)
    lowest = min(float(entry.outcome.sample(entry.kind).low[0]) for entry in entries)
    highest = max(entry.worst for entry in entries)
    if _threshold_is_near(comparison):
        highest = max(highest, 1.1 * comparison.threshold)
    if highest <= lowest:  # every path lost the same
        highest = lowest + max(1.0, abs(lowest))
    edges = np.linspace(lowest, highest, 61)
    for axes, (entry, look) in zip(panels, styled(entries), strict=True):
        _draw_histogram(axes, entry, look, edges)
        _mark_threshold(axes, comparison, "")
    figure.supxlabel(
        f"{noun(comparison.kind)} after {comparison.horizon:,} pulls (in units of reward)", fontsize=10
    )
    figure.supylabel("share of paths (log scale)", fontsize=10)
    return figure


def _draw_histogram(axes: Axes, entry: Entry, look: dict[str, Any], edges: Floats) -> None:
    draw_bars(axes, entry.outcome.sample(entry.kind), edges, look["color"], entry.light_tailed)
    axes.set_yscale("log")
    axes.set_ylim(0.5 / entry.outcome.paths, 1.0)
    axes.minorticks_off()
    axes.plot(
        entry.mean.value, 0.95, marker="v", color="black", markersize=6, transform=axes.get_xaxis_transform()
    )
    axes.set_title(
        f"{fill(entry.label, WIDEST)}\nmean {entry.mean.value:.1f}, worst {entry.worst:.0f}", fontsize=9
    )


def draw_bars(axes: Axes, values: Values, edges: Floats, colour: str, light_tailed: bool) -> None:
    """The share of the values in each bin: filled bars for a light-tailed policy, otherwise hatched ones."""
    fill: Any = {"facecolor": colour} if light_tailed else {"facecolor": "white", "hatch": "/////"}
    axes.stairs(sample_of(values).histogram(edges), edges, fill=True, edgecolor=colour, linewidth=0.8, **fill)


def _mark_threshold(axes: Axes, comparison: Comparison, text: str) -> None:
    if _threshold_is_near(comparison):
        mark(axes, comparison.threshold, text)


def mark(axes: Axes, x: float, text: str = "", height: float = 0.985, **look: Any) -> None:
    """Draw a dotted line at a loss, and its text at a share of the height."""
    axes.axvline(x, color="0.35", linewidth=0.9, linestyle=(0, (2, 2)), **look)
    if text:
        upward = axes.get_xaxis_transform()
        axes.text(x, height, f" {text}", transform=upward, va="top", fontsize=9, color="0.35")


def _threshold_is_near(comparison: Comparison) -> bool:
    """Whether the threshold is shown. With a threshold far away, the curves would be too small to read."""
    return comparison.threshold < 1.5 * max(entry.worst for entry in comparison.entries)


def draw(figure: Figure, forms: Sequence[str]) -> dict[str, bytes]:
    """The figure in each of the forms ("png", "svg", "pdf"). The same figure gives the same bytes."""
    import matplotlib

    pictures = {}
    with matplotlib.rc_context(SETTINGS):
        for form in forms:
            buffer = BytesIO()
            figure.savefig(buffer, format=form, metadata=dict.fromkeys(UNDATED[form]))
            figure.set_layout_engine(None)  # the layout is done; "none" would still draw everything twice
            pictures[form] = buffer.getvalue()
    return pictures
