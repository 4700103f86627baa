"""A tail as a picture: the simulation as far as it reaches, then estimates, exact values and bounds; and as a
page around the picture, which needs no network."""

from __future__ import annotations

import json
import textwrap
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttail.checks import enumerated, refuse
from lighttail.outcomes.format import amount
from lighttail.outcomes.losing import EXPLAINED, Lost, event, noun
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.report.document import cell, document, figure, made_by, table
from lighttail.report.figures import LIGHT, OTHER, SETTINGS, draw, mark
from lighttail.report.tail_words import COLUMNS, note, rows, sentence, subject
from lighttail.system.files import whole_files
from lighttail.system.progress import ReportPart
from lighttail.tails.curve import TailCurve, tail_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, CERTIFICATE, THEOREM = "#1c1c1c", "#00694c", "0.55"
WIDTH = 98  # characters of a line of the title
TOP = 1.6  # the top of the picture, somewhat above a chance of 1
READING = (
    "“Importance sampling” draws paths from laws that make the event common, and weights the paths; "
    "“simulated paths” counts paths without weights. The certificate and the theorem's bound are upper "
    "bounds that need no simulation: the certificate holds for this problem, and the theorem for every "
    "problem."
)
CAPTION = "The chance of losing x or more: simulated, estimated, exact if an exact value exists, and bounded"


def plot_tail(
    policy: Policy,
    problem: Bandit,
    horizon: int,
    regret: Any = None,
    *,
    kind: Lost = "pseudo_regret",
    paths: int | None = None,
    relative_error: float = 0.05,
    seed: int | None = None,
    ax: Axes | None = None,
    threads: int | None = None,
    progress: bool | ReportPart = False,
) -> Figure:
    """Draw P(kind >= x) as it is simulated, estimated, computed exactly if an exact law exists, and bounded.

    regret: one or several x whose chance the title states; by default a third of the largest loss.
    kind: "pseudo_regret", or "regret", which includes the luck of single rewards.
    paths: the paths of the plain simulation, by default 10,000. relative_error, seed, threads: as in
        `tail_probability`.
    ax: the axes to draw into; by default those of a new figure. Returns the figure, which a
        notebook shows. (pyplot shows its own figures, too: with `ax`, end the last line of a cell with `;`.)
    progress: True shows a bar on a terminal and lines elsewhere; a function is called with (what is being
        done, steps done).

    >>> import lighttail as lt
    >>> figure = lt.plot_tail(lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8]), 50, 12, seed=1)
    >>> print(figure.axes[0].get_title("left"))
    UCB + LightTailed(0.2); means 0.2, 0.8; Gaussian(sigma=1.0)
    The chance of losing 12 or more is exactly 6.57 %; the certificate guarantees at most 16.1 %.
    """
    if ax is not None and not hasattr(ax, "fill_between"):
        raise refuse("ax", ax, "axes of matplotlib")
    settings: dict[str, Any] = {"kind": kind, "paths": paths, "relative_error": relative_error}
    settings |= {"seed": seed, "threads": threads}
    curve = tail_curve(policy, problem, horizon, regret, **settings, progress=progress)
    if ax is None:
        return tail_figure(curve)
    draw_tail(ax, curve)
    return ax.figure  # type: ignore[return-value]


def tail_figure(curve: TailCurve, titled: bool = True) -> Figure:
    """The picture alone; without its title for a page that says the same in words."""
    import matplotlib

    from lighttail.report.picture import Picture

    with matplotlib.rc_context(SETTINGS):
        picture = Picture(figsize=(9, 5.6), layout="constrained")
        axes = picture.add_subplot()
        draw_tail(axes, curve)
        if not titled:
            axes.set_title("", loc="left")
        axes.get_legend().remove()  # type: ignore[union-attr]
        picture.legend(loc="outside lower left", frameon=False, fontsize=9, ncols=2)
    return picture


def draw_tail(axes: Axes, curve: TailCurve) -> None:
    """Draw into the axes; the sentences are the title."""
    light = curve.policy.light_tailed and curve.problem.noise.is_sub_gaussian and curve.course.straight
    colour = LIGHT[2] if light else OTHER[0]
    x, value, low, high = curve.simulated()
    axes.fill_between(x, low, high, step="pre", color=colour, alpha=0.2, linewidth=0)
    name = f"simulation, {curve.outcome.paths:,} paths; shaded: 95 %"
    style: Any = "-" if light else (0, (5, 2))
    look: Any = {"color": colour, "linestyle": style, "marker": "s" if x.size == 1 else None}
    axes.plot(x, value, drawstyle="steps-pre", linewidth=2.0, label=name, **look)
    _draw_bounds(axes, curve)
    _draw_points(axes, curve)
    axes.set_yscale("log")
    chances = [1.0 / curve.outcome.paths]
    for point in curve.points:
        chances += [point.estimate.low, point.estimate.value, point.estimate.high, point.exact or 1.0]
    axes.set_ylim(0.1 * min(chance for chance in chances if chance > 0.0), TOP)
    right = axes.get_xlim()[1]
    for regret in curve.asked:  # those far beyond what can happen get no line
        if axes.get_xlim()[0] <= regret <= 1.05 * right:
            mark(axes, regret, amount(regret), 0.9, zorder=1)
    kind = noun(curve.kind)
    axes.set_xlabel(f"{kind} x after {curve.horizon:,} pulls (in units of reward)")
    axes.set_ylabel(f"chance of a {kind} of x or more (log scale)")
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    said = dict.fromkeys(sentence(curve, curve.at(regret)) for regret in curve.asked)
    lines = [subject(curve), *(textwrap.fill(text, WIDTH) for text in said)]
    axes.set_title("\n".join(lines), loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="lower left")


def _draw_bounds(axes: Axes, curve: TailCurve) -> None:
    x = curve.bound_regrets
    if not np.all(np.isnan(curve.certificates)):
        axes.plot(x, curve.certificates, "-.", color=CERTIFICATE, linewidth=1.5, label="certificate: at most")
    if not np.all(np.isnan(curve.theorems)):
        vacuous = bool(np.nanmin(curve.theorems) >= 1.0)
        name = "theorem: exceeds 1, so it tells us nothing" if vacuous else "theorem: at most"
        axes.plot(x, curve.theorems, ":", color=THEOREM, linewidth=2.0, label=name)


def _draw_points(axes: Axes, curve: TailCurve) -> None:
    shown = [point for point in curve.points if point.estimate.method not in ("certain", "exact")]
    seen = [(p.regret, p.estimate) for p in shown if p.estimate.value > 0.0]
    if seen:
        x, value, low, high = np.array([(at, found.value, found.low, found.high) for at, found in seen]).T
        bars = np.maximum([value - low, high - value], 0.0)
        look: Any = {"color": INK, "markersize": 4.5, "capsize": 3, "linewidth": 1.2, "zorder": 4}
        axes.errorbar(x, value, bars, fmt="o", label="estimated; bars: 95 %", **look)
    none = [(p.regret, p.estimate.high) for p in shown if p.estimate.value == 0.0 < p.estimate.high]
    if none:
        name = "no path lost so much: upper limit, 95 %"
        axes.plot(*np.transpose(none), linestyle="", marker=7, markersize=9, color=INK, label=name)
    exact = [(point.regret, point.exact) for point in curve.points if point.exact and point.exact < 1.0]
    if exact:
        many = "-" if len(exact) > 2 else ""
        look = {"marker": "D", "markersize": 8, "markerfacecolor": "none", "color": OTHER[2]}
        axes.plot(*np.transpose(exact), linestyle=many, linewidth=0.8, label="exact", zorder=3, **look)


def write_tail(curve: TailCurve, folder: Path, command: str) -> Path:
    """Write report.html, the picture as PNG and SVG, and results.json; returns the page's path."""
    files = {f"tail.{form}": content for form, content in draw(tail_figure(curve), ("png", "svg")).items()}
    files["results.json"] = results(curve, command).encode()
    bare = draw(tail_figure(curve, titled=False), ("svg",))["svg"]
    files["report.html"] = page(curve, command, bare).encode()
    whole_files(folder, files)
    return folder / "report.html"


def results(curve: TailCurve, command: str) -> str:
    """The numbers as JSON."""
    sentences = [sentence(curve, curve.at(regret)) for regret in curve.asked]
    return json.dumps(curve.to_dict(command, sentences), indent=2, allow_nan=False)


def page(curve: TailCurve, command: str, svg: bytes) -> str:
    """The whole page. svg: the picture without its sentences, which stand on the page."""
    losses = enumerated(map(amount, curve.asked), "or")
    parts = [f"<h1>What is the chance of losing {losses} or more?</h1>"]
    parts.append(f"<p>{escape(subject(curve))}; {curve.horizon:,} pulls. {escape(curve.course.words())}</p>")
    points = [curve.at(regret) for regret in curve.asked]
    parts += [f'<p class="verdict">{escape(sentence(curve, point))}</p>' for point in points]
    parts.append(figure(svg, CAPTION))
    for point in points:
        numbers = table(COLUMNS, (map(cell, row) for row in rows(point, curve.outcome.paths, curve.horizon)))
        parts.append(f"<h2>The chance of {event(curve.kind, point.regret)}</h2>{numbers}")
        parts.append(f"<p>{escape(note(curve, point))}</p>")
    reading = escape(f"{EXPLAINED[curve.kind]} {READING}")
    parts.append(f"<h2>How to read this</h2><p>{reading}</p>")
    parts.append(made_by(command, curve.outcome.settings["versions"], f"seed {curve.seed}"))
    return document(f"lighttail: the tail of {curve.policy}", "\n".join(parts))
