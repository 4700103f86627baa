"""The figures of the paper, drawn again from outcomes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttail.paper.experiments import NEW, STANDARD, PaperExperiment, Results
from lighttail.report.figures import LIGHT, OTHER, draw_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = dict(zip(STANDARD, OTHER, strict=False)) | dict(zip(NEW, LIGHT, strict=False))
MARKERS = dict(zip((*STANDARD, *NEW), ("o", "s", "^", "o", "s", "^"), strict=True))


def certain_figure(experiment: PaperExperiment, results: Results) -> Figure:
    """Histograms of the regret of EXP3-IX without noise, with one panel per estimator and problem."""
    figure, grid = grid_of(2, 2, (8.5, 5.0))
    for axes, setting in zip(grid.flat, experiment.settings, strict=True):
        light = setting.series.endswith("loss")
        edges = np.linspace(0, 0.6 * setting.horizon, 61)
        draw_bars(axes, results[setting].regret, edges, LIGHT[0] if light else OTHER[0], light)
        estimator = f"loss estimator, C = {setting.kappa:g}" if light else "reward estimator"
        axes.set_title(f"θ = ({setting.means[0]:g}, {setting.means[1]:g}), {estimator}")
    figure.supxlabel("regret after 500 pulls (in units of reward)", fontsize=10)
    figure.supylabel("share of paths", fontsize=10)
    return figure


def rewards_figure(experiment: PaperExperiment, results: Results, per_pull: bool = False) -> Figure:
    """Histograms of the cumulative reward, with one row per policy and one column per kappa.

    per_pull: show the mean reward per pull, with one column per variance.
    """
    from matplotlib.ticker import MaxNLocator

    values = {
        s: results[s].reward / s.horizon if per_pull else results[s].reward for s in experiment.settings
    }
    series = experiment.by_series
    figure, grid = grid_of(len(series), 4, (10.5, 1.45 * len(series) + 0.8))
    lowest = min(float(np.quantile(value, 0.0005)) for value in values.values())
    edges = np.linspace(lowest, max(float(value.max()) for value in values.values()), 81)
    for row, (name, settings) in zip(grid, series.items(), strict=True):
        for axes, setting in zip(row, settings, strict=True):
            draw_bars(axes, values[setting], edges, COLOURS[name], name in NEW)
            if name == next(iter(series)):
                noisier = f"variance × {setting.variance:g}, T = {setting.horizon}"
                axes.set_title(noisier if per_pull else f"κ = {setting.kappa:g}", fontsize=9)
        one_kappa = len({setting.kappa for setting in settings}) == 1
        row[0].set_ylabel(f"{name}\nκ = {settings[0].kappa:g}" if one_kappa else name)
    figure.supylabel("share of paths", fontsize=10)
    figure.align_ylabels(grid[:, 0])
    for axes in grid[-1]:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    summed = f"cumulative reward after {experiment.settings[0].horizon} pulls"
    figure.supxlabel("cumulative reward / T" if per_pull else summed, fontsize=10)
    return figure


def decay_figure(experiment: PaperExperiment, results: Results) -> Figure:
    """ln P(R ≥ 0.2 T) / ln T of the standard policies, and ln P(R ≥ 0.04 T) / sqrt T of the new policies."""
    apart: Any = {"sharex": False, "sharey": False, "gridspec_kw": {"wspace": 0.08}}
    figure, [[left, right]] = grid_of(1, 2, (9.5, 4.2), **apart)
    _decay(left, experiment, results, STANDARD, 0.2, math.log)
    _decay(right, experiment, results, NEW, 0.04, math.sqrt)
    left.set_ylabel("ln P(regret ≥ 0.2 T) / ln T")
    right.set_ylabel("ln P(regret ≥ 0.04 T) / √T")
    left.set_title("standard policies: polynomial decay")
    right.set_title("new policies: exponential decay")
    return figure


def _decay(
    axes: Axes,
    experiment: PaperExperiment,
    results: Results,
    series: tuple[str, ...],
    share: float,
    scale: Any,
) -> None:
    """Draw points with 95 % intervals, or a caret at the upper limit if no path lost so much."""
    for place, name in enumerate(series):
        settings = experiment.by_series[name]
        look: Any = {"color": COLOURS[name]}
        shown: list[tuple[float, float]] = []
        for setting in settings:
            chance = results[setting].exceedance(share * setting.horizon, "regret")
            x = setting.horizon * 1.03 ** (place - 1)  # so that the bars of the policies stand side by side
            unit = scale(setting.horizon)
            high = math.log(chance.high) / unit
            if chance.value == 0.0:
                axes.plot(x, high, marker=7, markersize=9, **look)  # marker 7 is a caret
                axes.vlines(x, high - 0.12 * abs(high), high, linewidth=1.0, **look)
                continue
            value, low = math.log(chance.value) / unit, math.log(chance.low) / unit
            axes.errorbar(x, value, [[value - low], [high - value]], capsize=3, linewidth=1.2, **look)
            shown.append((x, value))
        look |= {"linestyle": "-" if name in NEW else (0, (5, 2))}
        label = f"{name} (κ = {settings[0].kappa:g})"
        axes.plot(*np.transpose(shown or [(np.nan, np.nan)]), MARKERS[name], label=label, **look)
    axes.set_xscale("log")
    axes.set_xticks([500, 1000, 2000, 4000], ["500", "1000", "2000", "4000"])
    axes.minorticks_off()
    axes.set_xlabel("horizon T (pulls, log scale)")
    axes.grid(axis="y", color="0.9")
    axes.legend(frameon=False, fontsize=8)


def grid_of(rows: int, columns: int, inches: tuple[float, float], **settings: Any) -> tuple[Figure, Any]:
    """A figure and the rows of its panels, which share their axes if `settings` do not say otherwise."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=inches, layout="constrained")
    settings = {"sharex": True, "sharey": "row", **settings}
    return figure, figure.subplots(rows, columns, squeeze=False, **settings)
