"""Measures what delays do to losses and draws docs/images/delays.png (docs/delays.md; `make delays`).

About six minutes of one processor. The tables are printed as they stand on the page.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import lighttail as lt
from lighttail.report.figures import SETTINGS, draw
from lighttail.system.files import whole_file

LEVELS = (0.5, 0.99, 0.999)
Ways = dict[str, dict[str, Any]]


def policies(scale: float) -> list[lt.Policy]:
    """As tuned in the paper for noise of this size."""
    return [
        lt.UCB(lt.Standard(0.8 * scale)),
        lt.UCB(lt.LightTailed(0.2 * scale)),
        lt.UCB(lt.AnyTime(0.2 * math.sqrt(2.0) * scale)),
        lt.ThompsonSampling(0.8 * scale),
        lt.SuccessiveElimination(lt.LightTailed(0.1 * scale)),
    ]


NEVER: Ways = {"10 % never": {"delay": lt.FixedDelay(0, never=0.1)}}
GAUSSIAN: Ways = {
    "no delay": {},
    "fixed, 100": {"delay": 100},
    "fixed, 500": {"delay": 500},
    "geometric, mean 500": {"delay": lt.GeometricDelay(500)},
    "uniform, 0 to 1,000": {"delay": lt.UniformDelay(0, 1000)},
    "batches of 100": {"batch": 100},
    "batches of 500": {"batch": 500},
    **NEVER,
    "50 % never": {"delay": lt.FixedDelay(0, never=0.5)},
}
WEB: Ways = {
    "no delay": {},
    "fixed, 2,000": {"delay": 2000},
    "fixed, 10,000": {"delay": 10_000},
    "geometric, mean 2,000": {"delay": lt.GeometricDelay(2000)},
    "uniform, 0 to 10,000": {"delay": lt.UniformDelay(0, 10_000)},
    "batches of 2,000": {"batch": 2000},
    **NEVER,
}


def measure(problem: lt.Bandit, scale: float, ways: Ways, **settings: Any) -> dict[lt.Policy, dict[str, Any]]:
    """The outcome of every policy in every way."""
    return {
        policy: {name: lt.simulate(policy, problem, seed=1, **settings, **way) for name, way in ways.items()}
        for policy in policies(scale)
    }


def table(outcomes: dict[lt.Policy, dict[str, Any]], threshold: float) -> None:
    """The mean loss, then P(loss >= threshold), with 95 % intervals; one row per way."""
    for show in (_mean, partial(_chance, threshold)):
        print(f"\n| rewards | {' | '.join(map(str, outcomes))} |\n|{'---|' * (1 + len(outcomes))}")
        for name in next(iter(outcomes.values())):
            print(f"| {name} | {' | '.join(show(ways[name]) for ways in outcomes.values())} |")


def _mean(out: lt.Outcome) -> str:
    mean = out.mean("pseudo_regret")
    return f"{mean.value:.1f} ± {(mean.high - mean.low) / 2:.1f}"


def _chance(threshold: float, out: lt.Outcome) -> str:
    found = out.exceedance(threshold, "pseudo_regret")
    if not found.value:
        return f"< {100 * found.high:.2g} %"
    return f"{100 * found.value:.2g} % [{100 * found.low:.2g}, {100 * found.high:.2g}]"


def shifts(outcomes: dict[lt.Policy, dict[str, Any]], gap: float) -> None:
    """By how much fixed delays move the quantiles of the loss, in units of delay * gap."""
    for policy, ways in outcomes.items():
        before = np.quantile(ways["no delay"].pseudo_regret, LEVELS)
        for name, out in ways.items():
            if name.startswith("fixed"):
                pulls = int(name.split(", ", 1)[1].replace(",", ""))
                moved = (np.quantile(out.pseudo_regret, LEVELS) - before) / (pulls * gap)
                print(policy, name, "quantiles", LEVELS, "moved by", np.round(moved, 2), "delay * gap")


def picture(outcomes: dict[lt.Policy, dict[str, Any]], shown: dict[str, tuple[str, Any]]) -> Figure:
    """P(loss >= x) of four policies, one panel each, one line per way."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(9, 5.6), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
        for place, (policy, ways) in zip(axes, list(outcomes.items())[:4], strict=True):
            for name, (color, style) in shown.items():
                lost = np.sort(ways[name].pseudo_regret)
                left = np.arange(lost.size, 0, -1) / lost.size
                x, first = np.unique(lost, return_index=True)
                label = name if place is axes[0] else None
                place.step(x, left[first], where="pre", color=color, linestyle=style, label=label)
            place.set_yscale("log")
            place.set_title(str(policy), loc="left")
            place.grid(axis="y", color="0.9", linewidth=0.8)
        for place in axes[2:]:
            place.set_xlabel("x: lost after 2,000 pulls (1,200 at most)")
        for place in axes[::2]:
            place.set_ylabel("P(loss ≥ x), log scale")
        figure.legend(loc="outside lower center", ncols=5, frameon=False, title="when rewards become known")
    return figure


def where_it_fails(problem: lt.Bandit) -> None:
    """The chances that the text gives: half of the rewards lost, a smaller kappa, Thompson's middle tail."""
    lost = {"delay": lt.FixedDelay(0, never=0.5)}
    for policy in policies(1.0)[:2]:
        for horizon in (250, 500, 1000, 2000, 4000):
            out = lt.simulate(policy, problem, horizon=horizon, paths=40_000, seed=2, **lost)
            print(policy, "half lost", horizon, _chance(0.2 * horizon, out))
    smaller = lt.UCB(lt.Standard(0.8 * math.sqrt(0.5)))
    print(smaller, _chance(400.0, lt.simulate(smaller, problem, horizon=2000, paths=20_000, seed=2)))
    for way in ("no delay", "uniform, 0 to 1,000"):
        out = lt.simulate(policies(1.0)[3], problem, horizon=2000, paths=100_000, seed=5, **GAUSSIAN[way])
        print("Thompson", way, *(f"{x:g}: {_chance(x, out)}" for x in (400.0, 800.0)))


def main() -> None:
    two = measure(lt.Bandit([0.2, 0.8]), 1.0, GAUSSIAN, horizon=2000, paths=20_000)
    table(two, 400.0)
    shifts(two, 0.6)
    shown = {
        "no delay": ("0.2", "-"),
        "fixed, 500": ("#1f77b4", (0, (5, 2))),
        "uniform, 0 to 1,000": ("#2ca02c", (0, (3, 1, 1, 1))),
        "10 % never": ("#ff7f0e", (0, (1, 1))),
        "50 % never": ("#d62728", "-"),
    }
    path = Path(__file__).parent / "images" / "delays.png"
    with whole_file(path) as file:
        file.write(draw(picture(two, shown), ("png",))["png"])
    print(path, flush=True)
    web = measure(lt.Bandit([0.04, 0.05], lt.Bernoulli()), 0.21, WEB, horizon=20_000, paths=5000)
    table(web, 150.0)
    shifts(web, 0.01)
    where_it_fails(lt.Bandit([0.2, 0.8]))


if __name__ == "__main__":
    main()
