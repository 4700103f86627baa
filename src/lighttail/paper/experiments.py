"""The experiments of the paper's numerical section, as data, and their simulation: a new one is a new row.

A `Setting` is one simulation. A `PaperExperiment` is one table or figure: a name, a view that draws it, and
the settings that it shows. A setting that two experiments share is simulated once. Finished outcomes are
saved as files and used again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lighttail.bonuses import AnyTime, ArmOptimal, LightTailed, Standard
from lighttail.noises import Gaussian
from lighttail.outcomes.outcome import PathsOutcome
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.problems import Bandit
from lighttail.running.simulate import settings_of, simulate
from lighttail.system.progress import ReportPart

Results = dict[Any, PathsOutcome]  # by Setting or LinearSetting

KAPPAS = (0.1, 0.2, 0.4, 0.8)
# What the paper prints: the mean cumulative reward (Tables mean-2, mean-4), by the number of arms, the policy
# and kappa.
PUBLISHED: dict[int, dict[str, tuple[float, float, float, float]]] = {
    2: {
        "SE": (311.60, 336.46, 375.53, 374.69),
        "UCB": (349.68, 359.68, 377.17, 390.23),
        "TS": (351.00, 360.71, 377.94, 390.32),
        "SE_new": (388.16, 376.69, 354.25, 309.58),
        "UCB_new": (393.27, 387.48, 377.72, 360.69),
        "UCB_any": (391.66, 387.60, 377.37, 359.59),
    },
    4: {
        "SE": (293.11, 311.74, 351.81, 316.64),
        "UCB": (339.41, 348.52, 360.26, 369.25),
        "TS": (341.05, 349.86, 359.82, 365.26),
        "SE_new": (361.93, 334.18, 283.69, 251.52),
        "UCB_new": (371.10, 361.13, 339.29, 309.71),
        "UCB_any": (368.86, 359.87, 335.68, 305.88),
    },
}
PUBLISHED_PATHS = 5000  # paths per published mean

TWO = (0.2, 0.8)
FOUR = (0.2, 0.4, 0.6, 0.8)
SHIFTED = (5.2, 5.8)
SIXTEEN = tuple(0.2 + 0.04 * arm for arm in range(16))

# The names are those of the paper. The paper's any-time runs leave out the theorem's factor 1/sqrt(K), hence
# kappa * sqrt(K).
POLICIES: dict[str, Callable[[float, int], Policy]] = {
    "SE": lambda kappa, arms: SuccessiveElimination(Standard(kappa)),
    "UCB": lambda kappa, arms: UCB(Standard(kappa)),
    "TS": lambda kappa, arms: ThompsonSampling(kappa),
    "SE_new": lambda kappa, arms: SuccessiveElimination(LightTailed(kappa)),
    "UCB_new": lambda kappa, arms: UCB(LightTailed(kappa)),
    "UCB_any": lambda kappa, arms: UCB(AnyTime(kappa * math.sqrt(arms))),
    "UCB_any, theorem": lambda kappa, arms: UCB(AnyTime(kappa)),
    "UCB_optimal": lambda kappa, arms: UCB(ArmOptimal(kappa, kappa)),
    "EXP3-IX, reward": lambda kappa, arms: Exp3IX("reward"),
    "EXP3-IX, loss": lambda bound, arms: Exp3IX("loss", upper=bound),
}
TUNED = {"SE": 0.4, "UCB": 0.8, "TS": 0.8, "SE_new": 0.1, "UCB_new": 0.2, "UCB_any": 0.2}
STANDARD = ("SE", "UCB", "TS")
NEW = ("SE_new", "UCB_new", "UCB_any")
FAR = ("UCB", "UCB_new", "UCB_any", "SE_new")
FAR_HORIZONS = (500, 1000, 2000, 4000, 10_000, 30_000, 100_000)


@dataclass(frozen=True)
class Setting:
    """One simulation. For EXP3-IX with losses `kappa` is the bound C; with rewards it is not used."""

    series: str
    kappa: float
    means: tuple[float, ...]
    horizon: int
    variance: float = 1.0
    share: ClassVar[float] = 1.0  # the share of the paths that the user asked for

    @property
    def label(self) -> str:
        return f"{self.series}, K={len(self.means)}, T={self.horizon}"

    @property
    def policy(self) -> Policy:
        return POLICIES[self.series](self.kappa, len(self.means))

    @property
    def problem(self) -> Bandit:
        return Bandit(self.means, Gaussian(math.sqrt(self.variance)))

    @property
    def slug(self) -> str:
        """A file name that describes the setting."""
        series = self.series.lower().replace(", ", "-").replace("_", "-")
        means = "-".join(f"{mean:g}" for mean in (self.means[0], self.means[-1]))
        return (
            f"{series}_kappa-{self.kappa:g}_arms-{len(self.means)}_means-{means}"
            f"_variance-{self.variance:g}_horizon-{self.horizon}"
        )


@dataclass(frozen=True)
class PaperExperiment:
    """One table or figure: its name, how it is drawn, and the settings that it shows."""

    name: str
    label: str  # the label in the paper's source; empty if the part is not in the paper
    view: str
    title: str
    settings: tuple[Any, ...]  # Setting, or LinearSetting in the linear parts
    tails: tuple[Setting, ...] = ()  # settings whose chance of a linear regret is estimated, however small

    @property
    def by_series(self) -> dict[str, list[Any]]:
        """The settings by the names of their policies."""
        settings: dict[str, list[Any]] = {}
        for setting in self.settings:
            settings.setdefault(setting.series, []).append(setting)
        return settings

    @property
    def section(self) -> str:
        """The heading above the part; empty for a part of the paper."""
        if self.label:
            return ""
        return "Linear bandits, measured" if self.view.startswith("linear") else "Beyond the paper"


def _tuning(means: tuple[float, ...], series: tuple[str, ...]) -> tuple[Setting, ...]:
    return tuple(Setting(name, kappa, means, 500) for name in series for kappa in KAPPAS)


def _scaled(means: tuple[float, ...], noisier: bool = False) -> tuple[Setting, ...]:
    """The tuned policies at 1, 2, 4, 8 times the horizon and, if `noisier`, as many times the variance."""
    return tuple(
        Setting(name, kappa, means, 500 * times, float(times) if noisier else 1.0)
        for name, kappa in TUNED.items()
        for times in (1, 2, 4, 8)
    )


SIX = tuple(TUNED)
BOTH_READINGS = (*SIX, "UCB_any, theorem")
NO_NOISE = tuple(
    Setting(name, bound, means, 500, 0.0)
    for name in ("EXP3-IX, reward", "EXP3-IX, loss")
    for means, bound in ((TWO, 1.0), (SHIFTED, 6.0))
)
ON_TWO = tuple(Setting(name, kappa, TWO, 500) for name, kappa in TUNED.items())
MANY_ARMS = tuple(
    Setting(name, 0.4, means, 4000) for means in (FOUR, SIXTEEN) for name in ("UCB_new", "UCB_optimal")
)
REACH = _scaled(TWO)
FAR_REACH = tuple(setting for setting in REACH if setting.series in FAR)
FAR_TAILS = tuple(Setting(name, TUNED[name], TWO, horizon) for name in FAR for horizon in FAR_HORIZONS)
CERTAIN = "Regret of EXP3-IX without noise: the reward estimator, and the loss estimator with a known bound"
EXPONENTS = "How fast the chance of a linear regret falls, to a horizon of 100,000"
# The name, label, view, title, settings and tails of every part, in the order of the page.
PARTS: tuple[tuple[Any, ...], ...] = (
    ("figure-1", "fig:exp3-ix", "certain", CERTAIN, NO_NOISE),
    ("table-1", "table:mean-2", "means", "Mean cumulative reward, 2 arms", _tuning(TWO, BOTH_READINGS)),
    ("figure-2", "fig:reward-distribution-2", "rewards", "Cumulative reward, 2 arms", _tuning(TWO, SIX)),
    ("table-2", "table:mean-4", "means", "Mean cumulative reward, 4 arms", _tuning(FOUR, BOTH_READINGS)),
    ("figure-3", "fig:reward-distribution-4", "rewards", "Cumulative reward, 4 arms", _tuning(FOUR, SIX)),
    ("figure-4", "fig:reward-distribution-tail-2", "decay", "Decay of the tail, 2 arms", _scaled(TWO)),
    ("figure-5", "fig:reward-distribution-tail-4", "decay", "Decay of the tail, 4 arms", _scaled(FOUR)),
    ("figure-6", "fig:reward-distribution-mis-2", "noisier", "Misjudged noise, 2 arms", _scaled(TWO, True)),
    ("figure-7", "fig:reward-distribution-mis-4", "noisier", "Misjudged noise, 4 arms", _scaled(FOUR, True)),
    ("beyond-1", "", "readings", "For a manager: the tuned policies on two arms", ON_TWO),
    ("beyond-2", "", "arms", "What the K-optimal bonus saves", MANY_ARMS),
    ("beyond-3", "", "reach", "The chance of a linear regret: where simulation ends, and beyond", REACH),
    ("beyond-4", "", "exponents", EXPONENTS, FAR_REACH, FAR_TAILS),
)


def settings_in(experiments: Iterable[PaperExperiment]) -> list[Any]:
    """The settings that the experiments show, each once."""
    return list(dict.fromkeys(setting for experiment in experiments for setting in experiment.settings))


def run(
    experiments: Iterable[PaperExperiment],
    folder: Path,
    *,
    paths: int,
    seed: int,
    threads: int | None = None,
    progress: ReportPart | None = None,
) -> Results:
    """The outcome of every setting, read from its file in `folder`, or simulated and saved there.

    A file that was made with other settings or versions is replaced. progress: a function that is called with
    (the setting that is being simulated, the number of paths done).
    """
    results = {}
    for turn, setting in enumerate(settings_in(experiments)):
        if progress is not None:
            progress(setting.label, turn * paths)
        file = folder / f"{setting.slug}.npz"
        some = max(1, round(paths * setting.share))
        outcome = _stored(file, setting, some, seed)
        if outcome is None:
            how: dict[str, Any] = {"horizon": setting.horizon, "paths": some, "seed": seed}
            outcome = simulate(setting.policy, setting.problem, **how, threads=threads)
            outcome.save(file)
        results[setting] = outcome
    return results


def _stored(file: Path, setting: Any, paths: int, seed: int) -> PathsOutcome | None:
    if not file.exists():
        return None
    try:
        outcome = PathsOutcome.load(file)
    except ValueError:
        return None
    # `auto` would choose the method of the file again: its choice depends on versions, policy, problem and
    # horizon.
    wanted = settings_of(setting.policy, setting.problem, setting.horizon, paths, seed, outcome.method)
    return outcome if outcome.settings == wanted else None
