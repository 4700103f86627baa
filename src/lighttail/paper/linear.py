"""Experiments with linear bandits, which the paper treats in theory but does not simulate.

Fixed sets have theta = 0.6 e_1 and the 2 d - 1 actions e_1, ..., e_d and (e_1 + e_k)/sqrt 2, k = 2, ..., d.
So the gaps are 0.6, as with the paper's two arms, and 0.18 for the actions between e_1 and another axis.
Changing sets have ten new points of the sphere in each round. The noise has sigma = 1; the policies assume a
sigma of 1, 1/2, 1/4 and 1/8.

The tables and the figure show the pseudo regret: the mean loss of the actions taken, without the noise in the
rewards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lighttail.bounds import linear
from lighttail.linear import (
    LinearBandit,
    LinearLightTailed,
    LinearPolicy,
    LinearStandard,
    LinearThompson,
    LinearUCB,
    Oful,
    SphereActions,
)
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import chance, interval, outward, probability
from lighttail.outcomes.outcome import Outcome
from lighttail.paper.experiments import PaperExperiment, Results
from lighttail.paper.figures import grid_of
from lighttail.paper.tables import PaperTable, columns_with_ends, with_ends
from lighttail.report.figures import LIGHT, OTHER, draw_curve, mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GAP = 0.6  # the length of theta, which is the largest gap of a fixed set
KAPPA = 0.2  # the kappa of UCB-L for sigma = 1; the paper tunes it for arms
DIMS = (2, 5, 10, 20)
SHARES = {2: 0.4, 5: 0.2, 10: 0.1, 20: 0.1}  # of the paths, by the dimension
UNDER = (1, 2, 4, 8)  # the factors by which the policies under-estimate sigma
ENDS = (UNDER[0], UNDER[-1])
HORIZONS = (300, 1000, 3000, 10_000)
POLICIES: dict[str, Callable[[float], LinearPolicy]] = {
    "UCB-L": lambda sigma: LinearUCB(LinearLightTailed(KAPPA * sigma)),
    "OFUL": lambda sigma: LinearUCB(Oful(sigma, delta=0.05, bound=1.0)),
    "LinearStandard": lambda sigma: LinearUCB(LinearStandard(sigma)),
    "LinearThompson": LinearThompson,
}
LINEAR, RUIN = 0.1, 0.5  # losses per pull; the largest possible loss per pull is 0.6
LOOKS: dict[str, dict[str, Any]] = {
    "UCB-L": {"color": LIGHT[0], "linestyle": "-"},
    "OFUL": {"color": OTHER[1], "linestyle": (0, (5, 2))},
    "LinearStandard": {"color": OTHER[0], "linestyle": (0, (1, 1.5))},
    "LinearThompson": {"color": OTHER[2], "linestyle": (0, (5, 2, 1, 2))},
}


@dataclass(frozen=True)
class LinearSetting:
    """One simulation.

    under: the noise is `under` times the noise that the policy assumes. share: the share of the paths that
    the user asked for.
    """

    series: str
    dim: int
    horizon: int
    under: int
    changing: bool = False
    share: float = 0.4

    @property
    def policy(self) -> LinearPolicy:
        return POLICIES[self.series](1.0 / self.under)

    @property
    def problem(self) -> LinearBandit:
        axes = np.eye(self.dim)
        if self.changing:
            return LinearBandit(GAP * axes[0], SphereActions(10))
        # The actions are slightly shorter than 1, so that rounding cannot make them longer than 1.
        between = (axes[0] + axes[1:]) * ((1.0 - 1e-12) / math.sqrt(2.0))
        return LinearBandit(GAP * axes[0], np.concatenate([axes, between]))

    @property
    def label(self) -> str:
        return f"{self.series}, d={self.dim}, T={self.horizon}"

    @property
    def slug(self) -> str:
        """A file name that describes the setting."""
        kind = "sphere" if self.changing else "fixed"
        return f"{self.series.lower()}_{kind}_dim-{self.dim}_under-{self.under}_horizon-{self.horizon}"


NOISE = tuple(
    LinearSetting(series, dim, 500 * dim, under, share=SHARES[dim])
    for series, dim, under in product(POLICIES, DIMS, UNDER)
)
GROWING = tuple(
    LinearSetting(series, 2, horizon, under) for series, under, horizon in product(POLICIES, ENDS, HORIZONS)
)
CHANGING = tuple(
    LinearSetting(series, dim, 1000, under, changing=True, share=0.1)
    for series, under, dim in product(POLICIES, ENDS, DIMS)
)
SHAPES = tuple(setting for setting in NOISE if setting.under in ENDS)
# The name, label, view, title and settings of every part, as in `experiments.PARTS`.
LINEAR_PARTS = (
    ("linear-1", "", "linear-noise", "A fixed set, with the right noise and under-estimated noise", NOISE),
    ("linear-2", "", "linear-shapes", "The whole distribution, fixed sets", SHAPES),
    ("linear-3", "", "linear-horizons", "The chance of a linear regret as the horizon grows, d = 2", GROWING),
    ("linear-4", "", "linear-changing", "Ten new actions per round, T = 1,000", CHANGING),
)


def theorem_tail(x: float, horizon: int, dim: int, sigma: float, kappa: float) -> float:
    """The bound of Thm linear on P(pseudo regret >= x), without the noise term and at most 1."""
    return min(1.0, sum(linear(x, horizon, dim, sigma, kappa)[1:]))


def speaks_from(dim: int, sigma: float, kappa: float) -> int:
    """The smallest k such that, at the horizon T = 10^k, `theorem_tail` is below 1 for x = LINEAR * T."""
    return next(k for k in range(1, 60) if theorem_tail(LINEAR * 10**k, 10**k, dim, sigma, kappa) < 1.0)


class Numbers(NamedTuple):
    """The numbers that are shown for a setting."""

    mean: Estimate
    worst: Estimate  # the mean of the worst 5 %
    linear: Estimate  # P(pseudo regret >= LINEAR * T)
    ruin: Estimate  # P(pseudo regret >= RUIN * T)


def _lines(numbers: Numbers) -> list[str]:
    """The lines of a cell in the wide table."""
    mean, limits = interval(numbers.mean)
    lines = [f"mean: {mean}", limits, f"worst 5 %: {interval(numbers.worst)[0]}"]
    for estimate, share in ((numbers.linear, LINEAR), (numbers.ruin, RUIN)):
        value, limits = probability(estimate)
        lines += [f"{value} lose ≥ {share:g} T", *filter(None, [limits])]
    return lines


COLUMNS = [
    *("policy", "dim", "horizon", "noise under-estimated by", "paths"),
    *columns_with_ends("mean", "mean of worst 5 %", f"P(≥ {LINEAR:g} T)", f"P(≥ {RUIN:g} T)"),
]


def _known(experiment: PaperExperiment, results: Results) -> dict[LinearSetting, Numbers]:
    known = {}
    for setting in experiment.settings:
        outcome: Outcome = results[setting]
        chances = (outcome.exceedance(share * setting.horizon, "pseudo_regret") for share in (LINEAR, RUIN))
        mean, worst = outcome.mean("pseudo_regret"), outcome.cvar(0.95, "pseudo_regret")
        known[setting] = Numbers(mean, worst, *chances)
    return known


def _table(
    known: dict[LinearSetting, Numbers],
    results: Results,
    row: Callable[[LinearSetting], str],
    column: Callable[[LinearSetting], str],
    notes: Sequence[str],
) -> PaperTable:
    """A table with every setting in its row and column."""
    rows: list[list[str]] = []
    cells: dict[str, dict[str, list[str]]] = {}
    for setting, numbers in known.items():
        about = (setting.series, setting.dim, setting.horizon, setting.under, results[setting].paths)
        rows.append([*map(str, about), *with_ends(*numbers)])
        cells.setdefault(row(setting), {})[column(setting)] = _lines(numbers)
    heads = list(dict.fromkeys(column(setting) for setting in known))
    wide = [[[name], *(line[head] for head in heads)] for name, line in cells.items()]
    return PaperTable(COLUMNS, rows, ["policy", *heads], wide, notes)


def noise_table(experiment: PaperExperiment, results: Results) -> PaperTable:
    """A table with one row per policy and dimension, and one column per factor."""
    known = _known(experiment, results)
    by = {(s.series, s.dim, s.under): numbers for s, numbers in known.items()}
    notes = [
        "θ = 0.6 e₁, the noise has σ = 1, and T = 500 d; the actions are e₁, …, e_d and (e₁ + e_k)/√2. Each "
        "cell shows the mean pseudo regret with its 95 % interval, the mean of the worst 5 % of the paths, "
        f"and the shares of paths that lose {LINEAR:g} T or more and {RUIN:g} T or more. The worst action in "
        f"every round loses 0.6 T. “×4” means that the policy assumes σ = 1/4. UCB-L has κ = {KAPPA:g} σ, "
        "OFUL has δ = 0.05 and the bound |θ| ≤ 1, LinearStandard has β = σ, LinearThompson has scale σ.",
        *(_best_at(by, under) for under in ENDS),
        *(_change_of(by, series) for series in POLICIES),
        _price(by),
    ]
    return _table(known, results, lambda s: f"{s.series}, d = {s.dim}", lambda s: f"noise ×{s.under}", notes)


def _best_at(by: Any, under: int) -> str:
    """A sentence about the policy with the lowest mean in each dimension, and whether its interval lies below
    that of the next policy."""
    parts = []
    for dim in DIMS:
        first, second = sorted(POLICIES, key=lambda name: by[name, dim, under].mean.value)[:2]
        clear = by[first, dim, under].mean.high < by[second, dim, under].mean.low
        parts.append(f"{first} in d = {dim}" + ("" if clear else f" (not clearly below {second})"))
    when = "With the right noise" if under == 1 else f"With the noise under-estimated by the factor {under}"
    return f"{when}, the lowest mean regret is that of {', '.join(parts)}."


def _change_of(by: Any, series: str) -> str:
    """A sentence about the change of a policy's tail when the noise is under-estimated."""
    parts = []
    for dim in DIMS:
        right, wrong = (by[series, dim, under] for under in ENDS)
        ruined = f"{_often(right.ruin)} → {_often(wrong.ruin)}"
        parts.append(f"d = {dim}: {right.worst.value:,.0f} → {wrong.worst.value:,.0f} ({ruined})")
    return (
        f"{series}, from the right noise to noise under-estimated by the factor {UNDER[-1]}: the mean of the "
        f"worst 5 % (and the share of paths that lose {RUIN:g} T or more) changes as follows: "
        f"{'; '.join(parts)}."
    )


def _often(estimate: Estimate) -> str:
    return chance(estimate.value) if estimate.value else f"< {outward(estimate.high)}"


def _price(by: Any) -> str:
    """A sentence about the settings in which the mean regret of UCB-L is clearly above the lowest."""
    parts = []
    for under, dim in product(ENDS, DIMS):
        means = {name: by[name, dim, under].mean for name in POLICIES}
        best = min(means, key=lambda name: means[name].value)
        if means["UCB-L"].low > means[best].high:
            ratio = means["UCB-L"].value / means[best].value
            parts.append(f"{ratio:.1f} times that of {best} in d = {dim} with noise ×{under}")
    if not parts:
        return "In none of these settings is the mean regret of UCB-L clearly above the lowest."
    return (
        f"In some settings the mean regret of UCB-L is clearly above the lowest: it is {', '.join(parts)}. "
        "The bonus of UCB-L contains √(d z), which does not depend on the assumed noise: this exploration "
        "remains if the noise is misjudged, and it costs most in many dimensions."
    )


def _with_factor(setting: LinearSetting) -> str:
    return f"{setting.series}, noise ×{setting.under}"


def horizons_table(experiment: PaperExperiment, results: Results) -> PaperTable:
    """A table with one row per policy and factor and one column per horizon; the theorem's bound below."""
    known = _known(experiment, results)
    settings = list(known)
    dim, horizons = settings[0].dim, sorted({setting.horizon for setting in settings})
    table = _table(known, results, _with_factor, lambda s: f"T = {s.horizon:,}", [])
    rows, wide = list(table.rows), list(table.wide_rows)
    for under in sorted({setting.under for setting in settings}):
        name = f"Thm linear, UCB-L, noise ×{under}"
        values = [theorem_tail(LINEAR * t, t, dim, 1.0, KAPPA / under) for t in horizons]
        for t, value in zip(horizons, values, strict=True):
            line = dict.fromkeys(COLUMNS, "") | {"policy": name, "dim": str(dim), "horizon": str(t)}
            line |= {COLUMNS[3]: str(under), f"P(≥ {LINEAR:g} T)": f"{value:.6g}"}
            rows.append(list(line.values()))
        wide.append([[name], *([chance(v) if v < 1.0 else "1 or more"] for v in values)])
    falls = []
    for name in dict.fromkeys(_with_factor(setting) for setting in settings):
        ends = [s for s in settings if _with_factor(s) == name and s.horizon in (horizons[0], horizons[-1])]
        first, last = (known[s].ruin for s in ends)
        falls.append(f"{name}: {_often(first)} → {_often(last)}")
    power = speaks_from(dim, 1.0, KAPPA)
    notes = [
        f"The share of paths that lose {RUIN:g} T or more, from T = {horizons[0]:,} to {horizons[-1]:,}: "
        f"{'; '.join(falls)}. If the share does not fall while T grows, the tail is heavy: those paths stay "
        "with a bad action until the end. For UCB-L the theorem says that the share falls exponentially in "
        "√T as T grows, for every κ > 0.",
        f"The theorem's bound (without the noise term) on the chance to lose {LINEAR:g} T or more exceeds 1 "
        f"at all of these horizons, so it tells us nothing; for κ = {KAPPA:g} and d = {dim} it falls below 1 "
        f"between T = 10^{power - 1} and 10^{power}.",
    ]
    return PaperTable(table.columns, rows, table.wide_columns, wide, notes)


def changing_table(experiment: PaperExperiment, results: Results) -> PaperTable:
    """A table with one row per policy and factor, and one column per dimension."""
    known = _known(experiment, results)
    means = {(s.series, s.dim, s.under): numbers.mean.value for s, numbers in known.items()}
    ruin = max(numbers.ruin.high for numbers in known.values())
    spread = []
    for dim in DIMS:
        here = [mean for (_, d, _), mean in means.items() if d == dim]
        spread.append(f"{min(here):.0f} and {max(here):.0f} in d = {dim}")
    note = (
        "θ = 0.6 e₁, and the noise has σ = 1. New actions explore by themselves: whatever noise a policy "
        f"assumes, at most {outward(ruin)} of the paths lose {RUIN:g} T or more (the highest upper limit). "
        f"The mean regrets of all policies and both factors lie between {', '.join(spread)}."
    )
    return _table(known, results, _with_factor, lambda s: f"d = {s.dim}", [note])


def shapes_figure(experiment: PaperExperiment, results: Results) -> Figure:
    """P(pseudo regret >= x) on a log scale, with one column per dimension and one row per factor."""
    figure, grid = grid_of(2, len(DIMS), (11, 5.4))
    for row, under in zip(grid, ENDS, strict=True):
        for axes, dim in zip(row, DIMS, strict=True):
            for setting in experiment.settings:
                if (setting.dim, setting.under) == (dim, under):
                    share = results[setting].pseudo_regret / setting.horizon
                    draw_curve(axes, share, setting.series, LOOKS[setting.series])
            mark(axes, LINEAR)
            axes.set_yscale("log")
            axes.set_ylim(1e-3, 1.2)
            axes.grid(axis="y", color="0.9", linewidth=0.8)
            axes.set_title(f"d = {dim}, T = {500 * dim:,}" if under == 1 else "")
        row[0].set_ylabel("right noise assumed" if under == 1 else "noise under-estimated by 8")
    grid[0][0].legend(frameon=False, fontsize=8, loc="upper right")
    figure.supxlabel("pseudo regret / T (0.6 is the worst action in every round)", fontsize=10)
    figure.supylabel("chance to lose that or more (log scale)", fontsize=10)
    return figure
