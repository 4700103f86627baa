"""Several policies on one problem, and what to say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from lighttail.outcome import Outcome
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.report.format import chance
from lighttail.simulate import simulate
from lighttail.statistics import Estimate, proportion

RARE = 1e-3  # a policy has a heavy tail here if more paths than this are ruined


@dataclass(frozen=True, eq=False)
class Entry:
    """One policy's outcome and the estimates that the table shows."""

    policy: Policy
    outcome: Outcome
    threshold: float  # of regret

    @property
    def label(self) -> str:
        return str(self.policy)

    @cached_property
    def mean(self) -> Estimate:
        return self.outcome.mean("regret")

    @cached_property
    def quantile_95(self) -> Estimate:
        return self.outcome.quantile(0.95, "regret")

    @cached_property
    def quantile_99(self) -> Estimate:
        return self.outcome.quantile(0.99, "regret")

    @cached_property
    def cvar_99(self) -> Estimate:
        return self.outcome.cvar(0.99, "regret")

    @cached_property
    def exceedance(self) -> Estimate:
        return self.outcome.exceedance(self.threshold, "regret")

    @property
    def worst(self) -> float:
        return float(self.outcome.regret.max())

    @cached_property
    def ruined(self) -> Estimate:
        """The chance of a regret above the threshold that is not just a wide or a high middle:
        also four robust standard deviations above the median, where a normal law has 1 in 30,000."""
        regret = self.outcome.regret
        quarter, middle, three_quarters = np.quantile(regret, [0.25, 0.5, 0.75])
        far = middle + 4.0 * (three_quarters - quarter) / 1.349
        hits = int(np.sum(regret >= max(self.threshold, far)))
        return proportion(hits, self.outcome.paths, 0.95)

    @property
    def heavy_here(self) -> bool:
        """Whether the sample shows, with 95 % confidence, that more than RARE of the paths are ruined."""
        return self.ruined.low > RARE

    def to_dict(self) -> dict[str, Any]:
        """For `results.json`."""
        estimates = {
            "mean_regret": self.mean,
            "regret_quantile_95": self.quantile_95,
            "regret_quantile_99": self.quantile_99,
            "regret_cvar_99": self.cvar_99,
            "regret_exceedance": self.exceedance,
            "ruined": self.ruined,
        }
        return {
            "label": self.label,
            "policy": repr(self.policy),
            "light_tailed_by_theorem": self.policy.light_tailed,
            "heavy_tail_here": self.heavy_here,
            **{name: estimate.to_dict() for name, estimate in estimates.items()},
            "worst_regret": self.worst,
            "settings": self.outcome.settings,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """The outcomes of several policies on one problem."""

    problem: Bandit
    horizon: int
    paths: int
    seed: int
    threshold: float
    entries: tuple[Entry, ...]

    def verdict(self) -> str:
        """In plain words: which policies carry a heavy tail on this problem."""
        heavy = [entry for entry in self.entries if entry.heavy_here]
        rest = [entry for entry in self.entries if not entry.heavy_here]
        parts = []
        if heavy:
            parts.append(
                f"{_named(heavy)} {'carries' if len(heavy) == 1 else 'carry'} a heavy tail here: more than "
                f"1 path in 1,000 loses {self.threshold:g} or more, far above what the policy usually loses."
            )
        if rest:
            most = chance(max(entry.ruined.high for entry in rest))
            parts.append(
                f"{_named(rest)} {'does' if len(rest) == 1 else 'do'} not, as far as {self.paths:,} paths "
                f"can tell: at most {most} of {'its' if len(rest) == 1 else 'their'} paths do so."
            )
        return " ".join(parts) if heavy else f"No heavy tail is shown here. {parts[0]}"

    def to_dict(self, command: str) -> dict[str, Any]:
        """For `results.json`; an open end of an interval is null."""
        return {
            "command": command,
            "problem": repr(self.problem),
            "horizon": self.horizon,
            "paths": self.paths,
            "seed": self.seed,
            "threshold": self.threshold,
            "verdict": self.verdict(),
            "policies": [entry.to_dict() for entry in self.entries],
        }


def compare(
    policies: Sequence[Policy],
    problem: Bandit,
    *,
    horizon: int,
    paths: int,
    seed: int,
    threshold: float | None = None,
    threads: int | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Simulate every policy on the problem, each with the same seed.

    threshold: the regret whose chance is estimated; 0.2 * horizon unless given.
    progress: called with (policy, paths done, of all policies together).
    """
    threshold = 0.2 * horizon if threshold is None else threshold
    entries = []
    for turn, policy in enumerate(policies):
        report: bool | Callable[[int, int], None] = False
        if progress is not None:
            report = partial(_shift, progress, str(policy), turn * paths)
            report(0, paths)
        outcome = simulate(
            policy,
            problem,
            horizon=horizon,
            paths=paths,
            seed=seed,
            threads=threads,
            progress=report,
        )
        entries.append(Entry(policy, outcome, threshold))
    return Comparison(problem, horizon, paths, seed, threshold, tuple(entries))


def _shift(progress: Callable[[str, int], None], label: str, before: int, done: int, total: int) -> None:
    """Report the progress of one policy as that of all of them."""
    progress(label, before + done)


def _named(entries: Sequence[Entry]) -> str:
    """'A', 'A and B', 'A, B and C'."""
    *others, last = (entry.label for entry in entries)
    return f"{', '.join(others)} and {last}" if others else last
