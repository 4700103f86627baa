"""How fast the chance of a linear regret falls with the horizon, far below what simulation can show.

P(pseudo regret >= 0.2 T) is estimated with weighted paths. Each estimate is saved as a small file, so that a
run resumes where it stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttail.checks import BadInput
from lighttail.outcomes.estimates import Estimate
from lighttail.paper.experiments import NEW, PaperExperiment, Results, Setting
from lighttail.paper.figures import COLOURS, MARKERS, grid_of
from lighttail.records import Floats
from lighttail.system.files import whole_file
from lighttail.system.progress import ReportPart
from lighttail.system.versions import used_versions
from lighttail.tails import exact_tail, tail_probability
from lighttail.tails.exact import exact_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARE = 0.2  # the regret per pull
EXACT_SECONDS = 10.0  # seconds per exact value; a value that takes longer is left out
GAP = 0.6  # the gap of the paper's two arms


@dataclass(frozen=True)
class LinearRegretChance:
    """An estimate of P(pseudo regret >= 0.2 T), and the exact value; None if it was left out."""

    estimate: Estimate
    exact: float | None


LinearRegretChances = dict[Setting, LinearRegretChance]


def tails_in(experiments: Iterable[PaperExperiment]) -> list[Setting]:
    """The settings whose tails the experiments show, each once."""
    return list(dict.fromkeys(setting for experiment in experiments for setting in experiment.tails))


def run_tails(
    experiments: Iterable[PaperExperiment],
    folder: Path,
    *,
    seed: int,
    threads: int | None = None,
    progress: ReportPart | None = None,
) -> LinearRegretChances:
    """The chance of every setting, read from its file in `folder`, or estimated and saved there.

    A file that was made with another seed or other versions is replaced. progress: a function that is called
    with (the setting that is being estimated, the number of estimates done).
    """
    chances = {}
    for done, setting in enumerate(tails_in(experiments)):
        if progress is not None:
            progress(f"{setting.series}, T={setting.horizon}", done)
        settings = _settings(setting, seed)
        file = folder / f"tail_{setting.slug}.json"
        chance = _stored(file, settings)
        if chance is None:
            chance = _chance(setting, seed, threads)
            with whole_file(file) as output:
                output.write(json.dumps({"settings": settings, **asdict(chance)}, indent=2).encode())
        chances[setting] = chance
    return chances


def _settings(setting: Setting, seed: int) -> dict[str, Any]:
    """Everything that determines an estimate. The number of paths is not fixed, so it is not part of this."""
    return {
        "policy": repr(setting.policy),
        "problem": repr(setting.problem),
        "horizon": setting.horizon,
        "seed": seed,
        "share": SHARE,
        "versions": used_versions(),
    }


def _chance(setting: Setting, seed: int, threads: int | None) -> LinearRegretChance:
    policy, problem, horizon = setting.policy, setting.problem, setting.horizon
    loss = SHARE * horizon
    full = tail_probability(policy, problem, horizon, loss, seed=seed, threads=threads)
    takes = exact_seconds(policy, problem, horizon, loss)
    known = not isinstance(takes, BadInput) and takes <= EXACT_SECONDS
    exact = exact_tail(policy, problem, horizon=horizon, regret=loss) if known else None
    return LinearRegretChance(Estimate(full.value, full.low, full.high, full.level), exact)


def _stored(file: Path, settings: dict[str, Any]) -> LinearRegretChance | None:
    try:
        stored = json.loads(file.read_text())
        estimate = Estimate(**stored["estimate"])
        same = all(stored["settings"][key] == settings[key] for key in settings)
        return LinearRegretChance(estimate, stored["exact"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):  # the file is missing, incomplete, or of another kind
        return None


def exponents_figure(experiment: PaperExperiment, results: Results, chances: LinearRegretChances) -> Figure:
    """Two panels: -ln P / ln T, which is level for a polynomial tail, and -ln P / sqrt T, which is level for
    an exponential tail."""
    figure, [[left, right]] = grid_of(1, 2, (10, 5.0), sharex=False, sharey=False)
    for axes, unit in ((left, math.log), (right, math.sqrt)):
        _draw_series(axes, experiment, results, chances, unit)
        _draw_theory(axes, experiment, unit)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("horizon T (pulls, log scale)")
        axes.grid(axis="y", color="0.9")
    left.set_ylabel("−ln P(pseudo regret ≥ 0.2 T) / ln T (log scale)")
    right.set_ylabel("−ln P(pseudo regret ≥ 0.2 T) / √T (log scale)")
    left.set_title("over ln T: a polynomial tail is level")
    right.set_title("over √T: an exponential tail is level, apart from √ln T")
    legends = [axes.get_legend_handles_labels() for axes in (left, right)]
    legend = {name: line for lines, names in legends for name, line in zip(names, lines, strict=True)}
    look: Any = {"frameon": False, "fontsize": 9, "ncols": 3}
    figure.legend(list(legend.values()), list(legend), loc="outside lower left", **look)
    return figure


def _draw_series(
    axes: Axes,
    experiment: PaperExperiment,
    results: Results,
    chances: LinearRegretChances,
    unit: Callable[[float], float],
) -> None:
    for name in dict.fromkeys(setting.series for setting in experiment.tails):
        settings = [setting for setting in experiment.tails if setting.series == name and setting in chances]
        points = _exponents([(setting.horizon, chances[setting].estimate) for setting in settings], unit)
        style: Any = {"color": COLOURS[name], "linestyle": "-" if name in NEW else (0, (5, 2))}
        label = f"{name} (κ = {settings[0].kappa:g}), estimated"
        axes.errorbar(*points, marker=MARKERS[name], capsize=3, label=label, **style)
        known = [(setting.horizon, chances[setting].exact) for setting in settings]
        exact = [(t, -math.log(chance) / unit(t)) for t, chance in known if chance]
        if exact:
            cross: Any = {"marker": "x", "color": "black", "markersize": 9, "zorder": 4}
            axes.plot(*np.transpose(exact), linestyle="", label="exact", **cross)
        played = experiment.by_series.get(name, [])
        seen = [(s.horizon, results[s].exceedance(SHARE * s.horizon, "pseudo_regret")) for s in played]
        if seen := [(t, chance) for t, chance in seen if chance.value > 0.0]:
            ring: Any = {"marker": "o", "color": "0.45", "markersize": 12, "markerfacecolor": "none"}
            points = _exponents(seen, unit)
            axes.errorbar(*points, linestyle="", capsize=6, label="in simulated paths", **ring)


def _exponents(
    chances: list[tuple[int, Estimate]], unit: Callable[[float], float]
) -> tuple[Floats, Floats, Floats]:
    """T, the exponent -ln P / unit(T), and the distances from it to those of the interval's ends."""
    at = np.array([float(horizon) for horizon, _ in chances])
    ends = [(chance.value, chance.low, chance.high) for _, chance in chances]
    value, low, high = np.transpose(
        [[-math.log(p) / unit(t) for p in three] for t, three in zip(at, ends, strict=True)]
    )
    return at, value, np.maximum([value - high, low - value], 0.0)


def _draw_theory(axes: Axes, experiment: PaperExperiment, unit: Callable[[float], float]) -> None:
    """Draw the exponents of theory, without the constants before the exponential."""
    kappa = {setting.series: setting.kappa for setting in experiment.tails}
    horizons = [setting.horizon for setting in experiment.tails]
    t: Floats = np.geomspace(min(horizons), max(horizons), 60)
    if unit is math.log and "UCB" in kappa:
        limit = standard_exponent(kappa["UCB"])
        name = f"UCB as T → ∞: κ²/(2σ²) = {limit:.2g}"
        axes.axhline(limit, color=COLOURS["UCB"], linestyle=":", linewidth=1.8, label=name)
    elif unit is math.sqrt and "UCB_new" in kappa:
        near = certificate_exponent(t, kappa["UCB_new"]) / np.sqrt(t)
        far = theorem_exponent(t, kappa["UCB_new"]) / np.sqrt(t)
        axes.plot(t, near, "-.", color="0.3", label="UCB_new, the certificate's exponent 2κΔ√(T ln T)/σ²")
        axes.plot(t, far, ":", color="0.3", label="UCB_new, the theorem's exponent 0.2 κ√(T ln T)/(8σ²K)")


def theorem_exponent(horizon: Any, kappa: float, sigma: float = 1.0, arms: int = 2) -> Any:
    """x kappa sqrt(ln T) / (8 sigma^2 K sqrt T) at x = 0.2 T: the last term of Thm exp-K-armed."""
    return SHARE * kappa * np.sqrt(horizon * np.log(horizon)) / (8.0 * sigma**2 * arms)


def certificate_exponent(horizon: Any, kappa: float, sigma: float = 1.0, gap: float = GAP) -> Any:
    """2 c gap / sigma^2 with c = kappa sqrt(T ln T): the exponent of the certificate for large T."""
    return 2.0 * kappa * np.sqrt(horizon * np.log(horizon)) * gap / sigma**2


def standard_exponent(kappa: float, sigma: float = 1.0) -> float:
    """kappa^2 / (2 sigma^2): with the standard bonus, P falls like T to the power of minus this number.

    The most likely cause is a first reward of the best arm that is so low that the index, which is
    kappa sqrt(ln T) above the reward, is below the mean of the other arm. The noise of that reward is then
    below -(kappa sqrt(ln T) + gap). Several low rewards are less likely.
    """
    return kappa**2 / (2.0 * sigma**2)
