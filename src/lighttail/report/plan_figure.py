"""The pictures of a plan: the frontier of mean loss and risk, and how much the policies lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttail.outcomes.format import amount
from lighttail.outcomes.format import chance as in_percent
from lighttail.planning import Plan
from lighttail.planning.answer import Option, Point
from lighttail.report.figures import LIGHT, OTHER, draw_bars, panels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURED = 8  # curves that a reader can distinguish
GREY, INK, LIMIT = "#b9b9b9", "#1c1c1c", "#b3001b"
Z = 1.96  # standard errors on each side of a mean: a 95 % interval
DECADES = 1000.0  # the picture ends at the limit divided by this number
WIDEST = 38  # letters per line above a histogram
LINE = 0.036  # height of a label, as a share of the height of the picture
BINS = 48


@dataclass(frozen=True)
class Scale:
    """The vertical axis: a chance, or the loss that can be promised if no limit on the loss was given.

    floor: nothing is drawn below. name: the text of the axis.
    """

    floor: float
    top: float
    name: str


def frontier_figure(plan: Plan) -> Figure:
    """Mean loss and risk of every policy of the search, a curve per policy over its tuning.

    The search's own numbers are drawn as small marks. Large marks are the policies of the table, whose
    numbers come from fresh random numbers.
    """
    from lighttail.report.picture import Picture

    figure = Picture(figsize=(10, 6.2), layout="constrained")
    axes = figure.add_subplot()
    scale = _scale(plan)
    right = _right_edge(plan)
    ends = []
    for name, points, colour in coloured_curves(plan):
        _draw_curve(axes, plan, points, colour, scale)
        ends.append((name, colour, *_label_point(plan, points, scale, right)))
    _draw_options(axes, plan, scale)
    if not plan.asked_for_loss:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, place: in_percent(value))
        _draw_limit(axes, plan)
    axes.set_ylim(scale.floor, scale.top)
    axes.set_xlim(0.0, 1.02 * right)
    _write_labels(axes, ends)
    axes.set_xlabel(f"mean loss{plan.unit and f' in{plan.unit}'} (average over the family)")
    axes.set_ylabel(scale.name)
    axes.grid(axis="y", color="0.92", linewidth=0.8)
    if axes.get_legend_handles_labels()[1]:
        figure.legend(loc="outside lower left", frameon=False, fontsize=9, ncols=3)
    return figure


def coloured_curves(plan: Plan) -> list[tuple[str, list[Point], str]]:
    """The curves with their points and colours, the best ones last, so that they are drawn on top.

    A curve has a colour if one of its points is not dominated: a cool one for a light-tailed policy and a
    warm one for another. All other curves are grey, and so are those after the first COLOURED.
    """
    curves: dict[str, list[Point]] = {}
    for point in confirmed(plan):
        curves.setdefault(point.curve, []).append(point)

    def best(name: str) -> tuple[bool, float]:
        undominated = [point.mean for point in curves[name] if not point.dominated]
        return not undominated, min(undominated, default=min(point.mean for point in curves[name]))

    order = sorted(curves, key=best)
    used = {True: 0, False: 0}
    found = []
    for place, name in enumerate(order):
        light = curves[name][0].policy.light_tailed
        palette = LIGHT if light else OTHER
        shown = place < COLOURED and used[light] < len(palette) and not best(name)[0]
        found.append((name, curves[name], palette[used[light]] if shown else GREY))
        used[light] += shown
    return found[::-1]


def _scale(plan: Plan) -> Scale:
    if plan.asked_for_loss:
        promised = [point.promised for point in plan.frontier]
        top = 1.05 * max(*promised, plan.loss)
        return Scale(0.0, top, f"loss that is reached with a chance of {in_percent(plan.limit)}")
    shown = [plan.limit, *(one.chance.value or one.chance.high for one in plan.options().values())]
    shown += [point.chance.value for point in plan.frontier if point.chance.value > 0.0]
    least = max(min(shown), plan.limit / DECADES)
    return Scale(least / 3.0, 1.5, f"chance of losing {amount(plan.loss)} or more (log scale)")


def _right_edge(plan: Plan) -> float:
    """Policies that lose far more than an even split are not worth the room."""
    most = max(point.mean for point in plan.frontier)
    options = [option.mean_loss.high for option in plan.options().values()]
    return max(*options, min(most, 1.15 * plan.even.mean_loss.value), 1e-12)


def _draw_curve(axes: Axes, plan: Plan, points: Sequence[Point], colour: str, scale: Scale) -> None:
    """One curve over its tuning, through the points that are known well, with their 95 % intervals."""
    grey = colour == GREY
    order: Any = {"zorder": 1.5 if grey else 2.5}
    known = [point for point in points if well_known(plan, point)]
    for near, far in pairwise(_joined(plan, points)):
        x, y = (near.mean, far.mean), (_height(plan, near, scale), _height(plan, far, scale))
        gap = points.index(far) > points.index(near) + 1  # points in between are not known well
        width = 0.9 if grey or gap else 1.6
        axes.plot(x, y, ":" if gap else "-", color=colour, linewidth=width, alpha=0.8, **order)
    for point in points:
        shown = GREY if point.dominated else colour
        up = _height(plan, point, scale)
        unseen = _unseen(plan, point)
        marker: Any = 7 if unseen else "o"  # 7: an arrow downwards whose tip is the point
        if point not in known:
            size = 4.5 if unseen else 2.4
            axes.plot(point.mean, up, marker=marker, color=shown, markersize=size, alpha=0.35, zorder=1.2)
            continue
        style: Any = {"color": shown, "linewidth": 0.8, "alpha": 0.5 if point.dominated else 0.9, **order}
        axes.plot([point.mean - Z * point.error, point.mean + Z * point.error], [up, up], **style)
        if not plan.asked_for_loss and not unseen:
            ends = (max(point.chance.low, scale.floor), max(point.chance.high, up))
            axes.plot([point.mean, point.mean], ends, **style)
        axes.plot(point.mean, up, marker=marker, color=shown, markersize=8 if unseen else 4, **order)


def well_known(plan: Plan, point: Point) -> bool:
    """Whether the intervals of a point are narrow enough to show it plainly: a mean within a quarter, and a
    chance within a factor of three or, if nothing was seen, within ten times the limit. A loss that is
    reached with the allowed chance needs so many paths that one of them is expected to reach it."""
    if Z * point.error > 0.25 * point.mean:
        return False
    if plan.asked_for_loss:
        return point.paths * plan.limit >= 1.0
    if _unseen(plan, point):
        return point.chance.high <= 10.0 * plan.limit
    return point.chance.high <= 3.0 * point.chance.value


def _joined(plan: Plan, points: Sequence[Point]) -> list[Point]:
    """The points that a curve goes through. An upper limit is no place for a curve."""
    return [point for point in points if well_known(plan, point) and not _unseen(plan, point)]


def _height(plan: Plan, point: Point, scale: Scale) -> float:
    """The height of a point: its chance, or the upper limit if no run lost so much. A smaller chance than the
    picture shows lies on its lower edge."""
    if plan.asked_for_loss:
        return point.promised
    return max(point.chance.high if _unseen(plan, point) else point.chance.value, 1.02 * scale.floor)


def _unseen(plan: Plan, point: Point) -> bool:
    return not plan.asked_for_loss and point.chance.value == 0.0


def confirmed(plan: Plan) -> list[Point]:
    """The points of the frontier, with the numbers of the table for the policies of the table."""
    fresh = {one.policy: one for one in plan.options().values()}
    return [
        _with(point, fresh[point.policy], plan) if point.policy in fresh else point for point in plan.frontier
    ]


def _with(point: Point, option: Option, plan: Plan) -> Point:
    """The point with the numbers of a policy of the table."""
    mean, promised = option.mean_loss, plan.loss if option is plan.choice else point.promised
    error = (mean.high - mean.low) / (2.0 * Z)
    return replace(point, mean=mean.value, error=error, chance=option.chance, promised=promised)


def _draw_options(axes: Axes, plan: Plan, scale: Scale) -> None:
    """The policies of the table, by their numbers from fresh random numbers."""
    marks = {"choice": "*", "nearest": "*", "least mean loss": "D", "even split": "s"}
    for part, one in plan.options().items():
        height = _option_height(plan, one)
        if height is None:
            continue
        star = marks[part] == "*"
        style: Any = {"markerfacecolor": "#ffd400" if star else "white", "markeredgecolor": INK}
        style |= {"markersize": 17 if star else 8, "markeredgewidth": 1.2, "linestyle": "", "zorder": 5}
        x, y = one.mean_loss.value, max(height, 1.05 * scale.floor)
        if star and plan.likely_loss < plan.loss:
            ends: Any = {"color": INK, "linewidth": 1.4, "marker": "_", "markevery": [1], "zorder": 4.5}
            axes.plot([x, x], [y, plan.likely_loss], **ends)
        y = y if plan.asked_for_loss else min(y, 1.0)
        axes.plot(x, y, marker=marks[part], label=f"{part}: {one.label}", **style)


def _option_height(plan: Plan, option: Option) -> float | None:
    if plan.asked_for_loss:
        return plan.loss if option.policy == plan.choice.policy else None
    return option.chance.value or option.chance.high


def _draw_limit(axes: Axes, plan: Plan) -> None:
    axes.axhline(plan.limit, color=LIMIT, linewidth=1.2, linestyle=(0, (6, 3)), zorder=2)
    text = f"the limit, {in_percent(plan.limit)}: allowed below"
    style: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 9, "color": LIMIT}
    axes.annotate(text, (1.0, plan.limit), (-2, 3), xycoords=("axes fraction", "data"), **style)


def _label_point(plan: Plan, points: Sequence[Point], scale: Scale, right: float) -> tuple[float, float]:
    """Where the label of a curve points to: its end with the most exploration that is within the picture."""
    inside = [point for point in points if point.mean <= right] or list(points)
    known = _joined(plan, inside) or inside
    return min(known[-1].mean, right), _height(plan, known[-1], scale)


def _write_labels(axes: Axes, ends: Sequence[tuple[str, str, float, float]]) -> None:
    """Write each curve's name to the right of the picture, in the order of the curves' ends, with a thin
    line to the end."""
    axes.figure.canvas.draw_idle()
    transform = axes.transData + axes.transAxes.inverted()
    ups = [min(max(float(transform.transform((x, y))[1]), 0.0), 1.0) for _, _, x, y in ends]
    heights = spread(ups, LINE)
    for (name, colour, x, y), height in zip(ends, heights, strict=True):
        grey = colour == GREY
        line = {"arrowstyle": "-", "relpos": (0.0, 0.5), "color": colour, "lw": 0.6, "alpha": 0.7}
        style: Any = {"color": "0.45" if grey else colour, "fontweight": "normal" if grey else "bold"}
        style |= {"va": "center", "fontsize": 9, "annotation_clip": False, "arrowprops": line}
        axes.annotate(name, (x, y), (1.02, height), textcoords="axes fraction", **style)


def spread(heights: Sequence[float], least: float) -> list[float]:
    """Heights between 0 and 1 that lie at least `least` apart, near to `heights` and in the same order.

    >>> spread([0.5, 0.5, 0.9], 0.25)
    [0.375, 0.625, 0.9]
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(heights, kind="stable")
    steps = least * np.arange(order.size)
    rising = isotonic_regression(np.asarray(heights)[order] - steps).x  # without the steps, none may fall
    found = np.empty(order.size)
    found[order] = np.clip(rising, 0.0, max(0.0, 1.0 - least * (order.size - 1))) + steps
    return found.tolist()


def losses_figure(plan: Plan) -> Figure:
    """How much the policies of the table lose, over the family: a histogram each, with the same axes."""
    options = plan.options()
    figure, panels = panels_of(len(options), 3.4, 2.7)
    highest = max(float(one.losses.max()) for one in options.values())
    edges = np.linspace(0.0, 1.05 * max(highest, min(plan.loss, 2.0 * highest)), BINS + 1)
    least = min(0.5 / one.losses.size for one in options.values())
    for axes, (part, one) in zip(panels, options.items(), strict=True):
        colour = LIGHT[0] if one.policy.light_tailed else OTHER[0]
        draw_bars(axes, one.losses, edges, colour, one.policy.light_tailed)
        axes.set_yscale("log")
        axes.set_ylim(least, 1.5)
        axes.minorticks_off()
        axes.axvline(plan.loss, color=LIMIT, linewidth=1.2, linestyle=(0, (6, 3)))
        mark: Any = {"marker": "v", "color": "black", "markersize": 6}
        axes.plot(one.mean_loss.value, 0.95, transform=axes.get_xaxis_transform(), **mark)
        axes.set_title(f"{part}\n{fill(one.label, WIDEST)}\n{_seen(plan, one)}", fontsize=9)
    figure.supxlabel(f"loss after {plan.horizon:,} pulls{plan.unit and f', in{plan.unit}'}", fontsize=10)
    figure.supylabel("share of runs (log scale)", fontsize=10)
    return figure


def _seen(plan: Plan, option: Option) -> str:
    """How many of the runs of a histogram lost the limit or more."""
    over = float(np.mean(option.losses >= plan.loss))
    share = f"in {in_percent(over)} of runs" if over else f"in none of {option.losses.size:,} runs"
    return f"{amount(plan.loss)} or more {share}"
